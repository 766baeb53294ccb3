/** video.js page: its HLS engine asks by XMLHttpRequest; each media answer is recorded as it came. */
/* global window, performance, videojs, URLSearchParams, recordSegment, recordError, sampleVideo */
"use strict";

const player = videojs(sampleVideo, { autoplay: "muted", controls: true, html5: { vhs: { overrideNative: true } } });
window.samplePlayer = player;
// As far ahead as the other pages' players: by itself it would have all of the sample before a test has done anything.
videojs.Vhs.GOAL_BUFFER_LENGTH = videojs.Vhs.MAX_GOAL_BUFFER_LENGTH = 10;
videojs.Vhs.xhr.onResponse((request, error, response) => {
  if (
    error ||
    request.responseType !== "arraybuffer" ||
    !/\.(m4s|mp4)$/.test(new URL(request.uri, window.location.href).pathname)
  )
    return;
  const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers?.Range ?? "") ?? [];
  recordSegment({
    url: request.uri,
    data: response.body,
    startedMs: performance.now(),
    range: end === undefined ? undefined : { start: Number(start), end: Number(end) },
  });
});
player.on("error", () => recordError(`video.js: ${player.error()?.message}`));
player.src({
  src: new URLSearchParams(window.location.search).get("source") ?? "/media/cmaf/master.m3u8",
  type: "application/vnd.apple.mpegurl",
});
