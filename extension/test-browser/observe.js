/** Observe: what a page sees of an answer, as plain data. The script runs in the page, before scenarios.js. */
/* global window, XMLHttpRequest, Response, crypto, Blob */
window.observe = (() => {
  const hash = async (buffer) =>
    [...new Uint8Array(await crypto.subtle.digest("SHA-256", buffer))]
      .map((byte) => byte.toString(16).padStart(2, "0"))
      .join("");
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const failure = (error) => ({
    name: error?.name ?? String(error),
    isError: error instanceof Error,
    isDom: error instanceof window.DOMException,
  });
  const settled = (promise) =>
    promise.then(
      (value) => ({ value }),
      (error) => ({ error: failure(error) }),
    );
  const KEPT = [
    "content-type",
    "content-length",
    "content-range",
    "etag",
    "last-modified",
    "accept-ranges",
    "cache-control",
    "x-secret",
  ];
  const shown = (headers) => Object.fromEntries(KEPT.map((name) => [name, headers.get(name)]));
  const describe = (response) => {
    const { status, statusText, ok, url, type, redirected, bodyUsed } = response;
    return {
      status,
      statusText,
      ok,
      url,
      type,
      redirected,
      bodyUsed,
      headers: shown(response.headers),
      isResponse: response instanceof Response,
    };
  };
  const headersOf = async (response) => {
    await response.arrayBuffer();
    return [...response.headers].filter(([header]) => header !== "date");
  };
  const whole = async (response) => ({
    ...describe(response),
    hash: await hash(await response.arrayBuffer()),
    usedAfter: response.bodyUsed,
  });

  /** Sends one XHR and returns everything that the page saw of it. */
  const xhr = (url, { type = "arraybuffer", range, prepare, during, method = "GET" } = {}) =>
    new Promise((resolve) => {
      const request = new XMLHttpRequest();
      const events = [];
      let lastLoaded = 0;
      const facts = { monotone: true, truthful: true, totals: new Set() };
      const note = (name) => {
        if (
          events.at(-1) !== name &&
          !(name === "progress" && events.at(-2) === "progress") &&
          !(name === "state 3" && events.at(-2) === "state 3")
        )
          events.push(name);
      };
      request.onreadystatechange = () => note(`state ${request.readyState}`);
      for (const name of ["loadstart", "load", "error", "abort", "timeout"])
        request[`on${name}`] = (event) => note(`${name} ${event.loaded}/${event.total} ${event.lengthComputable}`);
      request.addEventListener("progress", (event) => {
        note("progress");
        facts.monotone &&= event.loaded >= lastLoaded;
        lastLoaded = event.loaded;
        facts.totals.add(`${event.total} ${event.lengthComputable}`);
      });
      request.addEventListener("loadend", async () => {
        note("loadend");
        await pause(0);
        const { status, statusText, readyState, responseURL, timeout } = request;
        const body = request.response;
        const content =
          body instanceof ArrayBuffer
            ? await hash(body)
            : body instanceof Blob
              ? `${body.type} ${await hash(await body.arrayBuffer())}`
              : body;
        const headers = Object.fromEntries(KEPT.map((name) => [name, request.getResponseHeader(name)]));
        const all = request
          .getAllResponseHeaders()
          .split("\r\n")
          .filter((line) => KEPT.includes(line.split(":")[0]));
        let text;
        try {
          text = request.responseText.length;
        } catch (error) {
          text = failure(error);
        }
        resolve({
          events,
          monotone: facts.monotone,
          totals: [...facts.totals],
          lastLoaded: status === 0 ? null : lastLoaded,
          status,
          statusText,
          readyState,
          responseURL,
          timeout,
          content,
          headers,
          all,
          text,
          same: type === "json" || request.response === request.response,
        });
      });
      request.open(method, url);
      request.responseType = type;
      if (range) request.setRequestHeader("Range", range);
      prepare?.(request);
      request.send();
      during?.(request);
    });
  return { failure, hash, headersOf, pause, settled, describe, whole, xhr };
})();
