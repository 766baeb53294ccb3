/**
 * What the player pages share: the frame of the page, and the list of media segments as the player got them.
 * window.tributarySample = {player, segments: [{url, start?, end?, bytes, ms, sha256}], errors: []} lets a harness
 * compare every byte with the file on disk. `start` and `end` (inclusive) are there when the player asked for a byte
 * range.
 */
/* global window, document, crypto, performance */
"use strict";

(() => {
  const PAGES = [
    ["hls.js", "/hls.html"],
    ["dash.js", "/dash.html"],
    ["shaka", "/shaka.html"],
    ["plain", "/plain.html"],
  ];
  const state = { player: document.documentElement.dataset.player, segments: [], errors: [] };
  window.tributarySample = state;

  const element = (name, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };

  const navigation = element(
    "nav",
    {},
    ...PAGES.map(([name, href]) => {
      const link = element("a", { href, textContent: name });
      if (href === window.location.pathname) link.setAttribute("aria-current", "page");
      return link;
    }),
  );
  const rows = element("tbody");
  const total = element("p", { textContent: "nothing yet" });
  const errors = element("p", { id: "errors" });
  const video = element("video", { id: "video", muted: true, autoplay: true, playsInline: true, controls: true });
  video.setAttribute("muted", "");

  const heading = (text) => element("th", { textContent: text, scope: "col" });
  const list = element(
    "section",
    { className: "card" },
    element("header", {}, element("h2", { textContent: "Segments" }), total),
    element(
      "div",
      { className: "scroll" },
      element(
        "table",
        {},
        element("thead", {}, element("tr", {}, heading("URL"), heading("bytes"), heading("ms"), heading("SHA-256"))),
        rows,
      ),
    ),
  );

  document.body.append(
    element("div", { className: "stream" }),
    element(
      "main",
      {},
      element(
        "header",
        {},
        element("h1", {}, element("a", { href: "/", textContent: "Tributary sample" }), ` · ${state.player}`),
        navigation,
      ),
      video,
      errors,
      ...(document.documentElement.dataset.segments === "none" ? [] : [list]),
    ),
  );

  const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");

  function show(segment) {
    const name =
      segment.url.replace(/^.*\//, "") + (segment.start === undefined ? "" : ` [${segment.start}-${segment.end}]`);
    const cell = (text, className = "") => element("td", { textContent: text, className });
    const row = element(
      "tr",
      {},
      cell(name),
      cell(segment.bytes.toLocaleString()),
      cell(Math.round(segment.ms)),
      cell(segment.sha256.slice(0, 12), "digest"),
    );
    row.firstChild.title = segment.url;
    rows.prepend(row);
    const bytes = state.segments.reduce((sum, each) => sum + each.bytes, 0);
    total.textContent = `${state.segments.length} segments, ${(bytes / 1e6).toFixed(2)} MB`;
  }

  /**
   * Records a segment as the player got it. `data` is copied at once, because players transfer their buffers to
   * workers. `startedMs` is on the clock of performance.now().
   */
  window.recordSegment = async ({ url, data, startedMs, range }) => {
    const ms = performance.now() - startedMs;
    const copy = data instanceof ArrayBuffer ? data.slice(0) : new Uint8Array(data).slice().buffer;
    const segment = {
      url: new URL(url, window.location.href).href,
      ...(range ?? {}),
      bytes: copy.byteLength,
      ms,
      sha256: "",
    };
    segment.sha256 = hex(await crypto.subtle.digest("SHA-256", copy));
    state.segments.push(segment);
    show(segment);
  };

  window.recordError = (text) => {
    state.errors.push(String(text));
    errors.textContent = state.errors.slice(-3).join(" · ");
  };

  video.addEventListener("error", () =>
    window.recordError(`video: ${video.error?.message || `code ${video.error?.code}`}`),
  );
  window.sampleVideo = video;
})();
