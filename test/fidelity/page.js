/**
 * Put into a page of the fidelity suite. `see` asks for an address in one of the ways that pages have and resolves to
 * what a script can tell of the answer, as plain data. Bodies become `LENGTH:DIGEST` (`digestOf` in kit.ts).
 */
/* global window, document, crypto, XMLHttpRequest, Blob */
(() => {
  const digestOf = async (buffer) => {
    const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", buffer));
    return `${buffer.byteLength}:${[...hash.slice(0, 6)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  };
  const errorOf = (error) => `${error.name}: ${error.message}`;
  const READS = {
    digest: async (response) => digestOf(await response.arrayBuffer()),
    blob: async (response) => {
      const blob = await response.blob();
      return `${await digestOf(await blob.arrayBuffer())} ${blob.type}`;
    },
    text: async (response) => (await response.text()).slice(0, 200),
    none: async () => undefined,
  };

  // Headers of one connection, which HTTP/2 does not have.
  const isKept = (name) => !["connection", "keep-alive", "transfer-encoding"].includes(name);
  const headOf = ({ status, statusText, type, redirected, url, headers }) => ({
    status,
    statusText,
    type,
    redirected,
    url,
    headers: Object.fromEntries([...headers].filter(([name]) => isKept(name)).sort()),
  });

  async function seeFetch(url, init = {}, read = "digest") {
    let response;
    try {
      response = await fetch(url, init);
    } catch (error) {
      return { error: errorOf(error) };
    }
    const head = headOf(response);
    try {
      return { ...head, body: await READS[read](response) };
    } catch (error) {
      return { ...head, bodyError: errorOf(error) };
    }
  }

  /** Events come in their order. How often data come in between depends on the network, so that counts once. */
  async function seeXhr(url, options = {}) {
    const { method = "GET", type = "arraybuffer", headers = {}, timeout = 0, mimeType, abortAt, credentials } = options;
    const xhr = new XMLHttpRequest();
    const events = [];
    const isRepeated = (name) => events.at(-1) === name || (/^(state 3|progress)$/.test(name) && events.includes(name));
    const note = (name) => isRepeated(name) || events.push(name);
    let progress;
    xhr.addEventListener("readystatechange", () => {
      note(`state ${xhr.readyState}`);
      if (xhr.readyState === abortAt) xhr.abort();
    });
    for (const name of ["loadstart", "progress", "load", "error", "abort", "timeout"]) {
      xhr.addEventListener(name, (event) => {
        note(name);
        if (name === "load") {
          const { lengthComputable, loaded, total } = event;
          progress = { lengthComputable, loaded, total };
        }
      });
    }
    const ended = new Promise((resolve) => xhr.addEventListener("loadend", resolve));
    xhr.open(method, url);
    xhr.responseType = type;
    xhr.timeout = timeout;
    if (credentials) xhr.withCredentials = true;
    if (mimeType) xhr.overrideMimeType(mimeType);
    for (const [name, value] of Object.entries(headers)) xhr.setRequestHeader(name, value);
    xhr.send();
    await ended;
    return {
      events,
      status: xhr.status,
      statusText: xhr.statusText,
      url: xhr.responseURL,
      headers: xhr
        .getAllResponseHeaders()
        .split("\r\n")
        .filter((line) => isKept(line.split(":")[0])),
      progress,
      body: await bodyOf(xhr.response),
    };
  }

  async function bodyOf(response) {
    if (response instanceof Blob) return `${await digestOf(await response.arrayBuffer())} ${response.type}`;
    if (response instanceof ArrayBuffer) return digestOf(response);
    return typeof response === "string" ? response.slice(0, 200) : response;
  }

  /** Plays an address in a video element until it fails, or has played for a moment or to its end. */
  async function seeVideo(url, { seconds = 10, preload = "auto", origin, toItsEnd = false } = {}) {
    const video = document.createElement("video");
    video.muted = true;
    video.preload = preload;
    if (origin !== undefined) video.crossOrigin = origin;
    const events = [];
    const names = ["loadstart", "durationchange", "loadedmetadata", "loadeddata", "canplay", "play", "playing"];
    const ended = new Promise((resolve) => {
      for (const name of [...names, "pause", "resize", "ended", "error", "abort", "emptied"])
        video.addEventListener(name, () => {
          events.push(name);
          if (name === "ended" || name === "error") resolve();
          if (name === "playing" && !toItsEnd) window.setTimeout(resolve, 700);
        });
      window.setTimeout(resolve, seconds * 1000);
    });
    document.body.append(video);
    video.src = url;
    const played = video.play().then(
      () => "played",
      (error) => error.name,
    );
    await Promise.race([ended, played.then((how) => how === "played" && ended)]);
    const facts = {
      events,
      played: await Promise.race([played, Promise.resolve("pending")]),
      error: video.error && video.error.code,
      duration: Number.isFinite(video.duration) ? Math.round(video.duration * 100) / 100 : String(video.duration),
      size: `${video.videoWidth}x${video.videoHeight}`,
      ended: video.ended,
      src: video.currentSrc,
    };
    video.remove();
    return facts;
  }

  window.see = { fetch: seeFetch, xhr: seeXhr, video: seeVideo, digestOf, errorOf, headOf };
})();
