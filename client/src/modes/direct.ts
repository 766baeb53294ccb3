/**
 * Mode `direct`, and the fallback of the other modes: fetches all bytes or the rest from the origin. It returns the
 * origin's answer unchanged, also an error. It takes the rest only from an answer that matches the earlier bytes.
 */
import {
  isSameVersion,
  parseContentRange,
  strongValidator,
  type RangeRequest,
  type Rejection,
  type RejectionKind,
  type ResponseHead,
} from "@tributary/contract";
import { DownloadError, messageOf } from "../errors";
import type { ModeResult, ActiveDownload } from "../active-download";
import type { Hasher } from "../platform";
import { StallWatch } from "../stall";
import { headersFor, headOf, linkedAbort } from "./http";

/**
 * Which bytes of the answer's body are ours. First `skip` bytes are dropped, then `compare` bytes must be the ones that
 * were delivered, then `take` bytes follow, or all if it is null.
 */
interface Part {
  skip: number;
  compare: number;
  take: number | null;
}

/** The rest cannot be joined to the delivered bytes. */
const UNJOINABLE: ReadonlySet<RejectionKind> = new Set<RejectionKind>(["originChanged", "originRefused"]);

type Accept = (head: ResponseHead) => Part | Rejection;

export function direct(download: ActiveDownload): Promise<ModeResult> {
  return readOrigin(download, download.request.range, (head) => {
    download.setHead(head, 0);
    return { skip: 0, compare: 0, take: head.totalBytes };
  });
}

/**
 * What is still missing after another mode gave up. The rest is asked for by a range if its strong validator shows that
 * it belongs to the delivered bytes. Otherwise the body is fetched from its start, and its beginning must be equal to
 * the delivered bytes.
 */
export async function fetchRest(download: ActiveDownload): Promise<ModeResult> {
  const { head, sink } = download;
  if (!head) return direct(download);
  const offset = sink.deliveredBytes;
  if (head.totalBytes === offset) return { kind: "complete" };
  const base =
    head.status === 206
      ? (parseContentRange(head.headers["content-range"])?.start ?? download.request.range?.start ?? 0)
      : 0;
  if (offset > 0 && strongValidator(head) !== undefined) {
    const end = head.totalBytes === null ? download.request.range?.end : base + head.totalBytes - 1;
    const range = end === undefined ? { start: base + offset } : { start: base + offset, end };
    const result = await readOrigin(download, range, (now) => restOf(head, now, offset, base));
    if (result.kind !== "failed" || !UNJOINABLE.has(result.rejection.kind)) return result;
  }
  return readOrigin(download, download.request.range, (now) => wholeOf(head, now, offset, base));
}

function restOf(head: ResponseHead, now: ResponseHead, offset: number, base: number): Part | Rejection {
  const take = head.totalBytes === null ? null : head.totalBytes - offset;
  if (!isSameVersion(head, now))
    return { kind: "originChanged", message: "The rest does not have the strong validator of the delivered bytes." };
  if (now.status === 200) return { skip: base + offset, take, compare: 0 };
  const start = parseContentRange(now.headers["content-range"])?.start;
  if (now.status === 206 && start === base + offset) return { skip: 0, take: take ?? now.totalBytes, compare: 0 };
  const got = now.status === 206 ? `a range from ${start}` : `status ${now.status}`;
  return {
    kind: "originRefused",
    message: `The origin does not give the rest: asked for bytes from ${base + offset}, got ${got}.`,
  };
}

/** The body from its start. `now` must be an answer of the same length to the same request. */
function wholeOf(head: ResponseHead, now: ResponseHead, offset: number, base: number): Part | Rejection {
  const isPart = now.status === 206;
  const start = isPart ? parseContentRange(now.headers["content-range"])?.start : 0;
  if ((now.status !== 200 && !isPart) || start === undefined || start > base) {
    const got = isPart ? `a range from ${start}` : `status ${now.status}`;
    return { kind: "originRefused", message: `The origin does not give the body again: got ${got}.` };
  }
  const skip = base - start;
  const bytes = now.totalBytes === null ? null : now.totalBytes - skip;
  const isLonger = bytes !== null && head.totalBytes !== null && (isPart || head.status === 200);
  if (isLonger && bytes !== head.totalBytes) {
    const message = `The body changed its length: got ${bytes}, expected ${head.totalBytes}.`;
    return { kind: "originChanged", message, got: bytes, limit: head.totalBytes! };
  }
  const whole = head.totalBytes ?? bytes;
  return { skip, take: whole === null ? null : whole - offset, compare: offset };
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

async function pump(download: ActiveDownload, response: Response, part: Part, watch: StallWatch): Promise<void> {
  const prefix = part.compare > 0 ? new DeliveredPrefix(download, part.compare) : undefined;
  try {
    await pumpAfter(prefix, download, response, part, watch);
  } finally {
    prefix?.discard();
  }
}

async function pumpAfter(
  prefix: DeliveredPrefix | undefined,
  download: ActiveDownload,
  response: Response,
  { skip, compare, take }: Part,
  watch: StallWatch,
): Promise<void> {
  const { sink } = download;
  const end = take === null ? Infinity : skip + compare + take;
  const reader = response.body?.getReader();
  let position = 0;
  while (reader && position < end) {
    if (sink.isFull) {
      watch.pause();
      await sink.ready();
      watch.progress();
    }
    const { done, value } = await reader.read();
    if (done) break;
    watch.progress();
    download.addDirectBytes(value.length);
    const ours = value.subarray(Math.max(0, skip - position), Math.max(0, end - position));
    const fresh = prefix ? await prefix.take(ours) : ours;
    if (fresh.length > 0) sink.write(fresh);
    position += value.length;
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
      throw new DownloadError("originChanged", "The origin's bytes differ from those that the proxies delivered.");
    return bytes.subarray(known.length);
  }
}
