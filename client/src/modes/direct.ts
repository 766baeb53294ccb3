/**
 * Mode `direct`, and the fallback of the other modes: fetches all bytes or the rest from the origin. It returns the
 * origin's answer unchanged, also an error. It takes the rest only from an answer that matches the earlier bytes.
 */
import { parseContentRange, type RangeRequest, type ResponseHead, type Rejection } from "@tributary/contract";
import { DownloadError, messageOf } from "../errors";
import type { ModeResult, ActiveDownload } from "../active-download";
import { StallWatch } from "../stall";
import { headersFor, headOf, linkedAbort, resourceBytes, versionDifference } from "./http";

/** Which bytes of the answer's body are ours: `take` null means all after `skip`. */
interface Part {
  skip: number;
  take: number | null;
}

type Accept = (head: ResponseHead) => Part | Rejection;

export function direct(download: ActiveDownload): Promise<ModeResult> {
  return readOrigin(download, download.request.range, (head) => {
    download.setHead(head, 0);
    return { skip: 0, take: head.totalBytes };
  });
}

/** What is still missing after another mode gave up. */
export async function fetchRest(download: ActiveDownload): Promise<ModeResult> {
  const { head, sink } = download;
  if (!head) return direct(download);
  const offset = sink.deliveredBytes;
  if (head.totalBytes === offset) return { kind: "complete" };
  if (head.status !== 200 && head.status !== 206)
    return readOrigin(download, download.request.range, (now) => restOfError(head, now, offset));
  const base =
    head.status === 206
      ? (parseContentRange(head.headers["content-range"])?.start ?? download.request.range?.start ?? 0)
      : 0;
  const start = base + offset;
  const end = head.totalBytes === null ? download.request.range?.end : base + head.totalBytes - 1;
  const range = end === undefined ? { start } : { start, end };
  return readOrigin(download, start === 0 && head.status === 200 ? undefined : range, (now) =>
    restOf(head, now, offset, base),
  );
}

function restOf(head: ResponseHead, now: ResponseHead, offset: number, base: number): Part | Rejection {
  const take = head.totalBytes === null ? null : head.totalBytes - offset;
  const changed = versionDifference(head, now);
  const [known, told] = [resourceBytes(head), resourceBytes(now)];
  if (changed) return { kind: "originChanged", message: changed };
  if (known !== null && told !== null && known !== told) {
    const message = `The resource changed its length: got ${told}, expected ${known}.`;
    return { kind: "originChanged", message, got: told, limit: known };
  }
  if (now.status === 200) return { skip: base + offset, take };
  const start = parseContentRange(now.headers["content-range"])?.start;
  if (now.status === 206 && start === base + offset) return { skip: 0, take: take ?? now.totalBytes };
  const got = now.status === 206 ? `a range from ${start}` : `status ${now.status}`;
  return {
    kind: "originRefused",
    message: `The origin does not give the rest: asked for bytes from ${base + offset}, got ${got}.`,
  };
}

function restOfError(head: ResponseHead, now: ResponseHead, offset: number): Part | Rejection {
  if (now.status === head.status && now.totalBytes === head.totalBytes) return { skip: offset, take: now.totalBytes };
  return { kind: "originChanged", message: `The origin's status changed: got ${now.status}, expected ${head.status}.` };
}

async function readOrigin(
  download: ActiveDownload,
  range: RangeRequest | undefined,
  accept: Accept,
): Promise<ModeResult> {
  const { controller, unlink } = linkedAbort(download.signal);
  const silenceMs = download.settings.directSilenceMs;
  const watch = new StallWatch(silenceMs, silenceMs, (ms) => {
    controller.abort(new DownloadError("originSilent", `The origin sent nothing for ${ms} ms.`));
  });
  try {
    const response = await download.platform.fetch(download.request.url, {
      headers: headersFor(range),
      credentials: "omit",
      cache: download.request.cache,
      signal: controller.signal,
    });
    watch.progress();
    const part = accept(headOf(response));
    if ("kind" in part) return { kind: "failed", rejection: part };
    await pump(download, response, part, watch);
    return { kind: "complete" };
  } catch (error) {
    if (download.signal.aborted) return { kind: "aborted" };
    const kind = error instanceof DownloadError ? error.kind : "originFailed";
    return { kind: "failed", rejection: { kind, message: messageOf(error) } };
  } finally {
    watch.pause();
    unlink();
    controller.abort();
  }
}

async function pump(
  download: ActiveDownload,
  response: Response,
  { skip, take }: Part,
  watch: StallWatch,
): Promise<void> {
  const end = take === null ? Infinity : skip + take;
  const reader = response.body?.getReader();
  let position = 0;
  while (reader && position < end) {
    if (download.sink.isFull) {
      watch.pause();
      await download.sink.ready();
      watch.progress();
    }
    const { done, value } = await reader.read();
    if (done) break;
    watch.progress();
    download.addDirectBytes(value.length);
    const from = Math.max(0, skip - position);
    const to = Math.min(value.length, end - position);
    if (to > from) download.sink.write(value.subarray(from, to));
    position += value.length;
  }
  if (take !== null && position < end) {
    throw new DownloadError("bodyShort", `The origin's body ended early: got ${position} bytes, expected ${end}.`);
  }
}
