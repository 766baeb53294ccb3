/**
 * One download while it runs. It holds the parts that all modes share (head, sink, tally, abort) and makes the record
 * at the end. The modes write to it. client.ts decides the order of the steps.
 */
import type { ResponseHead, Rejection } from "@tributary/contract";
import type { Trace } from "@tributary/contract/query-schema";
import type { DownloadRecord, DrawnArm } from "@tributary/contract/schema";
import type { Mode, OwnRest, ProxyInfo, Publisher } from "./api";
import { abortError, DownloadError, messageOf, withoutPasswords } from "./errors";
import type { RequestTrace } from "./messages";
import type { Hasher, Platform } from "./platform";
import type { ObjectRequest } from "./published/object-request";
import { plainUrl, type Request } from "./request";
import { BodySink } from "./sink";
import { Tally, type LiveBoard } from "./tally";
import { VOUCHERS, type Voucher } from "@tributary/contract/record-fields";
import type { Settings } from "./settings";
import type { SegmentCheck } from "./site/segment-check";

/** How a mode ended. */
export type ModeResult = { kind: "complete" } | { kind: "failed"; rejection: Rejection } | { kind: "aborted" };

export interface ActiveDownloadOptions {
  request: Request;
  platform: Platform;
  settings: Settings;
  makeHasher: () => Hasher;
  board: LiveBoard;
}

/** The options and settings of a download. The version and the arms are for its record. */
export interface DownloadBasis {
  request: Request;
  settings: Settings;
  configVersion: number | undefined;
  experiments: DrawnArm[];
  /** Note when each packet came. */
  traced: boolean;
}

/** The fields that are the same in all records of a client. */
export type Reporting = Pick<DownloadRecord, "source" | "clientId" | "clientVersion" | "agent" | "os">;

/** These modes send no packets, so their records have no tuning values. */
const UNCODED_MODES = new Set<Mode>(["direct", "parallel-http", "split-http"]);
const MESSAGE_CHARS_MAX = 2000;
const TYPE_CHARS_MAX = 128;
/**
 * A trace keeps this many packets and this many feedback frames. It omits the later ones, and no chunk is traced once
 * there are enough packets: a long download would otherwise fill the memory.
 */
const TRACE_ITEMS_MAX = 65_536;

export class ActiveDownload {
  readonly id: string;
  readonly platform: Platform;
  readonly makeHasher: () => Hasher;
  readonly sink: BodySink;
  readonly headPromise: Promise<ResponseHead>;
  head: ResponseHead | undefined;
  tally: Tally;
  tokenSource: () => string | undefined = () => undefined;
  serverFetchMs = 0;
  firstPacketMs: number | undefined;
  /** Time until the first session to a proxy was open. */
  connectMs: number | undefined;
  /** The name of the codec's engine. */
  engine: string | undefined;
  fallback: Rejection | undefined;
  /** The counts are final when all of these have ended. */
  readonly closing: Promise<void>[] = [];
  /** Who signed the digests with which each byte is checked. Undefined if nobody did. */
  publisher: Publisher | undefined;
  /** The published object that is wanted. Only bytes that the publisher has signed are written. */
  object: ObjectRequest | undefined;
  /** Holds what the proxies bring against the site's own digests. */
  siteCheck: SegmentCheck | undefined;
  #asked: Pick<Request, "url" | "range" | "cache" | "pageOrigin"> | undefined;
  #vouchedBy: Voucher | undefined;
  #tracedPackets = 0;
  readonly #traces: { fromByte: number; fromMs: number; trace: RequestTrace; generationCount: number }[] = [];
  #basis: DownloadBasis;
  readonly #startMs: number;
  readonly #startedAtMs: number;
  readonly #hasher: Hasher;
  readonly #board: LiveBoard;
  readonly #controller = new AbortController();
  readonly #carrying = new AbortController();
  #noteAborted!: () => void;
  readonly untilAborted = new Promise<undefined>((resolve) => (this.#noteAborted = () => resolve(undefined)));
  #firstByteMs: number | undefined;
  #durationMs = 0;
  #headMs: number | undefined;
  #result: ModeResult | undefined;
  #resolveHead!: (head: ResponseHead) => void;
  #rejectHead!: (error: Error) => void;

  constructor(options: ActiveDownloadOptions) {
    const { platform, makeHasher, board } = options;
    this.id = platform.randomUUID();
    this.#basis = {
      request: options.request,
      settings: options.settings,
      configVersion: undefined,
      experiments: [],
      traced: false,
    };
    this.platform = platform;
    this.makeHasher = makeHasher;
    this.#hasher = makeHasher();
    this.#board = board;
    this.#startMs = platform.now();
    this.#startedAtMs = platform.epochMs();
    this.tally = new Tally([], board.onProxy);
    this.headPromise = new Promise((resolve, reject) => {
      this.#resolveHead = resolve;
      this.#rejectHead = reject;
    });
    this.headPromise.catch(() => undefined);
    const handleAbort = (): void => {
      this.#carrying.abort(this.signal.reason);
      this.#noteAborted();
    };
    this.signal.addEventListener("abort", handleAbort, { once: true });
    this.sink = new BodySink({
      hasher: this.#hasher,
      queuedBytesMax: this.settings.queuedBytesMax,
      onBytes: (count) => {
        this.#firstByteMs ??= this.elapsedMs();
        board.deliveredBytes += count;
      },
      onCancel: (reason) => this.giveUp(reason),
    });
  }

  /** Opens the proxies for the next request. A token allows a number of bytes, so a long download needs several. */
  get token(): string | undefined {
    return this.tokenSource();
  }

  get request(): Request {
    return this.#basis.request;
  }

  /** What the proxies are asked for. */
  get asked(): Pick<Request, "url" | "range" | "cache" | "pageOrigin"> {
    return this.#asked ?? this.request;
  }

  /** The request is for this object. */
  wantObject(object: ObjectRequest): void {
    this.object = object;
    this.beginAgain();
  }

  /** The next mode begins with what was not handed on. Requests for objects only. */
  beginAgain(): void {
    if (this.object)
      this.#asked = { url: this.object.url, range: this.object.begin(), cache: "default", pageOrigin: undefined };
  }

  /** Takes the next bytes of what the proxies were asked for. */
  write(bytes: Uint8Array): void {
    const checked = this.siteCheck ? this.siteCheck.take(bytes, this.head) : bytes;
    if (checked.length < bytes.length) this.request.onHeld?.();
    this.sink.write(this.object ? this.object.take(checked) : checked);
    if (this.siteCheck?.fault) this.#carrying.abort();
  }

  /** Hands on what waited for the site's digests. */
  handleDigests(): void {
    if (this.head) this.write(new Uint8Array());
  }

  /** The result of what came through proxies. It is a failure if that is not the site's, also without any byte. */
  checked(result: ModeResult): ModeResult {
    if (result.kind === "complete" && this.siteCheck) this.sink.write(this.siteCheck.finish(this.head));
    const rejection = this.siteCheck?.fault;
    return rejection ? { kind: "failed", rejection } : result;
  }

  get settings(): Settings {
    return this.#basis.settings;
  }

  /** Sets the options and settings when Origo's configuration is known, before the mode begins. */
  goBy(basis: DownloadBasis): void {
    this.#basis = basis;
  }

  /** Whether to trace the next chunk. */
  get traced(): boolean {
    return this.#basis.traced && this.#tracedPackets < TRACE_ITEMS_MAX;
  }

  /** Adds the packets of one chunk. The chunk begins at `fromByte`, and the client asked for it at `fromMs`. */
  addTrace(fromByte: number, fromMs: number, trace: RequestTrace, generationCount: number): void {
    this.#tracedPackets += trace.packets.length;
    this.#traces.push({ fromByte, fromMs, trace, generationCount });
  }

  /** The trace of all chunks in the order of their bytes, or undefined if nothing was traced. */
  trace(): Trace | undefined {
    if (this.#traces.length === 0) return undefined;
    const whole: Trace = { id: this.id, generationCount: 0, packets: [], feedback: [] };
    for (const { fromMs, trace, generationCount } of [...this.#traces].sort((a, b) => a.fromByte - b.fromByte)) {
      for (const [ms, proxy, generation, fate] of trace.packets)
        whole.packets.push([fromMs + ms, proxy, whole.generationCount + generation, fate]);
      for (const [ms, proxy] of trace.feedback) whole.feedback.push([fromMs + ms, proxy]);
      whole.generationCount += generationCount;
    }
    whole.packets.sort(([a], [b]) => a - b).splice(TRACE_ITEMS_MAX);
    whole.feedback.sort(([a], [b]) => a - b).splice(TRACE_ITEMS_MAX);
    return whole;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Ends what goes through proxies: the download was aborted, or their bytes are wrong. */
  get carrySignal(): AbortSignal {
    return this.#carrying.signal;
  }

  elapsedMs(): number {
    return this.platform.now() - this.#startMs;
  }

  useProxies(proxies: readonly ProxyInfo[]): void {
    for (const proxy of proxies) this.#board.of(proxy);
    this.tally = new Tally(proxies, this.#board.onProxy);
  }

  /** Sets the origin's answer. Only the first call counts. */
  setHead(answered: ResponseHead, serverFetchMs: number): void {
    if (this.head) return;
    const head = this.object?.head ?? answered;
    this.head = head;
    this.#headMs = this.elapsedMs();
    this.serverFetchMs = serverFetchMs;
    this.#resolveHead(head);
  }

  addDirectBytes(count: number): void {
    this.vouch("site");
    this.tally.directBytes += count;
    this.#board.directBytes += count;
  }

  /** Says who vouches for a part of the body. The weakest word counts. */
  vouch(by: Voucher | undefined): void {
    if (by === undefined) return;
    if (VOUCHERS.indexOf(by) < VOUCHERS.indexOf(this.#vouchedBy ?? "publisher")) this.#vouchedBy = by;
  }

  /** The site itself has shown that all bytes up to here are its own. */
  handleEqualToSite(): void {
    this.#vouchedBy = "site";
  }

  abort(reason?: unknown): void {
    if (this.#result || this.signal.aborted || this.sink.isDrained) return;
    this.#controller.abort(abortError(reason));
    this.settle({ kind: "aborted" });
  }

  /** Why it failed; undefined if it did not. */
  get rejection(): Rejection | undefined {
    return this.#result?.kind === "failed" ? this.#result.rejection : undefined;
  }

  /** The caller wants no more bytes. An error that is no abort says what failed at the caller. */
  giveUp(reason?: unknown): void {
    const isFault = reason instanceof Error && !["AbortError", "TimeoutError"].includes(reason.name);
    if (!isFault) return this.abort(reason);
    if (this.#result || this.signal.aborted || this.sink.isDrained) return;
    this.#controller.abort(reason);
    this.settle({ kind: "failed", rejection: { kind: "readerFailed", message: messageOf(reason) } });
  }

  /** Ends the caller's streams. Only the first call counts. */
  settle(result: ModeResult): void {
    if (this.#result) return;
    this.#result = result;
    this.#durationMs = this.elapsedMs();
    if (result.kind === "complete") {
      this.sink.close();
      return;
    }
    const error = this.signal.aborted ? (this.signal.reason as Error) : errorOf(result);
    if (this.signal.aborted) this.sink.abort(error);
    else this.sink.fail(error);
    this.#rejectHead(error);
  }

  /**
   * Returns the record of a settled download. It waits up to `closeWaitMs` for `closing`. `rest` is what the caller
   * itself has just fetched.
   */
  async record(reporting: Reporting, rest?: OwnRest): Promise<DownloadRecord> {
    if (rest !== undefined) this.#durationMs = this.elapsedMs();
    await this.#closed();
    const { tally } = this;
    const { request, configVersion, experiments } = this.#basis;
    const netBytes = rest === undefined ? this.sink.deliveredBytes : rest.offset + rest.bytes;
    const directBytes = tally.directBytes + (rest?.bytes ?? 0);
    const grossBytes = tally.grossBytes + (rest?.bytes ?? 0);
    const fallback = rest?.reason ?? this.fallback;
    const error = this.#errorOf(rest);
    const restHeadMs = rest && Math.min(rest.headMs, this.#durationMs);
    const outcome = rest?.outcome ?? this.#result?.kind ?? "aborted";
    const perSecond = (bytes: number): number => (this.#durationMs > 0 ? (bytes * 1000) / this.#durationMs : 0);
    const coded = UNCODED_MODES.has(request.mode) ? {} : request.tuning;
    const contentType = this.head?.headers["content-type"]?.split(";")[0]?.trim().slice(0, TYPE_CHARS_MAX);
    const optional = {
      ...coded,
      ...tally.totals,
      contentType,
      totalBytes: this.head?.totalBytes,
      headMs: this.#headMs ?? restHeadMs,
      engine: this.engine,
      connectMs: this.connectMs,
      firstPacketMs: this.firstPacketMs,
      vouchedBy: this.#voucherOf(rest),
    };
    return {
      id: this.id,
      ...reporting,
      startedAtMs: Math.round(this.#startedAtMs),
      url: plainUrl(request.url),
      ...(request.range ? { range: request.range } : {}),
      mode: request.mode,
      connections: request.connections,
      purpose: request.purpose,
      status: rest?.status ?? this.head?.status ?? 0,
      netBytes,
      grossBytes,
      directBytes,
      durationMs: this.#durationMs,
      firstByteMs: Math.min(this.#durationMs, this.#firstByteMs ?? restHeadMs ?? Infinity),
      serverFetchMs: this.serverFetchMs,
      closeMs: Math.max(0, this.elapsedMs() - this.#durationMs),
      throughputBytesPerSec: perSecond(grossBytes),
      goodputBytesPerSec: perSecond(netBytes),
      normalizedGoodput: grossBytes > 0 ? netBytes / grossBytes : 0,
      outcome,
      ...(error === undefined ? {} : { error: cut(error) }),
      fallback: fallback === undefined ? null : { ...cut(fallback), bytes: directBytes },
      sha256: await this.#lastDigest(outcome === "complete" && rest === undefined),
      ...pickDefined(optional, [
        "generationSize",
        "windowPackets",
        "symbolBytes",
        "feedbackEveryPackets",
        "feedbackEveryMs",
        "symbolCount",
        "generationCount",
        "feedbackFrames",
        "contentType",
        "totalBytes",
        "headMs",
        "engine",
        "connectMs",
        "firstPacketMs",
        "vouchedBy",
      ]),
      ...pickDefined(request, ["player", "comment", "userComment"]),
      ...(configVersion === undefined ? {} : { configVersion }),
      ...(experiments.length === 0 ? {} : { experiments }),
      proxies: tally.proxies.map((proxy) => ({
        ...proxy,
        ...(proxy.error === undefined ? {} : { error: cut(proxy.error) }),
      })),
    };
  }

  /** `rest` came from the site, so all did if nothing came before. */
  #voucherOf(rest: OwnRest | undefined): Voucher | undefined {
    if (this.publisher !== undefined && rest === undefined) return "publisher";
    const isSites = rest === undefined ? this.siteCheck?.isWhole : rest.offset === 0;
    return isSites ? "site" : this.#vouchedBy;
  }

  async #closed(): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, this.settings.closeWaitMs)));
    await Promise.race([Promise.all(this.closing), late]);
    clearTimeout(timer);
  }

  /** The digest of all delivered bytes. */
  digest(): Promise<string | null> {
    return this.#hasher.digest().catch(() => null);
  }

  async #lastDigest(wanted: boolean): Promise<string | null> {
    const digest = wanted ? await this.digest() : null;
    this.#hasher.discard();
    return digest;
  }

  /** Why the caller did not get all bytes. */
  #errorOf(rest: OwnRest | undefined): Rejection | undefined {
    const result = this.#result ?? { kind: "aborted" };
    if (rest?.outcome === "complete" || (rest === undefined && result.kind === "complete")) return undefined;
    if (rest?.outcome === "failed") return { kind: "originFailed", message: "The caller's own request failed, too." };
    if (rest?.outcome === "aborted") return { kind: "aborted", message: "The caller gave up its own request." };
    if (result.kind === "failed") return result.rejection;
    return { kind: "aborted", message: messageOf((this.signal as { reason: unknown }).reason) };
  }
}

function errorOf(result: Exclude<ModeResult, { kind: "complete" }>): Error {
  return result.kind === "failed" ? DownloadError.of(result.rejection) : abortError(undefined);
}

function cut({ kind, message }: Rejection): Pick<Rejection, "kind" | "message"> {
  return { kind, message: withoutPasswords(message).slice(0, MESSAGE_CHARS_MAX) };
}

function pickDefined<T extends object, K extends keyof T>(
  from: T,
  names: readonly K[],
): { [P in K]?: NonNullable<T[P]> } {
  const picked: { [P in K]?: NonNullable<T[P]> } = {};
  for (const name of names) {
    const value = from[name];
    if (value !== undefined && value !== null) picked[name] = value;
  }
  return picked;
}
