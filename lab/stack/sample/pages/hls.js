/**
 * hls.js page. Its fragment loader adds every fragment, with init segments, to the segment list. `?loader=fetch` loads
 * by fetch, `?worker=off` demuxes in the page, `?source=` names another playlist.
 */
/* global window, performance, URLSearchParams, Hls, recordSegment, recordError, sampleVideo */
"use strict";

const query = new URLSearchParams(window.location.search);

/** hls.js does not export its fetch loader. The configuration of its progressive mode has it. */
function fetchLoader() {
  const probe = new Hls({ progressive: true });
  const { loader } = probe.config;
  probe.destroy();
  return loader;
}

class RecordingLoader extends (query.get("loader") === "fetch" ? fetchLoader() : Hls.DefaultConfig.loader) {
  load(context, config, callbacks) {
    const startedMs = performance.now();
    const range = context.rangeEnd ? { start: context.rangeStart ?? 0, end: context.rangeEnd - 1 } : undefined;
    const onSuccess = (response, stats, at, details) => {
      recordSegment({ url: response.url || context.url, data: response.data, startedMs, range });
      callbacks.onSuccess(response, stats, at, details);
    };
    super.load(context, config, { ...callbacks, onSuccess });
  }
}

const hls = new Hls({
  fLoader: RecordingLoader,
  enableWorker: query.get("worker") !== "off",
  maxBufferLength: 10,
  maxMaxBufferLength: 10,
});
window.samplePlayer = hls;
// Not faults: a wait for data, a busy machine's decoder that needs a nudge (fatal after the third in vain), a segment
// appended again in a better quality, a load given up for a lower quality.
const ORDINARY = [
  Hls.ErrorDetails.BUFFER_STALLED_ERROR,
  Hls.ErrorDetails.BUFFER_NUDGE_ON_STALL,
  Hls.ErrorDetails.BUFFER_APPEND_NO_PROGRESS,
  Hls.ErrorDetails.INTERNAL_ABORTED,
];
hls.on(Hls.Events.ERROR, (_event, data) => {
  if (data.fatal || !ORDINARY.includes(data.details))
    recordError(`hls.js: ${data.details}${data.fatal ? " (fatal)" : ""}`);
});
hls.loadSource(query.get("source") ?? "/media/cmaf/master.m3u8");
hls.attachMedia(sampleVideo);
