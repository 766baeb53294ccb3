/**
 * shaka-player page: a response filter sees every segment before the player does. `?source=` names another manifest.
 */
/* global window, performance, URLSearchParams, shaka, recordSegment, recordError, sampleVideo */
"use strict";

async function play() {
  shaka.polyfill.installAll();
  const player = new shaka.Player();
  window.samplePlayer = player;
  player.configure({ streaming: { bufferingGoal: 10, rebufferingGoal: 1 } });
  player.addEventListener("error", (event) => recordError(`shaka: code ${event.detail?.code}`));
  player.getNetworkingEngine().registerResponseFilter((type, response) => {
    if (type !== shaka.net.NetworkingEngine.RequestType.SEGMENT) return;
    const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(response.originalRequest?.headers?.Range ?? "") ?? [];
    recordSegment({
      url: response.originalUri ?? response.uri,
      data: response.data,
      startedMs: performance.now() - (response.timeMs ?? 0),
      range: end === undefined ? undefined : { start: Number(start), end: Number(end) },
    });
  });
  await player.attach(sampleVideo);
  await player.load(new URLSearchParams(window.location.search).get("source") ?? "/media/cmaf/stream.mpd");
}

play().catch((error) => recordError(`shaka: ${error?.message ?? `code ${error?.code}`}`));
