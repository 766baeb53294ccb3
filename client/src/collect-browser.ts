/**
 * Collects the garbage that packets leave in a browser. Chromium frees its memory for datagrams and messages only in a
 * full collection. V8 starts one late if its own heap is small, so tens of megabytes pile up.
 */

/** Allocating a buffer of this size starts a full collection. Nobody writes to it, so it takes no memory. */
const UNTOUCHED_BYTES = 64 * 1024 * 1024;
const EVERY_MS = 2000;
/** The time of the first packet after the last silence. */
let begunMs = 0;
/** The time of the last packet. */
let heardMs = -Infinity;
/** The time of the last collection. */
let collectedMs = 0;

/**
 * Call this after each packet or message. It collects garbage from time to time while packets come. It does not collect
 * when packets begin to come, because then a request waits for the next ones.
 */
export function collectWhileBusy(nowMs = performance.now()): void {
  if (nowMs - heardMs >= EVERY_MS) begunMs = nowMs;
  heardMs = nowMs;
  if (nowMs - begunMs >= EVERY_MS) collectGarbage(nowMs);
}

/**
 * Call this when no request is open. It does nothing if no packet came since the last collection, or if that collection
 * was less than EVERY_MS ago.
 */
export function collectGarbage(nowMs = performance.now()): void {
  if (heardMs <= collectedMs || nowMs - collectedMs < EVERY_MS) return;
  collectedMs = nowMs;
  try {
    new ArrayBuffer(UNTOUCHED_BYTES);
  } catch {
    // If there is no room for the buffer, the browser collects garbage without help.
  }
}
