/** hls.js page: a fragment loader that hands every fragment, init segments included, to the segment list. */
/* global window, performance, Hls, recordSegment, recordError, sampleVideo */
"use strict";

class RecordingLoader extends Hls.DefaultConfig.loader {
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

const hls = new Hls({ fLoader: RecordingLoader, maxBufferLength: 10, maxMaxBufferLength: 10 });
window.samplePlayer = hls;
// Not faults: a wait for data, a segment appended again in a better quality, a load given up for a lower quality.
const ORDINARY = [Hls.ErrorDetails.BUFFER_STALLED_ERROR, Hls.ErrorDetails.BUFFER_APPEND_NO_PROGRESS, Hls.ErrorDetails.INTERNAL_ABORTED];
hls.on(Hls.Events.ERROR, (_event, data) => {
  if (data.fatal || !ORDINARY.includes(data.details)) recordError(`hls.js: ${data.details}${data.fatal ? " (fatal)" : ""}`);
});
hls.loadSource("/media/cmaf/master.m3u8");
hls.attachMedia(sampleVideo);
