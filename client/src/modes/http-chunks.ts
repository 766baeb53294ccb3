/**
 * Chunks of the modes over HTTP: a request longer than one chunk is cut into ranges, which are fetched one after
 * the other. Only parts with the same strong validator are joined.
 */
import type { ByteRange, Rejection, ResponseHead } from "@tributary/contract";
import type { ActiveDownload, ModeResult } from "../active-download";
import type { ProxyInfo } from "../api";
import { StallWatch } from "../stall";
import { cutAfter, cutBefore, cutEnd, cutFault } from "./cuts";
import { wholeBlocks } from "../published/object-request";
import { wholeHead } from "./http";
import type { HttpPlan } from "./block-check";
import { proxiedFault } from "./origin-part";
import type { ProxyFailure } from "./proxy-http";

/** A download, and the proxies that bring it. */
export interface HttpTask {
  download: ActiveDownload;
  proxies: readonly ProxyInfo[];
  onProxyFailed: ProxyFailure;
}

/** Notes the failure of a proxy. One that found the chunk too long has not failed: the request is cut into ranges. */
export function noteFailure({ download, proxies, onProxyFailed }: HttpTask, index: number, rejection: Rejection): void {
  if (rejection.kind === "chunkTooLarge") return;
  download.tally.fail(index, rejection);
  onProxyFailed(proxies[index]!, rejection);
}

/** Calls `onStalled` when nothing has come from any proxy for too long. */
export function watchStall({ download, proxies }: HttpTask, onStalled: (rejection: Rejection) => void): StallWatch {
  const { firstByteMs, stallMs } = download.settings;
  return new StallWatch(firstByteMs, stallMs, (ms) =>
    onStalled({ kind: "stalled", message: `Nothing came from ${proxies.length} proxies for ${ms} ms.` }),
  );
}

/** Fetches one chunk into the sink. It calls `onPlan` before the first byte, and ends with the fault that returns. */
export type FetchChunk = (
  range: ByteRange | undefined,
  onPlan: (plan: HttpPlan) => Rejection | undefined,
) => Promise<ModeResult>;

export async function inChunks(download: ActiveDownload, fetchChunk: FetchChunk): Promise<ModeResult> {
  const before = cutBefore(download);
  if (before) return inCuts(download, before, fetchChunk);
  const { range } = download.asked;
  const result = await fetchChunk(range, ({ head, serverFetchMs }) => {
    const fault = proxiedFault(download.request, range, head);
    if (!fault) download.setHead(head, serverFetchMs);
    return fault;
  });
  const after = cutAfter(download, result);
  return after ? inCuts(download, after, fetchChunk) : result;
}

async function inCuts(download: ActiveDownload, whole: ByteRange, fetchChunk: FetchChunk): Promise<ModeResult> {
  const { object, asked, settings } = download;
  const status = asked.range ? 206 : 200;
  const cutBytes = object ? wholeBlocks(settings.chunkBytesMax) : settings.chunkBytesMax;
  let first: (ResponseHead & { version: string | undefined }) | undefined;
  let { end } = whole;
  for (let start = whole.start; start <= end;) {
    const range = { start, end: Math.min(start + cutBytes - 1, end) };
    const result = await fetchChunk(range, ({ head, serverFetchMs, version }) => {
      const fault = proxiedFault(download.request, range, head);
      first ??= { ...head, version };
      const cut = fault ?? (object ? undefined : cutFault(first, { ...head, version }, range));
      if (cut) return cut;
      const last = cutEnd(end, head, status === 200);
      if (typeof last === "object") return last;
      end = last;
      download.setHead(wholeHead(first, { start: whole.start, end }, status), serverFetchMs);
      return undefined;
    });
    if (result.kind !== "complete") return result;
    start = range.end + 1;
  }
  return { kind: "complete" };
}
