/**
 * Modes `uncoded-mutp`, `coded-mutp` and `coded`: chunks over the sessions, decoded by the engine. A request longer
 * than one chunk is cut into ranges. Two ranges are fetched at a time, and their bytes are delivered in order. If no
 * session opens in time, the mode fails with `noTransport` before it delivers a byte.
 */
import type { ByteRange, ResponseHead, Rejection } from "@tributary/contract";
import type { Conviction } from "@tributary/contract/conviction";
import { convictionOf } from "@tributary/contract/evidence";
import type { KnownPath, MutpMode, PlanHead, ReceiverStats, ShownEvidence } from "@tributary/protocol";
import type { ProxyInfo } from "../api";
import type { EngineLink } from "../engine-link";
import { messageOf } from "../errors";
import type { RequestTrace } from "../messages";
import { seriesOf, type NetworkMemory } from "../memory";
import type { ModeResult, ActiveDownload } from "../active-download";
import type { Session, SessionPool } from "../session";
import { isOneOperator, operatorsOf, voucherOf } from "../operators";
import type { Slots } from "../slots";
import { StallWatch } from "../stall";
import { cutAfter, cutBefore, cutEnd, cutFault } from "./cuts";
import { wholeHead } from "./http";
import { wholeBlocks } from "../published/object-request";
import { proxiedFault } from "./origin-part";
import type { ProxyFailure } from "./proxy-http";

/** A session lost more often than this within a chunk stays lost. */
const REOPENS_MAX = 3;

export interface MutpServices {
  engine: EngineLink;
  sessions: SessionPool;
  slots: Slots;
  memory: {
    /** By proxy. */
    paths: NetworkMemory<KnownPath>;
    /** The length of the last body, by the series that its URL belongs to. */
    sizes: NetworkMemory<number>;
  };
  onProxyFailed: ProxyFailure;
  /** A proxy that was silent sends packets again. */
  onProxyBack(proxy: ProxyInfo): void;
  /** There is evidence that a proxy sent a false packet of a published object. */
  onConviction(conviction: Conviction): unknown;
}

export async function mutp(
  download: ActiveDownload,
  proxies: readonly ProxyInfo[],
  services: MutpServices,
): Promise<ModeResult> {
  const chunks = new MutpDownload(download, proxies, services);
  try {
    return await chunks.execute();
  } finally {
    chunks.stop();
  }
}

/** One chunk that is being downloaded. Its bytes wait in `queue` until all earlier chunks are handed on. */
interface ChunkDownload {
  readonly range: ByteRange | undefined;
  readonly queue: Uint8Array[];
  isTurn: boolean;
  head: ResponseHead | undefined;
  /** The strong validator on which the proxies agree. */
  version: string | undefined;
  result: Promise<ModeResult>;
}

/** One download over datagrams. It cuts the request into chunks and opens the sessions for them. */
class MutpDownload {
  readonly #watch: StallWatch;
  readonly #stops = new Set<() => void>();
  /** Proxies that were cut off for their silence and have brought nothing since. */
  readonly #silent = new Set<number>();
  /** The last counts, by request id. */
  readonly #lastStats = new Map<number, ReceiverStats>();
  readonly #headArrivals = new Map<ChunkDownload, () => void>();
  #fault: Rejection | undefined;
  #stopped = false;
  #hasSession = false;
  /** The reason why a session could not be opened, by proxy. */
  readonly #refusals = new Map<number, string>();
  #sessionTimer: ReturnType<typeof setTimeout> | undefined;

  readonly #download: ActiveDownload;
  readonly #proxies: readonly ProxyInfo[];
  readonly #services: MutpServices;

  constructor(download: ActiveDownload, proxies: readonly ProxyInfo[], services: MutpServices) {
    this.#download = download;
    this.#proxies = proxies;
    this.#services = services;

    const { firstByteMs, stallMs } = download.settings;
    this.#watch = new StallWatch(firstByteMs, stallMs, (ms) => {
      this.#fault = { kind: "stalled", message: `Nothing new came from ${proxies.length} proxies for ${ms} ms.` };
      this.stop();
    });
    download.carrySignal.addEventListener("abort", this.stop);
  }

  async execute(): Promise<ModeResult> {
    const before = cutBefore(this.#download);
    if (before) return this.#fetchCut(before);
    const chunk = this.#start(this.#download.asked.range);
    this.#takeTurn(chunk);
    const result = await chunk.result;
    const after = cutAfter(this.#download, result);
    return after ? this.#fetchCut(after) : result;
  }

  /** Aborts all active chunks. */
  readonly stop = (): void => {
    this.#stopped = true;
    this.#watch.pause();
    clearTimeout(this.#sessionTimer);
    this.#download.carrySignal.removeEventListener("abort", this.stop);
    for (const stop of [...this.#stops]) stop();
  };

  #progress(): void {
    if (!this.#stopped) this.#watch.progress();
  }

  /** Fetches `whole` as ranges of `cutBytes`. */
  async #fetchCut(whole: ByteRange): Promise<ModeResult> {
    const { object, asked, settings } = this.#download;
    const cutBytes = object ? wholeBlocks(settings.cutBytes) : settings.cutBytes;
    const status = asked.range ? 206 : 200;
    const inFlight: ChunkDownload[] = [];
    let next = whole.start;
    let end = whole.end;
    let first: (ResponseHead & { version: string | undefined }) | undefined;
    while (!this.#stopped && (next <= end || inFlight.length > 0)) {
      while (next <= end && inFlight.length < (first ? settings.cutsInFlight : 1) && !this.#download.sink.isFull) {
        const last = Math.min(next + cutBytes - 1, end);
        inFlight.push(this.#start({ start: next, end: last }));
        next = last + 1;
      }
      const chunk = inFlight[0];
      if (!chunk) {
        this.#watch.pause();
        await this.#download.sink.ready();
        this.#progress();
        continue;
      }
      const head = await this.#headOf(chunk);
      if ("kind" in head) return head;
      const { version } = chunk;
      first ??= { ...head, version };
      const fault = object ? undefined : cutFault(first, { ...head, version }, chunk.range!);
      if (fault) return { kind: "failed", rejection: fault };
      const last = cutEnd(end, head, status === 200);
      if (typeof last === "object") return { kind: "failed", rejection: last };
      end = last;
      this.#download.setHead(wholeHead(first, { start: whole.start, end }, status), this.#download.serverFetchMs);
      this.#takeTurn(chunk);
      const result = await chunk.result;
      if (result.kind !== "complete") return result;
      inFlight.shift();
    }
    return this.#stopped ? this.#endOf(undefined) : { kind: "complete" };
  }

  /** Returns the head of a chunk, or the result of a chunk that ended without one. */
  async #headOf(chunk: ChunkDownload): Promise<ResponseHead | Exclude<ModeResult, { kind: "complete" }>> {
    while (!chunk.head) {
      const result = await Promise.race([chunk.result, this.#headArrival(chunk)]);
      if (result && result.kind !== "complete") return result;
    }
    return chunk.head;
  }

  #headArrival(chunk: ChunkDownload): Promise<undefined> {
    return new Promise((resolve) => this.#headArrivals.set(chunk, () => resolve(undefined)));
  }

  /** Makes the chunk's bytes go straight to the sink. */
  #takeTurn(chunk: ChunkDownload): void {
    chunk.isTurn = true;
    for (const bytes of chunk.queue.splice(0)) this.#download.write(bytes);
  }

  #start(range: ByteRange | undefined): ChunkDownload {
    const chunk: ChunkDownload = {
      range,
      queue: [],
      isTurn: false,
      head: undefined,
      version: undefined,
      result: Promise.resolve({ kind: "aborted" }),
    };
    chunk.result = this.#fetchChunk(chunk);
    return chunk;
  }

  async #fetchChunk(chunk: ChunkDownload): Promise<ModeResult> {
    const { slots } = this.#services;
    await slots.take();
    if (this.#stopped) {
      slots.give();
      return this.#endOf(undefined);
    }
    const ended = new Promise<Rejection | undefined>((resolve) => {
      const closed = new Promise<void>((resolveClosed) => this.#ask(chunk, resolve, resolveClosed));
      this.#download.closing.push(closed);
      void closed.then(() => slots.give());
    });
    const rejection = await ended;
    if (rejection) return this.#endOf(rejection);
    return this.#stopped ? this.#endOf(undefined) : { kind: "complete" };
  }

  #endOf(rejection: Rejection | undefined): ModeResult {
    if (this.#download.signal.aborted) return { kind: "aborted" };
    const fallback: Rejection = { kind: "proxiesFailed", message: "The request was given up." };
    return { kind: "failed", rejection: this.#fault ?? rejection ?? fallback };
  }

  /** Starts the request in the engine and brings the sessions up for it. */
  #ask(chunk: ChunkDownload, onEnd: (rejection: Rejection | undefined) => void, onClosed: () => void): void {
    const { engine, sessions, memory } = this.#services;
    const {
      request,
      asked,
      object,
      token,
      settings: { sessionMs, chunkBytesMax },
    } = this.#download;
    this.#sessionTimer ??= setTimeout(() => this.#giveUpSessions(`none opened within ${sessionMs} ms`), sessionMs);
    const users = this.#proxies.map((proxy) => sessions.of(proxy));
    const startedMs = this.#download.elapsedMs();
    let traced: RequestTrace | undefined;
    // The proxies whose failure was reported and that have not come back.
    const told = new Set<number>();
    const nowMs = this.#download.platform.now();
    const expectedBytes = chunk.range ? undefined : memory.sizes.of(seriesOf(asked.url), nowMs);
    const known = this.#proxies.map(({ id }) => memory.paths.of(id, nowMs));
    const requestId: number = engine.start(
      users.map(({ key }) => key),
      {
        known,
        operators: operatorsOf(this.#proxies),
        ...(request.sharing && !object && isOneOperator(this.#proxies)
          ? { sharing: this.#proxies.map(({ id }) => id) }
          : {}),
        chunkBytesMax,
        traced: this.#download.traced,
        url: asked.url,
        ...(object ? { object: object.object } : {}),
        mode: request.mode as MutpMode,
        cache: asked.cache,
        ...(chunk.range ? { range: chunk.range } : {}),
        ...(expectedBytes === undefined ? {} : { expectedBytes }),
        ...(asked.pageOrigin === undefined ? {} : { pageOrigin: asked.pageOrigin }),
        ...(token === undefined ? {} : { token }),
        ...request.tuning,
      },
      {
        onHead: (head) => this.#handleHead(chunk, head),
        onBytes: (bytes) => {
          if (this.#stopped) return;
          if (chunk.isTurn) this.#download.write(bytes);
          else chunk.queue.push(bytes);
        },
        onConviction: (evidence) => this.#convict(evidence),
        onStats: (stats) => this.#handleStats(requestId, stats, startedMs, told),
        onComplete: () => onEnd(undefined),
        onFailed: onEnd,
        onTrace: (trace) => (traced = trace),
        onClosed: () => {
          if (traced)
            this.#download.addTrace(
              chunk.range?.start ?? 0,
              startedMs,
              traced,
              this.#download.tally.generationsOf(requestId),
            );
          const stats = this.#lastStats.get(requestId);
          if (stats && stats.deliveredBytes > 0) this.#download.vouch(voucherOf(stats));
          this.#stops.delete(stop);
          for (const release of releases) release();
          onClosed();
        },
      },
    );
    const stop = (): void => {
      engine.abort(requestId);
      const counts = this.#lastStats.get(requestId)?.proxies;
      // The site may have been faster than the engine notices a silence.
      users.forEach((session, index) => !counts?.[index]?.packets && session.check("suspect"));
      onEnd({ kind: "proxiesFailed", message: "The request was given up." });
    };
    this.#stops.add(stop);
    const releases = users.map((session, index) => {
      const lost = (reason: string, away: boolean): void => {
        told.add(index);
        engine.lost(requestId, index, reason, away);
      };
      return this.#bringUp(session, index, { ready: () => engine.ready(requestId, index), lost });
    });
  }

  /**
   * Opens the session for a chunk, and opens it again after a loss, over any transport that works. The engine keeps
   * its packets and asks for the rest. Returns a function that stops this.
   */
  #bringUp(
    session: Session,
    index: number,
    engine: { ready(): void; lost(reason: string, away: boolean): void },
  ): () => void {
    let [isOver, opensLeft] = [false, REOPENS_MAX + 1];
    const lost = (reason: string): void => {
      const isAgain = !isOver && !this.#stopped && opensLeft > 0;
      engine.lost(reason, isAgain);
      if (!isAgain) return;
      session.release(lost);
      open();
    };
    const open = (): void => {
      opensLeft--;
      session.acquire(lost).then(
        () => {
          this.#hasSession = true;
          if (opensLeft < REOPENS_MAX) this.#progress();
          this.#download.connectMs ??= this.#download.elapsedMs();
          if (session.transport) this.#download.tally.carry(index, session.transport);
          engine.ready();
        },
        (error: unknown) => this.#handleRefusal(index, messageOf(error), () => engine.lost(messageOf(error), false)),
      );
    };
    open();
    return () => {
      isOver = true;
      session.release(lost);
    };
  }

  #handleRefusal(index: number, reason: string, tellEngine: () => void): void {
    this.#refusals.set(index, reason);
    if (this.#refusals.size === this.#proxies.length) this.#giveUpSessions(reason);
    tellEngine();
  }

  /** Fails the download because no transport reaches any proxy. */
  #giveUpSessions(reason: string): void {
    if (this.#hasSession || this.#stopped) return;
    this.#fault = { kind: "noTransport", message: `No session to any of ${this.#proxies.length} proxies: ${reason}.` };
    this.stop();
  }

  #handleHead(chunk: ChunkDownload, head: PlanHead): void {
    const { status, headers, totalBytes, serverFetchMs, version } = head;
    this.#fault = proxiedFault(this.#download.request, chunk.range, head);
    if (this.#fault) return this.stop();
    chunk.head = { status, headers, totalBytes };
    chunk.version = version;
    const { asked, platform } = this.#download;
    if (!chunk.range && status === 200)
      this.#services.memory.sizes.note(seriesOf(asked.url), totalBytes, platform.now());
    this.#progress();
    if (this.#download.serverFetchMs === 0) this.#download.serverFetchMs = serverFetchMs;
    if (chunk.isTurn) this.#download.setHead(chunk.head, serverFetchMs);
    this.#headArrivals.get(chunk)?.();
    this.#headArrivals.delete(chunk);
  }

  #handleStats(requestId: number, stats: ReceiverStats, startedMs: number, told: Set<number>): void {
    const download = this.#download;
    const services = this.#services;
    const before = this.#lastStats.get(requestId);
    this.#lastStats.set(requestId, stats);
    download.engine ??= services.engine.engineName;
    if (stats.rank > (before?.rank ?? 0)) this.#progress();
    if (stats.firstPacketMs !== undefined) download.firstPacketMs ??= startedMs + stats.firstPacketMs;
    download.tally.addReceiver(requestId, stats);
    stats.proxies.forEach(({ state, error, path, innovative }, index) => {
      const proxy = this.#proxies[index]!;
      if (path) services.memory.paths.note(proxy.id, path, download.platform.now());
      if (innovative > (before?.proxies[index]?.innovative ?? 0) && this.#silent.delete(index))
        services.onProxyBack(proxy);
      if (state !== "failed") told.delete(index);
      else if (error && !told.has(index)) {
        told.add(index);
        this.#suspect(index, error);
      }
    });
  }

  #convict({ proxyIndex, ...evidence }: ShownEvidence): void {
    const { object, publisher } = this.#download;
    if (!object || !publisher) return;
    this.#services.onConviction(convictionOf(evidence, this.#proxies[proxyIndex]!.id, publisher, object.object));
  }

  /** Reports that a proxy failed. A proxy that found the chunk too large has not failed. */
  #suspect(index: number, error: Rejection): void {
    if (error.kind === "chunkTooLarge") return;
    if (error.kind === "proxySilent") this.#cutOff(index, error.message);
    this.#services.onProxyFailed(this.#proxies[index]!, error);
  }

  /**
   * Closes the session of a silent proxy, so that this download and the next one open a new one. If the session is not
   * open, another download has closed it already, and a new one is on its way.
   */
  #cutOff(index: number, reason: string): void {
    this.#silent.add(index);
    const session = this.#services.sessions.of(this.#proxies[index]!);
    if (session.state === "open") session.close(reason);
  }
}
