/** dash.js page: each media and init segment as its loader delivered it. `?source=` names another manifest. */
/* global window, performance, URLSearchParams, dashjs, recordSegment, recordError, sampleVideo */
"use strict";

const player = dashjs.MediaPlayer().create();
window.samplePlayer = player;
player.updateSettings({
  streaming: { buffer: { bufferTimeDefault: 10, bufferTimeAtTopQuality: 10, bufferTimeAtTopQualityLongForm: 10 } },
});
player.on(dashjs.MediaPlayer.events.FRAGMENT_LOADING_COMPLETED, ({ request, response, error }) => {
  if (error) return recordError(`dash.js: ${error.message ?? error}`);
  if (!(response instanceof ArrayBuffer)) return;
  const startedMs = request.startDate
    ? performance.now() - (Date.now() - request.startDate.getTime())
    : performance.now();
  const [start, end] = (request.range ?? "").split("-").map(Number);
  recordSegment({ url: request.url, data: response, startedMs, range: request.range ? { start, end } : undefined });
});
player.on(dashjs.MediaPlayer.events.ERROR, ({ error }) => recordError(`dash.js: ${error?.message ?? error}`));
player.initialize(
  sampleVideo,
  new URL(new URLSearchParams(window.location.search).get("source") ?? "/media/cmaf/stream.mpd", window.location.href)
    .href,
  true,
);
