/** Two frames of the page named by `?page=`, each with its player. */
/* global window, document, URLSearchParams */
"use strict";

for (let count = 0; count < 2; count++) {
  const frame = document.createElement("iframe");
  frame.className = "player";
  frame.width = "480";
  frame.height = "480";
  frame.title = `player ${count + 1}`;
  frame.allow = "autoplay";
  frame.src = new URL(
    new URLSearchParams(window.location.search).get("page") ?? "/hls.html",
    window.location.origin,
  ).pathname;
  document.body.append(frame);
}
