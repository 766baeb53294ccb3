/**
 * Scenarios: what a page does with fetch and XMLHttpRequest, and what it sees. The script runs in the page, once with
 * the extension and once without. Each scenario returns plain data, which must be equal in both runs. `here` is the
 * page's own origin, `there` another one. `name` is the scenario that will run: each one has addresses of its own,
 * because the browser may have the others in its cache.
 */
/* global window, XMLHttpRequest, Response, Request, Headers, FormData */
window.scenarios = (here, there, name = "") => {
  const { failure, hash, headersOf, pause, settled, describe, whole, xhr } = window.observe;
  const scenario = `scenario=${encodeURIComponent(name)}`;
  const media = `${here}/media.mp4?${scenario}`;
  const away = `${there}/media.mp4?${scenario}`;
  const text = `${here}/text.mp4?${scenario}`;
  return {
    "fetch: same origin": async () => whole(await fetch(media)),
    "fetch: relative address with fragment": async () => whole(await fetch(`/media.mp4?${scenario}#part`)),
    "fetch: range beyond the end": async () =>
      whole(await fetch(media, { headers: { Range: "bytes=9000000-9000001" } })),
    "fetch: Request object and Headers": async () =>
      whole(await fetch(new Request(media, { headers: new Headers({ Range: "bytes=1000-200999" }) }))),
    "fetch: URL object with options": async () =>
      whole(await fetch(new URL(media), { method: "get", headers: { Range: "bytes=5-5", Accept: "video/*" } })),
    "fetch: open range": async () => whole(await fetch(media, { headers: { Range: "bytes=2999000-" } })),
    "fetch: cross-origin with *": async () => whole(await fetch(`${away}&acao=*`)),
    "fetch: cross-origin with the page's origin": async () => whole(await fetch(`${away}&acao=${here}`)),
    "fetch: cross-origin range": async () => whole(await fetch(`${away}&acao=*`, { headers: { Range: "bytes=0-99" } })),
    "fetch: cross-origin, exposed headers": async () => whole(await fetch(`${away}&acao=*&expose=ETag,Accept-Ranges`)),
    "fetch: every header of the own origin": async () => headersOf(await fetch(`${text}&more=1`)),
    "fetch: every exposed header": async () => headersOf(await fetch(`${away}&acao=*&more=1&expose=x-more,Age`)),
    "fetch: immutable headers": async () => {
      const response = await fetch(text);
      const { headers } = response;
      await response.text();
      const changes = [() => headers.set("a", "b"), () => headers.append("a", "b"), () => headers.delete("etag")];
      return Promise.all(changes.map((change) => settled(Promise.resolve().then(change))));
    },
    "fetch: type of a blob": async () => {
      const types = ["video/MP4", "video/mp4; codecs=avc1", "nonsense"];
      const answers = types.map((type) => fetch(`${text}&type=${encodeURIComponent(type)}`));
      return Promise.all(answers.map(async (answer) => (await (await answer).blob()).type));
    },
    "xhr: type of a blob, unusual": async () => {
      const types = ["video/MP4", "video/mp4; codecs=avc1", "nonsense"];
      return Promise.all(types.map((type) => xhr(`${text}&type=${encodeURIComponent(type)}`, { type: "blob" })));
    },
    "xhr: form changed while under way, unusual": () =>
      Promise.all(
        ["text", "json", "document", "blob", ""].map((type) =>
          xhr(`${text}&wait=100&type=text/html&form=${type}`, {
            during: (request) => (request.responseType = type),
          }).then(({ content, ...rest }) => ({ ...rest, content: content?.body?.textContent ?? content })),
        ),
      ),
    "xhr: overridden type while under way, unusual": () =>
      xhr(`${media}&wait=100`, { type: "blob", during: (request) => request.overrideMimeType("video/x-mine") }),
    "fetch: cross-origin, refused": async () => settled(fetch(away).then(describe)),
    "fetch: cross-origin, other origin allowed": async () =>
      settled(fetch(`${away}&acao=http://elsewhere.example`).then(describe)),
    "fetch: no-cors": async () => describe(await fetch(away, { mode: "no-cors" })),
    "fetch: credentials": async () => settled(fetch(`${away}&acao=*`, { credentials: "include" }).then(describe)),
    "fetch: same-origin mode": async () => settled(fetch(`${away}&acao=*`, { mode: "same-origin" }).then(describe)),
    "fetch: 404": async () => whole(await fetch(`${media}&status=404`)),
    "fetch: cross-origin, nothing there": async () => whole(await fetch(`${away}&acao=*&status=404`)),
    "fetch: cross-origin, past its end": async () =>
      whole(await fetch(`${away}&acao=*`, { headers: { Range: "bytes=9000000-9000001" } })),
    "fetch: behind a sign-in": async () => {
      const answers = ["status=404", "type=text/html", "redirect=/page.html"].map((stranger) =>
        fetch(`${media}&stranger=${encodeURIComponent(stranger)}`),
      );
      return Promise.all((await Promise.all(answers)).map(whole));
    },
    "fetch: empty": async () => whole(await fetch(`${here}/empty.mp4?${scenario}`)),
    "fetch: 403": async () => whole(await fetch(`${media}&status=403`)),
    "fetch: 500": async () => whole(await fetch(`${media}&status=500`)),
    "fetch: no length": async () => whole(await fetch(`${media}&nolength=1`)),
    "fetch: an answer with a giant header": async () => whole(await fetch(`${away}&acao=*&bloat=100000`)),
    "fetch: HEAD": async () => whole(await fetch(media, { method: "HEAD" })),
    "fetch: POST": async () => whole(await fetch(media, { method: "POST", body: "x" })),
    "fetch: PUT by Request object to a media address": async () =>
      whole(await fetch(new Request(media, { method: "PUT", body: "x" }))),
    "fetch: unusual header": async () => whole(await fetch(media, { headers: { "X-Player": "1" } })),
    "fetch: bad scheme": async () => settled(fetch("nonsense://x/media.mp4").then(describe)),
    "fetch: no server": async () => settled(fetch("http://127.0.0.1:9/media.mp4").then(describe)),
    "fetch: text, json, blob": async () => [
      await (await fetch(text)).text(),
      await (await fetch(text)).json(),
      await (await fetch(text)).blob().then(async (blob) => [blob.type, blob.size, await blob.text()]),
      await settled((await fetch(media)).json()),
    ],
    "fetch: read twice": async () => {
      const response = await fetch(media);
      await response.arrayBuffer();
      return [
        await settled(response.text()),
        response.bodyUsed,
        await settled(Promise.resolve().then(() => response.clone())),
      ];
    },
    "fetch: clone": async () => {
      const response = await fetch(`${away}&acao=*`);
      const copy = response.clone();
      return Promise.all([whole(response), whole(copy)]);
    },
    "fetch: reader": async () => {
      const response = await fetch(`${media}&slow=20`);
      const reader = response.body.getReader();
      const locked = response.body.locked;
      let bytes = 0;
      let isPlain = true;
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
        bytes += piece.value.length;
        isPlain &&= piece.value instanceof Uint8Array;
      }
      return { bytes, isPlain, locked, used: response.bodyUsed, after: await settled(reader.closed) };
    },
    "fetch: byte reader": async () => {
      const reader = (await fetch(media)).body.getReader({ mode: "byob" });
      const first = await reader.read(new Uint8Array(10));
      await reader.cancel();
      return { length: first.value.length, bytes: [...first.value], done: first.done };
    },
    "fetch: tee": async () => {
      const [one, two] = (await fetch(media)).body.tee();
      return Promise.all([one, two].map(async (stream) => hash(await new Response(stream).arrayBuffer())));
    },
    "fetch: cancelled body": async () => {
      const response = await fetch(`${media}&slow=30`);
      await response.body.cancel("enough");
      return [response.bodyUsed, await settled(response.text())];
    },
    "fetch: aborted before": async () => settled(fetch(media, { signal: AbortSignal.abort() })),
    "fetch: aborted before with a reason": async () => settled(fetch(media, { signal: AbortSignal.abort("why") })),
    "fetch: aborted while waiting": async () => {
      const controller = new AbortController();
      setTimeout(() => controller.abort(), 50);
      return settled(fetch(`${media}&wait=400`, { signal: controller.signal }));
    },
    "fetch: aborted while waiting, with a reason": async () => {
      const controller = new AbortController();
      setTimeout(() => controller.abort(new RangeError("mine")), 50);
      return settled(fetch(new Request(`${media}&wait=400`, { signal: controller.signal })));
    },
    "fetch: timeout signal": async () => settled(fetch(`${media}&wait=400`, { signal: AbortSignal.timeout(50) })),
    "fetch: aborted in the body": async () => {
      const results = [];
      for (const read of ["arrayBuffer", "text", "blob", "json"]) {
        const controller = new AbortController();
        const response = await fetch(`${media}&slow=20`, { signal: controller.signal });
        setTimeout(() => controller.abort(), 60);
        results.push(await settled(response[read]()));
      }
      return results;
    },
    "fetch: aborted in the reader": async () => {
      const controller = new AbortController();
      const reader = (await fetch(`${media}&slow=20`, { signal: controller.signal })).body.getReader();
      await reader.read();
      controller.abort();
      return [await settled(reader.read()), await settled(reader.closed)];
    },
    "fetch: aborted after": async () => {
      const controller = new AbortController();
      const response = await fetch(media, { signal: controller.signal });
      const bytes = (await response.arrayBuffer()).byteLength;
      controller.abort();
      return { bytes, status: response.status };
    },
    "fetch: shape": () => ({
      name: fetch.name,
      length: fetch.length,
      source: Function.prototype.toString.call(fetch).includes("[native code]"),
    }),

    "xhr: arraybuffer": () => xhr(media),
    "xhr: slow": () => xhr(`${media}&slow=30`),
    "xhr: range": () => xhr(media, { range: "bytes=100-70099" }),
    "xhr: blob": () => xhr(media, { type: "blob" }),
    "xhr: text": () => xhr(text, { type: "text" }),
    "xhr: untyped": () => xhr(text, { type: "" }),
    "xhr: json": () => xhr(text, { type: "json" }),
    "xhr: not json": () => xhr(media, { type: "json" }),
    "xhr: document": () =>
      xhr(`${text}&type=text/html`, { type: "document" }).then(({ content, ...rest }) => ({
        ...rest,
        text: content?.body?.textContent,
      })),
    "xhr: empty": () => xhr(`${here}/empty.mp4?${scenario}`),
    "xhr: no length": () => xhr(`${media}&nolength=1`),
    "xhr: 404": () => xhr(`${media}&status=404`),
    "xhr: 503": () => xhr(`${media}&status=503`),
    "xhr: 416": () => xhr(media, { range: "bytes=9000000-9000001" }),
    "xhr: cross-origin with *": () => xhr(`${away}&acao=*`),
    "xhr: cross-origin, exposed headers": () => xhr(`${away}&acao=*&expose=*`, { range: "bytes=0-9" }),
    "xhr: cross-origin, refused": () => xhr(away),
    "xhr: credentials": () => xhr(`${away}&acao=*`, { prepare: (request) => (request.withCredentials = true) }),
    "xhr: no server": () => xhr("http://127.0.0.1:9/media.mp4"),
    "xhr: HEAD": () => xhr(media, { method: "HEAD" }),
    "xhr: timeout": () => xhr(`${media}&wait=600`, { prepare: (request) => (request.timeout = 100) }),
    "xhr: timeout in the body": () => xhr(`${media}&slow=40`, { prepare: (request) => (request.timeout = 250) }),
    "xhr: timeout set while under way": () =>
      xhr(`${media}&wait=600`, { during: (request) => setTimeout(() => (request.timeout = 100), 20) }),
    "xhr: timeout long enough": () => xhr(media, { prepare: (request) => (request.timeout = 20000) }),
    "xhr: aborted at once": () => xhr(media, { during: (request) => request.abort() }),
    "xhr: aborted while waiting": () =>
      xhr(`${media}&wait=600`, { during: (request) => setTimeout(() => request.abort(), 60) }),
    "xhr: aborted in the body": () =>
      xhr(`${media}&slow=40`, { during: (request) => request.addEventListener("progress", () => request.abort()) }),
    "xhr: aborted in loadstart": () =>
      new Promise((resolve) => {
        const request = new XMLHttpRequest();
        const events = [];
        for (const name of ["readystatechange", "loadstart", "abort", "loadend"])
          request.addEventListener(name, () => events.push(`${name} ${request.readyState}`));
        request.addEventListener("loadstart", () => request.abort());
        request.open("GET", media);
        request.send();
        setTimeout(() => resolve([events, request.readyState]), 100);
      }),
    "xhr: aborted after": async () => {
      const request = new XMLHttpRequest();
      request.open("GET", media);
      request.responseType = "arraybuffer";
      const events = [];
      await new Promise((resolve) => {
        request.onload = resolve;
        request.send();
      });
      request.onreadystatechange = request.onabort = request.onloadend = (event) => events.push(event.type);
      await pause(20);
      events.length = 0;
      request.abort();
      return [
        request.readyState,
        request.status,
        request.response,
        request.getAllResponseHeaders(),
        request.responseURL,
        events,
      ];
    },
    "xhr: one object again and again": async () => {
      const request = new XMLHttpRequest();
      const seen = [];
      for (const url of [`${media}&a`, text, `${here}/page.html`, `${away}&acao=*&status=404`, `${media}&b`]) {
        const events = [];
        request.onreadystatechange = () => events.push(request.readyState);
        await new Promise((resolve) => {
          request.open("GET", url);
          request.responseType = "arraybuffer";
          request.onloadend = resolve;
          request.send();
        });
        seen.push([
          events.filter((state, index) => state !== events[index - 1]),
          request.status,
          await hash(request.response),
        ]);
      }
      return seen;
    },
    "xhr: opened anew while under way": async () => {
      const request = new XMLHttpRequest();
      const events = [];
      request.open("GET", `${media}&slow=50`);
      request.responseType = "arraybuffer";
      request.onabort =
        request.onerror =
        request.onloadend =
        request.onreadystatechange =
          (event) => events.push(`${event.type} ${request.readyState}`);
      request.send();
      await pause(150);
      events.length = 0;
      request.open("GET", text);
      const reopened = [...events];
      request.send();
      await new Promise((resolve) => (request.onload = resolve));
      return [reopened, await hash(request.response), request.status];
    },
    "xhr: next request from the load handler": async () => {
      const request = new XMLHttpRequest();
      const statuses = [];
      await new Promise((resolve) => {
        request.onload = () => {
          statuses.push(request.status);
          if (statuses.length === 3) return resolve();
          request.open("GET", `${media}&again=${statuses.length}`);
          request.responseType = "arraybuffer";
          request.send();
        };
        request.open("GET", media);
        request.responseType = "arraybuffer";
        request.send();
      });
      return statuses;
    },
    "xhr: misuse": async () => {
      const request = new XMLHttpRequest();
      const tried = (action) => {
        try {
          action();
          return "fine";
        } catch (error) {
          return failure(error);
        }
      };
      const results = [tried(() => request.send()), tried(() => request.setRequestHeader("a", "b"))];
      request.open("GET", `${media}&slow=20`);
      request.responseType = "arraybuffer";
      request.send();
      results.push(
        tried(() => request.send()),
        tried(() => request.setRequestHeader("a", "b")),
        tried(() => (request.withCredentials = true)),
        tried(() => request.responseText),
      );
      await new Promise((resolve) => (request.onprogress = resolve));
      results.push(
        tried(() => (request.responseType = "text")),
        tried(() => request.overrideMimeType("text/plain")),
        request.response,
      );
      await new Promise((resolve) => (request.onload = resolve));
      results.push(
        tried(() => request.send()),
        tried(() => (request.responseType = "text")),
        request.readyState,
      );
      request.abort();
      results.push(
        tried(() => request.send()),
        tried(() => request.setRequestHeader("a", "b")),
        tried(() => (request.withCredentials = true)),
        request.withCredentials,
      );
      return results;
    },
    "xhr: text while it arrives": async () => {
      const request = new XMLHttpRequest();
      request.open("GET", `${media}&slow=20&type=text/plain;charset=x-user-defined`);
      let grows = true;
      let last = 0;
      request.onprogress = () => {
        grows &&= request.responseText.length >= last;
        last = request.responseText.length;
      };
      request.send();
      await new Promise((resolve) => (request.onload = resolve));
      return [grows, request.responseText.length, request.responseText.charCodeAt(1000)];
    },
    "xhr: handler object, capture, once, removal": async () => {
      const request = new XMLHttpRequest();
      const seen = [];
      const removed = () => seen.push("removed");
      request.addEventListener("load", {
        handleEvent: (event) => seen.push(`object ${event.target === request} ${event.currentTarget === request}`),
      });
      request.addEventListener("load", removed);
      request.removeEventListener("load", removed);
      request.addEventListener("progress", () => seen.push("once"), { once: true });
      request.open("GET", media);
      request.responseType = "arraybuffer";
      request.send();
      await new Promise((resolve) => request.addEventListener("loadend", resolve));
      return seen;
    },
    "xhr: events that the page replaced, and handlers that throw": async () => {
      const { Event, ProgressEvent } = window;
      const { prototype } = window.EventTarget;
      const { dispatchEvent } = prototype;
      const refuse = () => {
        throw new Error("the page's own");
      };
      const ignore = (event) => event.preventDefault();
      window.addEventListener("error", ignore);
      window.Event = window.ProgressEvent = prototype.dispatchEvent = refuse;
      const request = new XMLHttpRequest();
      try {
        for (const name of ["loadstart", "readystatechange", "progress"]) request[`on${name}`] = refuse;
        request.open("GET", media);
        request.responseType = "arraybuffer";
        request.send();
        await new Promise((resolve) => (request.onload = resolve));
      } finally {
        Object.assign(window, { Event, ProgressEvent });
        Object.assign(prototype, { dispatchEvent });
        window.removeEventListener("error", ignore);
      }
      return [request.status, await hash(request.response)];
    },
    "xhr: subclass and shape": async () => {
      class Mine extends XMLHttpRequest {
        open(...args) {
          this.mine = true;
          super.open(...args);
        }
      }
      const request = new Mine();
      request.open("GET", media);
      request.send();
      await new Promise((resolve) => (request.onload = resolve));
      const { open, send } = XMLHttpRequest.prototype;
      return [
        request.mine,
        request.status,
        request instanceof XMLHttpRequest,
        Object.keys(request),
        open.name,
        open.length,
        send.length,
        XMLHttpRequest.name,
        Function.prototype.toString.call(open).includes("[native code]"),
        request.upload instanceof window.XMLHttpRequestUpload,
      ];
    },
    "xhr: sync": () => {
      const request = new XMLHttpRequest();
      request.open("GET", text, false);
      request.send();
      return [request.status, request.responseText];
    },
    "xhr: form by POST": () =>
      new Promise((resolve) => {
        const request = new XMLHttpRequest();
        request.open("POST", media);
        request.onloadend = () => resolve([request.status, request.response.length > 0]);
        request.send(new FormData());
      }),
  };
};
