/**
 * Garbage of packets, in a browser. What Chromium keeps of each datagram and message goes with a full collection only, and V8
 * begins one late where its own heap is small: tens of megabytes wait for it. A buffer of this size begins it; never touched, it
 * takes no memory itself.
 */
const UNTOUCHED_BYTES = 64 * 1024 * 1024;
const EVERY_MS = 2000;
let lastMs = 0;

/** For whoever has just taken a packet: has garbage collected now and then, while packets come. */
export function collectGarbage(nowMs = performance.now()): void {
  if (nowMs - lastMs < EVERY_MS) return;
  lastMs = nowMs;
  try {
    new ArrayBuffer(UNTOUCHED_BYTES);
  } catch {
    // Where there is no room for it, the browser collects by itself.
  }
}
