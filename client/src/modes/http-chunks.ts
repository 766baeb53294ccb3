/**
 * Chunks of the modes over HTTP: a request longer than one chunk is cut into ranges, which are fetched one after
 * the other. Only parts with the same strong validator are joined.
 */
import { parseContentRange, type ByteRange, type Rejection, type ResponseHead } from "@tributary/contract";
import type { ActiveDownload, ModeResult } from "../active-download";
import type { ProxyInfo } from "../api";
import { StallWatch } from "../stall";
import { cutFault, wholeHead } from "./http";
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

/** The answer on which the proxies of a chunk agree. */
export interface HttpPlan {
  head: ResponseHead & { totalBytes: number };
  serverFetchMs: number;
  /** The strong validator that all of them gave. */
  version: string | undefined;
}

/** Fetches one chunk into the sink. It calls `onPlan` before the first byte, and ends with the fault that returns. */
export type FetchChunk = (
  range: ByteRange | undefined,
  onPlan: (plan: HttpPlan) => Rejection | undefined,
) => Promise<ModeResult>;

export async function inChunks(download: ActiveDownload, fetchChunk: FetchChunk): Promise<ModeResult> {
  const { range } = download.request;
  const { chunkBytesMax } = download.settings;
  if (range && range.end - range.start + 1 > chunkBytesMax) return inCuts(download, range, 206, fetchChunk);
  const result = await fetchChunk(range, ({ head, serverFetchMs }) => {
    const fault = proxiedFault(download.request, range, head);
    if (!fault) download.setHead(head, serverFetchMs);
    return fault;
  });
  const isTooLong = result.kind === "failed" && result.rejection.kind === "chunkTooLarge" && !range && !download.head;
  const length = isTooLong ? result.rejection.got : undefined;
  if (length === undefined || length <= chunkBytesMax) return result;
  return inCuts(download, { start: 0, end: length - 1 }, 200, fetchChunk);
}

/** With status 200 the download goes up to the end of the resource, even if the proxies reported another length. */
async function inCuts(
  download: ActiveDownload,
  whole: ByteRange,
  status: 200 | 206,
  fetchChunk: FetchChunk,
): Promise<ModeResult> {
  let first: (ResponseHead & { version: string | undefined }) | undefined;
  let { end } = whole;
  for (let start = whole.start; start <= end;) {
    const range = { start, end: Math.min(start + download.settings.chunkBytesMax - 1, end) };
    const result = await fetchChunk(range, ({ head, serverFetchMs, version }) => {
      const fault = proxiedFault(download.request, range, head);
      first ??= { ...head, version };
      const cut = fault ?? cutFault(first, { ...head, version }, range);
      if (cut) return cut;
      const total = parseContentRange(head.headers["content-range"])?.resourceBytes ?? undefined;
      if (total !== undefined) end = status === 200 ? total - 1 : Math.min(end, total - 1);
      download.setHead(wholeHead(first, { start: whole.start, end }, status), serverFetchMs);
      return undefined;
    });
    if (result.kind !== "complete") return result;
    start = range.end + 1;
  }
  return { kind: "complete" };
}
