/**
 * Mode `parallel-http`, the paper's rival without coding: the same request to every proxy. Bytes are handed on from
 * whichever answer is furthest ahead; the first to end wins and the others are stopped. What all of them sent counts.
 */
import type { Rejection } from "@tributary/protocol";
import type { DownloadHead, ProxyInfo } from "../api";
import { DownloadError, messageOf } from "../errors";
import type { ModeResult, Run } from "../run";
import { StallWatch } from "../stall";
import { differenceOf, headersFor, headOf, linkedAbort } from "./http";

const ERROR_BODY_CHARS_MAX = 4096;
const PASSED_ON = ["content-type", "content-length", "content-range", "etag", "last-modified", "accept-ranges"];
/** Those that the proxy sends as `x-origin-...`, since from itself they would mean something else. */
const RENAMED = ["access-control-allow-origin", "access-control-expose-headers", "location"];

export interface ProxyFailure {
  (proxy: ProxyInfo, rejection: Rejection): void;
}

export async function parallelHttp(run: Run, proxies: readonly ProxyInfo[], onProxyFailed: ProxyFailure): Promise<ModeResult> {
  const { controller, unlink } = linkedAbort(run.signal);
  let stalled: Rejection | undefined;
  const watch = new StallWatch(run.settings.firstByteMs, run.settings.stallMs, (ms) => {
    stalled = { kind: "stalled", message: `Nothing came from ${proxies.length} proxies for ${ms} ms.` };
    controller.abort();
  });
  let won = false;
  let last: Rejection = { kind: "proxiesFailed", message: "No proxy answered." };
  const lanes = proxies.map(async (proxy, index) => {
    try {
      await runLane(run, proxy, index, controller.signal, watch);
      won = true;
      controller.abort();
    } catch (error) {
      if (controller.signal.aborted) return;
      last = { kind: error instanceof DownloadError ? error.kind : "proxyFailed", message: messageOf(error) };
      run.tally.fail(index, `${last.kind}: ${last.message}`);
      onProxyFailed(proxy, last);
    }
  });
  await Promise.all(lanes);
  watch.pause();
  unlink();
  if (won) return { kind: "complete" };
  if (run.signal.aborted) return { kind: "aborted" };
  return { kind: "failed", rejection: stalled ?? last };
}

/** One answer from its head to its end. Throws when it is of no use, or no longer. */
async function runLane(run: Run, proxy: ProxyInfo, index: number, signal: AbortSignal, watch: StallWatch): Promise<void> {
  const { sink, tally } = run;
  const response = await run.platform.fetch(`${proxy.url}/v1/fetch?url=${encodeURIComponent(run.request.url)}`, {
    headers: headersFor(run.request.range),
    credentials: "omit",
    cache: "no-store",
    signal,
  });
  const head = await originHead(run, response);
  const reader = response.body?.getReader();
  let position = 0;
  while (reader) {
    if (sink.isFull) {
      watch.pause();
      await sink.ready();
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
}

/** The origin's head as the proxy passes it on; the first one is the one that the others must agree with. */
async function originHead(run: Run, response: Response): Promise<DownloadHead> {
  const serverFetchMs = originTime(response.headers.get("server-timing"));
  if (serverFetchMs === undefined && response.status >= 400) throw await proxyError(response);
  const { headers, ...rest } = headOf(response);
  const head = { ...rest, headers: originHeaders(headers) };
  const difference = run.head ? differenceOf(run.head, head) : undefined;
  if (difference) throw new DownloadError("planMismatch", difference);
  run.setHead(head, serverFetchMs ?? 0);
  return head;
}

/** The headers that are the origin's; what the proxy says for itself stays out. */
function originHeaders(headers: Record<string, string>): Record<string, string> {
  const kept = Object.fromEntries(PASSED_ON.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])));
  const renamed = RENAMED.flatMap((name) => (headers[`x-origin-${name}`] === undefined ? [] : [[name, headers[`x-origin-${name}`]]]));
  return { ...kept, ...(Object.fromEntries(renamed) as Record<string, string>) };
}

/** `origin;dur=12.3` of a Server-Timing header: only answers that come from the origin carry it. */
function originTime(value: string | null): number | undefined {
  const match = /(?:^|,)\s*origin\s*;\s*dur=([\d.]+)/.exec(value ?? "");
  return match ? Number(match[1]) : undefined;
}

async function proxyError(response: Response): Promise<DownloadError> {
  const text = (await response.text()).slice(0, ERROR_BODY_CHARS_MAX);
  try {
    const { error } = JSON.parse(text) as { error: { kind: unknown; message: unknown } };
    return new DownloadError(String(error.kind), String(error.message));
  } catch {
    return new DownloadError("proxyFailed", `The proxy answered ${response.status}.`);
  }
}
