/**
 * Garbage of packets, in a browser. What Chromium keeps of each datagram and message goes with a full collection only,
 * and V8 begins one late where its own heap is small: tens of megabytes wait for it. A buffer of this size begins it;
 * never touched, it takes no memory itself.
 */
const UNTOUCHED_BYTES = 64 * 1024 * 1024;
const EVERY_MS = 2000;
/** When packets began to come after the last silence, when the last one came, and when garbage was collected last. */
let begunMs = 0;
let heardMs = -Infinity;
let collectedMs = 0;

/**
 * For whoever has dealt with a packet or message: has garbage collected now and then while they go on, not where they
 * begin: there a request waits for the next ones.
 */
export function collectWhileBusy(nowMs = performance.now()): void {
  if (nowMs - heardMs >= EVERY_MS) begunMs = nowMs;
  heardMs = nowMs;
  if (nowMs - begunMs >= EVERY_MS) collectGarbage(nowMs);
}

/**
 * For whoever has nothing under way any more. Does nothing where no packet has come since the last time, or that was a
 * moment ago.
 */
export function collectGarbage(nowMs = performance.now()): void {
  if (heardMs <= collectedMs || nowMs - collectedMs < EVERY_MS) return;
  collectedMs = nowMs;
  try {
    new ArrayBuffer(UNTOUCHED_BYTES);
  } catch {
    // Where there is no room for it, the browser collects by itself.
  }
}
