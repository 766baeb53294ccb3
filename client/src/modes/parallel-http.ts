/**
 * Mode `parallel-http`, the paper's uncoded baseline: sends the same request to every proxy and delivers bytes from the
 * answer that is furthest ahead. The first complete answer stops the others. The bytes of all answers count. Bytes of
 * two answers are joined only if both have the same strong validator. Without one, the first answer alone is used.
 */
import { isSameVersion, type Rejection } from "@tributary/contract";
import type { ProxyInfo } from "../api";
import { DownloadError, faultOf } from "../errors";
import type { ModeResult, ActiveDownload } from "../active-download";
import { StallWatch } from "../stall";
import { differenceOf, linkedAbort, statusFault } from "./http";
import { fetchThrough, type ProxyFailure } from "./proxy-http";

export async function parallelHttp(
  download: ActiveDownload,
  proxies: readonly ProxyInfo[],
  onProxyFailed: ProxyFailure,
): Promise<ModeResult> {
  const { controller, unlink } = linkedAbort(download.signal);
  let stalled: Rejection | undefined;
  const watch = new StallWatch(download.settings.firstByteMs, download.settings.stallMs, (ms) => {
    stalled = { kind: "stalled", message: `Nothing came from ${proxies.length} proxies for ${ms} ms.` };
    controller.abort();
  });
  let won = false;
  let last: Rejection = { kind: "proxiesFailed", message: "No proxy answered." };
  const lanes = proxies.map(async (proxy, index) => {
    try {
      if (!(await runLane(download, proxy, index, controller.signal, watch))) return;
      won = true;
      controller.abort();
    } catch (error) {
      if (controller.signal.aborted) return;
      last = faultOf(error);
      download.tally.fail(index, last);
      onProxyFailed(proxy, last);
    }
  });
  await Promise.all(lanes);
  watch.pause();
  unlink();
  if (won) return { kind: "complete" };
  if (download.signal.aborted) return { kind: "aborted" };
  return { kind: "failed", rejection: stalled ?? last };
}

/**
 * Reads one answer from its head to its end. Returns false if another answer is used and this one cannot be joined to
 * it. Throws when the answer is useless or is aborted.
 */
async function runLane(
  download: ActiveDownload,
  proxy: ProxyInfo,
  index: number,
  signal: AbortSignal,
  watch: StallWatch,
): Promise<boolean> {
  const { sink, tally } = download;
  const { response, head, serverFetchMs } = await fetchThrough(download, proxy, download.request.range, signal);
  const fault = statusFault(download.request.allowFallback, head);
  if (fault) throw DownloadError.of(fault);
  const difference = download.head ? differenceOf(download.head, head) : undefined;
  if (difference) throw new DownloadError("planMismatch", difference);
  if (download.head && !isSameVersion(download.head, head)) {
    await response.body?.cancel();
    return false;
  }
  download.setHead(head, serverFetchMs);
  const reader = response.body?.getReader();
  let position = 0;
  while (reader) {
    if (sink.isFull) {
      watch.pause();
      await sink.ready();
      watch.progress();
    }
    const { done, value } = await reader.read();
    if (done) break;
    watch.progress();
    tally.addBytes(index, value.length);
    const fresh = position + value.length - sink.deliveredBytes;
    position += value.length;
    if (fresh > 0 && !signal.aborted) sink.write(value.subarray(value.length - fresh));
  }
  if (head.totalBytes !== null && position !== head.totalBytes) {
    throw new DownloadError("bodyShort", `The answer ended early: got ${position} bytes, expected ${head.totalBytes}.`);
  }
  return true;
}
