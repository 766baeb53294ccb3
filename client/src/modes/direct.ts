/**
 * Mode `direct`, and the fallback of the other modes: fetches all bytes or the rest from the origin, with as many
 * requests as it takes. It returns the origin's answer, also an error. It asks again if a connection breaks or the
 * origin says that it is busy, and waits as long as the origin asks (RFC 9110 §10.2.3).
 */
import {
  retryAfterMs,
  strongValidator,
  type RangeRequest,
  type Rejection,
  type RejectionKind,
  type ResponseHead,
} from "@tributary/contract";
import { chainOf, DownloadError, messageOf } from "../errors";
import type { ModeResult, ActiveDownload } from "../active-download";
import { askerOf } from "../origin-fetch";
import { pause } from "../pause";
import type { Hasher } from "../platform";
import { StallWatch } from "../stall";
import { linkedAbort } from "./http";
import { firstPart, restPart, wholePart, type Part } from "./origin-part";

/** The rest cannot be joined to the delivered bytes by a range. */
const UNJOINABLE: ReadonlySet<RejectionKind> = new Set<RejectionKind>([
  "originChanged",
  "originRefused",
  "rangeRefused",
]);
/** After one of these nobody knows whether the delivered bytes are the origin's, unless they had its digests. */
const DOUBTS: ReadonlySet<RejectionKind> = new Set<RejectionKind>(["planMismatch", "bodyDiffers"]);
/** The same request may succeed later. */
const BUSY_STATUSES = [408, 425, 429, 502, 503, 504];
/** A connection that breaks so may hold the next time. */
const BROKEN_CODES = ["ECONNRESET", "EPIPE", "ETIMEDOUT", "EAI_AGAIN", "UND_ERR_SOCKET", "UND_ERR_CONNECT_TIMEOUT"];
/** The wait after a request that brought nothing. It doubles from the third one on. */
const BACKOFF_MS = 1000;
/** The wait before the next request if the last one brought bytes. */
const RESUME_MS = 100;

/** An attempt that failed and may be repeated. Without `afterMs` the origin did not say when. */
interface Failure {
  kind: "again";
  rejection: Rejection;
  afterMs?: number | undefined;
}

/** `more`: the origin gave the beginning of what was asked for. */
type Attempt = ModeResult | Failure | { kind: "more" };

type Accept = (head: ResponseHead) => Part | Rejection;

/** Fetches what is still missing. */
export async function direct(download: ActiveDownload): Promise<ModeResult> {
  const { retries, directSilenceMs } = download.settings;
  for (let failures = 0; ;) {
    const before = download.sink.deliveredBytes;
    const isLastTry = failures >= retries;
    const attempt = await askOnce(download, isLastTry);
    const isProgress = download.sink.deliveredBytes > before;
    if (attempt.kind === "more") continue;
    if (attempt.kind !== "again") return attempt;
    failures = isProgress ? 1 : failures + 1;
    const waitMs = attempt.afterMs ?? (isProgress ? RESUME_MS : BACKOFF_MS * 2 ** Math.max(0, failures - 2));
    if (failures > retries || waitMs > directSilenceMs) return { kind: "failed", rejection: attempt.rejection };
    await pause(waitMs, download.signal);
    if (download.signal.aborted) return { kind: "aborted" };
  }
}

/**
 * The rest is asked for by a range if its strong validator shows that it belongs to the delivered bytes. Otherwise, and
 * if the proxies contradicted each other, the body is fetched from its start, and its beginning must be equal to the
 * delivered bytes.
 */
async function askOnce(download: ActiveDownload, isLastTry: boolean): Promise<Attempt> {
  const { head, sink, request } = download;
  const { range, decode } = request;
  if (!head) return ask(download, range, isLastTry, (now) => takeFirst(download, now));
  const offset = sink.deliveredBytes;
  const isTrue = offset > 0 && download.siteCheck?.isWhole === true;
  const isDoubted = download.fallback !== undefined && DOUBTS.has(download.fallback.kind) && !isTrue;
  if (head.totalBytes === offset && (offset > 0 || !isDoubted)) return { kind: "complete" };
  const base = head.status === 206 ? (range?.start ?? 0) : 0;
  if (offset > 0 && !isDoubted && !decode && strongValidator(head) !== undefined) {
    const end = head.totalBytes === null ? (head.status === 206 ? range?.end : undefined) : base + head.totalBytes - 1;
    const rest = end === undefined ? { start: base + offset } : { start: base + offset, end };
    const attempt = await ask(download, rest, isLastTry, (now) => restPart(head, now, offset, base));
    if (attempt.kind !== "failed" || !UNJOINABLE.has(attempt.rejection.kind)) return attempt;
  }
  return ask(download, range, isLastTry, (now) => wholePart(range, head, now, offset, base));
}

function takeFirst(download: ActiveDownload, now: ResponseHead): Part | Rejection {
  const { range, verbatim } = download.request;
  const part = firstPart(range, now, verbatim);
  if ("skip" in part) download.setHead(part.head ?? now, 0);
  return part;
}

async function ask(
  download: ActiveDownload,
  range: RangeRequest | undefined,
  isLastTry: boolean,
  accept: Accept,
): Promise<Attempt> {
  const { request, settings, platform } = download;
  const { controller, unlink } = linkedAbort(download.signal);
  const { directSilenceMs } = settings;
  const watch = new StallWatch(directSilenceMs, directSilenceMs, (ms) =>
    controller.abort(new DownloadError("originSilent", `The origin sent nothing for ${ms} ms.`)),
  );
  try {
    const { url, headers, decode, cache } = request;
    const answer = await askerOf(platform)({ url, range, headers, decode, cache, signal: controller.signal });
    watch.progress();
    const afterMs = retryAfterMs(answer.head, platform.epochMs());
    const isBusy = BUSY_STATUSES.includes(answer.head.status);
    if (isBusy && !isLastTry && (afterMs ?? 0) <= directSilenceMs)
      return { kind: "again", rejection: busy(answer.head), afterMs };
    const part = accept(answer.head);
    if ("kind" in part) return { kind: "failed", rejection: part };
    await pump(download, answer.body, part, watch);
    return { kind: part.isLast ? "complete" : "more" };
  } catch (error) {
    if (download.signal.aborted) return { kind: "aborted" };
    const kind = error instanceof DownloadError ? error.kind : "originFailed";
    const rejection = { kind, message: messageOf(error) };
    return mayRepeat(download, error) ? { kind: "again", rejection } : { kind: "failed", rejection };
  } finally {
    watch.pause();
    unlink();
    controller.abort();
  }
}

function busy({ status }: ResponseHead): Rejection {
  return { kind: "originRefused", message: `The origin answered ${status}.`, got: status };
}

/** Once the origin has answered, every break of the connection is worth another request. */
function mayRepeat(download: ActiveDownload, error: unknown): boolean {
  if (error instanceof DownloadError) {
    if (error.kind === "bodyShort") return true;
    return error.kind === "originSilent" && download.head !== undefined;
  }
  if (download.head) return true;
  return chainOf(error).some(({ code }) => BROKEN_CODES.includes(String(code)));
}

async function pump(
  download: ActiveDownload,
  body: AsyncIterable<Uint8Array>,
  part: Part,
  watch: StallWatch,
): Promise<void> {
  const prefix = part.compare > 0 ? new DeliveredPrefix(download, part.compare) : undefined;
  try {
    await pumpAfter(prefix, download, body, part, watch);
  } finally {
    prefix?.discard();
  }
}

async function pumpAfter(
  prefix: DeliveredPrefix | undefined,
  download: ActiveDownload,
  body: AsyncIterable<Uint8Array>,
  { skip, compare, take }: Part,
  watch: StallWatch,
): Promise<void> {
  const { sink } = download;
  const end = take === null ? Infinity : skip + compare + take;
  let position = 0;
  for await (const bytes of body) {
    watch.progress();
    download.addDirectBytes(bytes.length);
    const ours = bytes.subarray(Math.max(0, skip - position), Math.max(0, end - position));
    const fresh = prefix ? await prefix.take(ours) : ours;
    if (fresh.length > 0) sink.write(fresh);
    position += bytes.length;
    if (position >= end) break;
    if (!sink.isFull) continue;
    watch.pause();
    await sink.ready();
    watch.progress();
  }
  if (prefix?.isOpen || (take !== null && position < end)) {
    throw new DownloadError("bodyShort", `The origin's body ended early: got ${position} bytes, expected ${end}.`);
  }
}

/** Compares the beginning of a body with the delivered bytes, by digest. */
class DeliveredPrefix {
  #leftBytes: number;
  readonly #download: ActiveDownload;
  readonly #hasher: Hasher;

  constructor(download: ActiveDownload, bytes: number) {
    this.#download = download;
    this.#leftBytes = bytes;
    this.#hasher = download.makeHasher();
  }

  discard(): void {
    this.#hasher.discard();
  }

  /** True while bytes of the beginning are missing. */
  get isOpen(): boolean {
    return this.#leftBytes > 0;
  }

  /** Takes the next bytes and returns what follows the beginning. Throws if the beginning is another one. */
  async take(bytes: Uint8Array): Promise<Uint8Array> {
    if (!this.isOpen) return bytes;
    const known = bytes.subarray(0, this.#leftBytes);
    this.#hasher.update(known);
    this.#leftBytes -= known.length;
    if (this.isOpen) return bytes.subarray(known.length);
    const [got, expected] = await Promise.all([this.#hasher.digest(), this.#download.digest()]);
    if (got === null || got !== expected)
      throw new DownloadError("originChanged", "The origin's bytes differ from those that were delivered.");
    this.#download.handleEqualToSite();
    return bytes.subarray(known.length);
  }
}
