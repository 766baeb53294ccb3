/**
 * ProxyClient: downloads over several proxies at once in one of the modes, and falls back to the origin. It owns what
 * lives longer than a download: the list of proxies, their sessions, the engine and the reports to Origo.
 */
import type { Rejection, RejectionKind } from "@tributary/contract";
import type { DownloadRecord, TransportName } from "@tributary/contract/schema";
import {
  type Download,
  type GetOptions,
  type LiveStats,
  type ProxyInfo,
  type Source,
  type TransportOption,
} from "./api";
import { Choice } from "./choice";
import { Directory } from "./directory";
import { EngineLink } from "./engine-link";
import { DownloadError, messageOf, RequestError } from "./errors";
import { direct } from "./modes/direct";
import { onAbort } from "./listen";
import { NetworkMemory } from "./memory";
import { mutp, type MutpServices } from "./modes/mutp";
import { parallelHttp } from "./modes/parallel-http";
import { Publications, type PublishedAddress } from "./published/publications";
import { RevisionsInMemory, type SeenRevisions } from "./published/revisions";
import type { ProxyFailure } from "./modes/proxy-http";
import { splitHttp } from "./modes/split-http";
import type { Hasher, Platform, Transport } from "./platform";
import { Reporter, type ErrorContext } from "./reporter";
import { RemoteConfig, unitOf } from "./remote-config";
import { parseOrigoUrl, parseRequest, parseTransport, plainUrl } from "./request";
import { ActiveDownload, type ModeResult, type Reporting } from "./active-download";
import { SessionPool } from "./session";
import { Slots } from "./slots";
import { LiveBoard } from "./tally";
import { CLIENT_VERSION, SETTINGS_DEFAULT, withPatience, type Settings } from "./settings";
import { LiarSearch } from "./site/liars";
import type { Segment } from "./site/segment-check";
import { SiteDigests } from "./site/site-digests";

export interface ProxyClientOptions {
  /** Where Origo is, e.g. `http://127.0.0.1:7600`. */
  origoUrl: string;
  platform: Platform;
  source: Source;
  /** An anonymous id. The client makes a new one by default, and always if it reports no records. */
  clientId?: string;
  /** Send a record of each download to Origo; default true. */
  reportRecords?: boolean;
  /** Default `auto`. */
  transport?: TransportOption;
  settings?: Partial<Settings>;
  /** Which revisions of publications were seen; default: by this client. */
  seenRevisions?: SeenRevisions;
}

/** The client uses the measured rate, round trip and loss of a proxy for this long. */
const MEMORY_MS = 600_000;
const REPORT_CLOSE_MS = 1500;
/** Makes no digest. A download uses it if nobody reads the digest. */
const NO_HASHER: Hasher = { update: () => undefined, digest: () => Promise.resolve(null), discard: () => undefined };
/** The key for facts that apply to the whole network. */
const HERE = "";
/** The client avoids a proxy for a while after one of these failures, because the proxy caused it. */
const OWN_FAULTS: ReadonlySet<RejectionKind> = new Set<RejectionKind>([
  "proxyFailed",
  "proxyLost",
  "proxySilent",
  "digestMismatch",
  "proofWrong",
  "draining",
]);
/** After one of these the client avoids the proxy for the same host only, because the host may have caused it. */
const FAULTS_OVER_HOST: ReadonlySet<RejectionKind> = new Set<RejectionKind>([
  "planMismatch",
  "bodyDiffers",
  "bodyShort",
]);
/** The proxy sent bytes or proofs that do not have the digest that is known to be true or agreed. */
const LIES: ReadonlySet<RejectionKind> = new Set<RejectionKind>(["digestMismatch", "proofWrong"]);
/** After one of these the client needs another token. */
const TOKEN_FAULTS: ReadonlySet<RejectionKind> = new Set<RejectionKind>([
  "tokenExpired",
  "tokenMissing",
  "tokenRefused",
]);

export class ProxyClient {
  readonly #platform: Platform;
  readonly #source: Source;
  readonly #clientId: string;
  readonly #reporting: Reporting;
  readonly #reportRecords: boolean;
  readonly #settings: Settings;
  readonly #givenSettings: Partial<Settings>;
  readonly #remote: RemoteConfig;
  readonly #directory: Directory;
  readonly #publications: Publications;
  readonly #siteDigests: SiteDigests;
  readonly #reporter: Reporter;
  readonly #engine: EngineLink;
  readonly #sessions: SessionPool;
  readonly #memory: MutpServices["memory"];
  /** Networks in which no session could be opened recently. */
  readonly #noTransport: NetworkMemory<true>;
  readonly #slots = new Slots(() => this.#settings.requestsOpenMax);
  readonly #board = new LiveBoard();
  readonly #downloads = new Map<ActiveDownload, Promise<DownloadRecord>>();
  #closed = false;
  readonly #liarSearch = new LiarSearch();
  #noteClosed!: () => void;
  readonly #untilClosed = new Promise<undefined>((resolve) => (this.#noteClosed = () => resolve(undefined)));

  constructor(options: ProxyClientOptions) {
    const origoUrl = parseOrigoUrl(options.origoUrl);
    this.#platform = options.platform;
    this.#source = options.source;
    this.#reportRecords = options.reportRecords ?? true;
    this.#clientId = (this.#reportRecords ? options.clientId : undefined) ?? options.platform.randomUUID();
    this.#reporting = {
      source: this.#source,
      clientId: this.#clientId,
      clientVersion: CLIENT_VERSION,
      ...this.#platform.describe(),
    };
    this.#settings = { ...SETTINGS_DEFAULT, ...options.settings };
    this.#givenSettings = options.settings ?? {};
    this.#remote = new RemoteConfig(origoUrl, this.#platform, this.#settings);
    this.#directory = new Directory(
      origoUrl,
      this.#platform,
      this.#settings,
      { refresh: () => this.#refreshSettings() },
      this.#clientId,
    );
    const seen = options.seenRevisions ?? new RevisionsInMemory();
    this.#publications = new Publications(origoUrl, this.#platform, this.#settings, this.#clientId, seen);
    this.#siteDigests = new SiteDigests(this.#platform);
    const remember = <T>(ageMs: () => number): NetworkMemory<T> =>
      new NetworkMemory(() => this.#directory.network, ageMs);
    this.#memory = { paths: remember(() => MEMORY_MS), sizes: remember(() => MEMORY_MS) };
    this.#noTransport = remember(() => this.#settings.noTransportMs);
    this.#reporter = new Reporter(origoUrl, this.#platform);
    this.#engine = new EngineLink(this.#platform, {
      send: (session, bytes) => this.#sessions.send(session, bytes),
      silent: (session) => this.#sessions.handleSilence(session),
    });
    const choice = new Choice(
      this.#transports(),
      parseTransport(options.transport),
      remember<TransportName>(() => this.#settings.choiceMs),
    );
    this.#sessions = new SessionPool(this.#platform, this.#settings, choice, {
      token: ({ id }) => this.#publications.tokenFor(id) ?? this.#directory.token,
      onMessage: ({ key }, bytes) => this.#engine.receive(key, bytes),
      ask: ({ key }) => this.#engine.check(key),
      onFailed: ({ proxy }, reason) => this.#noteSessionFailed(proxy, reason),
      onRecovered: ({ proxy }) => this.#directory.forgive(proxy.id),
      onShut: () => this.#noTransport.note(HERE, true, this.#platform.now()),
    });
  }

  /** Starts a download. Throws a RequestError for arguments that can never work, before it uses the network. */
  get(url: string, options: GetOptions = {}): Download {
    const request = parseRequest(url, options);
    if (this.#closed) throw new RequestError("client", "closed", "a client that is not closed");
    const platform = this.#platform;
    const settings = this.#settings;
    const board = this.#board;
    const inPieces = (): Hasher => this.#engine.createHasher();
    // Records tell the digest, and a fallback compares what it fetches with what was delivered.
    const { mode, allowFallback = true, retries = settings.retries } = options;
    const isHashed = this.#reportRecords || (mode === "direct" ? retries > 0 : allowFallback === true);
    const makeHasher = (): Hasher => (isHashed ? (platform.createHasher?.(inPieces) ?? inPieces()) : NO_HASHER);
    const download = new ActiveDownload({ request, platform, settings, makeHasher, board });
    const { signal } = options;
    const abort = (): void => download.abort(signal?.reason);
    if (signal?.aborted) abort();
    const unlink = signal ? onAbort(signal, abort) : undefined;
    board.downloads++;
    const record = this.#execute(download, options).finally(() => {
      unlink?.();
      this.#downloads.delete(download);
    });
    this.#downloads.set(download, record);
    return {
      head: download.headPromise,
      get body() {
        return download.sink.takeStream();
      },
      get record() {
        download.sink.expectReader();
        return record;
      },
      abort: (reason) => download.giveUp(reason),
    };
  }

  /** Whether this is the address of a published file at this Origo. Its bytes are checked by a signature. */
  readonly isPublished = (url: string): boolean => this.#publications.addressOf(url) !== undefined;

  /** A copy of the totals so far. */
  get live(): LiveStats {
    const { downloads, deliveredBytes, directBytes, fallbacks } = this.#board;
    const proxies = this.#board.snapshot((id) => this.#sessions.stateOf(id));
    const vouched = this.#board.vouched(this.#platform.now());
    const isOverHttp = this.#isWithoutTransport;
    return { proxies, downloads, deliveredBytes, directBytes, fallbacks, isOverHttp, vouched };
  }

  /** Asks the proxies of sessions that nobody uses whether they are there. `live` shows soon if they are not. */
  check(): void {
    this.#sessions.check();
  }

  /** The codec's engine, e.g. `wasm/simd128`, in Node `native/avx2`; undefined before the first coded download. */
  get engineName(): string | undefined {
    return this.#engine.engineName;
  }

  /** Asks Origo for its list of proxies. Throws if Origo cannot be reached. */
  async proxies(): Promise<readonly ProxyInfo[]> {
    const problem = await this.#directory.refresh();
    if (problem) throw new DownloadError(problem.kind, problem.message);
    return this.#directory.list;
  }

  /** Gets Origo's list and starts the engine. It opens no connection to a proxy. */
  async prepare(): Promise<void> {
    void this.#engine.prepare();
    await this.#directory.ready();
  }

  /** Opens sessions to `connections` proxies, so that the next download finds them open. */
  async warm(connections: number): Promise<void> {
    const picked = await this.#directory.pick(connections);
    if ("rejection" in picked || this.#closed) return;
    const ignoreLoss = (): void => undefined;
    await Promise.allSettled(
      picked.proxies.map(async (proxy) => {
        const session = this.#sessions.of(proxy);
        await session.acquire(ignoreLoss).finally(() => session.release(ignoreLoss));
      }),
    );
  }

  /** Aborts the active downloads, sends the remaining reports, and closes the sessions and the worker. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#noteClosed();
    const records = [...this.#downloads.values()];
    for (const download of this.#downloads.keys()) download.abort("The client was closed.");
    await Promise.all(records);
    await this.#reporter.close(REPORT_CLOSE_MS);
    this.#sessions.close();
    this.#engine.close();
  }

  /** The transports in order of preference: WebTransport if it is available, then WebRTC. */
  #transports(): Transport[] {
    const { transports, engineTransports } = this.#platform;
    const ofEngine = engineTransports.map((name) => this.#engine.transport(name, (proxy) => offers(proxy, name)));
    return [...ofEngine, ...transports];
  }

  /** Changes the settings in place, because the components share this object. Later work uses the new values. */
  async #refreshSettings(): Promise<void> {
    await this.#remote.refresh();
    Object.assign(this.#settings, SETTINGS_DEFAULT, this.#remote.clientSettings, this.#givenSettings);
  }

  /**
   * Origo's configuration sets the options that the caller left open. A download for which the caller chose mode
   * `direct` does not wait for it.
   */
  async #configure(download: ActiveDownload, given: GetOptions): Promise<void> {
    const published = this.#publications.addressOf(download.request.url);
    // The manifest is on its way while Origo answers the rest. The download itself reports what goes wrong.
    if (published) void this.#publications.find(published).catch(() => undefined);
    if (given.mode !== "direct") await this.#directory.ready();
    const own = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as GetOptions;
    const names = new Set([...Object.keys(own), ...Object.keys(this.#givenSettings)]);
    const {
      options,
      settings: drawn,
      configVersion,
      experiments,
    } = this.#remote.draw(this.#clientId, download.id, names);
    const settings = withPatience({ ...this.#settings, ...drawn, ...this.#givenSettings }, given);
    const traced = this.#reportRecords && 1000 * unitOf(`trace ${download.id}`) < settings.tracePerMille;
    download.goBy({
      request: parseRequest(download.request.url, { ...options, ...own }),
      settings,
      configVersion,
      experiments,
      traced,
    });
  }

  async #execute(download: ActiveDownload, given: GetOptions): Promise<DownloadRecord> {
    try {
      await this.#configure(download, given);
      const result = await this.#attempt(download);
      if (given.recordAfterRead && result.kind === "complete") {
        download.sink.close();
        await download.sink.drained;
      }
      download.settle(result);
    } catch (error) {
      download.settle({ kind: "failed", rejection: { kind: "internal", message: messageOf(error) } });
    }
    const rest = await Promise.race([given.ownRest, this.#untilClosed]);
    const record = await download.record(this.#reporting, rest);
    if (download.rejection !== undefined)
      this.#report(download.rejection, download.request.url, { ledTo: rest === undefined ? undefined : "fallback" });
    if (record.vouchedBy !== undefined && record.purpose !== "comparison")
      this.#board.noteVouched(record.vouchedBy, download.publisher, this.#platform.now());
    if (this.#reportRecords) this.#reporter.record(record);
    const trace = download.trace();
    if (trace) this.#reporter.trace(trace);
    return record;
  }

  async #attempt(download: ActiveDownload): Promise<ModeResult> {
    const { mode, connections } = download.request;
    if (download.signal.aborted) return { kind: "aborted" };
    const published = this.#publications.addressOf(download.request.url);
    if (published) return this.#attemptPublished(download, published);
    if (mode === "direct") return direct(download);
    const siteCheck = this.#siteDigests.checkFor(download.request);
    void siteCheck?.known.then(() => download.handleDigests());
    const picked = await this.#directory.pick(connections, hostOf(download));
    if (download.signal.aborted) return { kind: "aborted" };
    if ("rejection" in picked) return this.#fallBack(download, picked.rejection);
    download.tokenSource = () => this.#directory.freshToken();
    download.useProxies(picked.proxies);
    download.siteCheck = siteCheck;
    const untilKnown = Promise.race([siteCheck?.known, download.untilAborted]);
    if (download.request.allowFallback === true) await untilKnown;
    if (download.signal.aborted) return { kind: "aborted" };
    const brought = await this.#throughProxies(download, picked.proxies, this.#directory);
    await untilKnown;
    const result = download.checked(brought);
    if (download.signal.aborted) return { kind: "aborted" };
    if (result.kind !== "failed") return result;
    if (siteCheck?.falseSegment) void this.#findLiars(download, picked.proxies, siteCheck.falseSegment);
    else if (FAULTS_OVER_HOST.has(result.rejection.kind)) this.#avoidFor(download, picked.proxies);
    return this.#fallBack(download, result.rejection);
  }

  #avoidFor(download: ActiveDownload, proxies: readonly ProxyInfo[]): void {
    for (const { id } of proxies) this.#directory.penalise(id, hostOf(download));
  }

  /** The bytes of a segment are not those that the site published a digest of. */
  async #findLiars(download: ActiveDownload, proxies: readonly ProxyInfo[], segment: Segment): Promise<void> {
    const liars = await this.#liarSearch.among(proxies, download, segment, this.#siteDigests, this.#untilClosed);
    if (this.#closed || liars === undefined) return;
    if (liars.length === 0) return this.#avoidFor(download, proxies);
    const message = "Its bytes do not have the digest that the site published.";
    for (const proxy of liars) this.#noteProxyFailed(proxy, { kind: "digestMismatch", message }, download);
  }

  /** Only bytes that the publisher signed are handed on, so nobody who cannot prove them is asked for the rest. */
  async #attemptPublished(download: ActiveDownload, address: PublishedAddress): Promise<ModeResult> {
    const { mode, connections, allowFallback } = download.request;
    const holders = await this.#publications.prepare(download, address);
    if ("kind" in holders) return holders;
    const picked = await holders.pick(connections);
    if (download.signal.aborted) return { kind: "aborted" };
    if ("rejection" in picked) return { kind: "failed", rejection: picked.rejection };
    download.tokenSource = () => holders.freshToken();
    download.useProxies(picked.proxies);
    const result = await this.#throughProxies(download, picked.proxies, holders);
    const isOverHttp = mode === "direct" || mode === "split-http" || download.fallback !== undefined;
    if (result.kind !== "failed" || isOverHttp || allowFallback === false) return result;
    this.#noteFallback(download, result.rejection);
    return this.#overHttp(download, picked.proxies, holders);
  }

  #throughProxies(download: ActiveDownload, proxies: readonly ProxyInfo[], directory: Directory): Promise<ModeResult> {
    const { mode } = download.request;
    if (mode === "parallel-http") return parallelHttp(download, proxies, this.#onProxyFailed(download, directory));
    if (mode === "split-http" || mode === "direct") return this.#overHttp(download, proxies, directory);
    return this.#overDatagrams(download, proxies, directory);
  }

  #overHttp(download: ActiveDownload, proxies: readonly ProxyInfo[], directory: Directory): Promise<ModeResult> {
    download.beginAgain();
    return splitHttp(download, proxies, this.#onProxyFailed(download, directory));
  }

  #onProxyFailed(download: ActiveDownload, directory: Directory): ProxyFailure {
    return (proxy, rejection) => this.#noteProxyFailed(proxy, rejection, download, directory);
  }

  /** Downloads over sessions. If no datagram gets through, it uses HTTP through the same proxies and records that. */
  async #overDatagrams(
    download: ActiveDownload,
    proxies: readonly ProxyInfo[],
    directory: Directory,
  ): Promise<ModeResult> {
    const onProxyFailed = this.#onProxyFailed(download, directory);
    const engine = this.#engine;
    const sessions = this.#sessions;
    const slots = this.#slots;
    const memory = this.#memory;
    const platform = this.#platform;
    const hasSession = proxies.some(({ id }) => sessions.stateOf(id) === "open");
    const isKnown = download.request.allowFallback !== false && !hasSession && this.#isWithoutTransport;
    if (isKnown) void this.warm(download.request.connections);
    const onProxyBack = ({ id }: ProxyInfo): void => directory.forgive(id);
    const known: Rejection = {
      kind: "noTransport",
      message: `No session to any of ${proxies.length} proxies, as a moment ago.`,
    };
    const onConviction: MutpServices["onConviction"] = (conviction) =>
      this.#reportRecords && this.#reporter.conviction(conviction);
    const services = { engine, sessions, slots, memory, onProxyFailed, onProxyBack, onConviction };
    const result = isKnown ? { kind: "failed" as const, rejection: known } : await mutp(download, proxies, services);
    if (result.kind !== "failed" || result.rejection.kind !== "noTransport") return result;
    if (!isKnown) this.#noTransport.note(HERE, true, platform.now());
    for (const { id } of proxies) directory.forgive(id);
    if (download.request.allowFallback === false || download.signal.aborted) return result;
    this.#noteFallback(download, result.rejection);
    return this.#overHttp(download, proxies, directory);
  }

  /** Fetches the rest from the origin after the proxies failed, and records that. */
  async #fallBack(download: ActiveDownload, rejection: Rejection): Promise<ModeResult> {
    if (download.request.allowFallback !== true) return { kind: "failed", rejection };
    this.#noteFallback(download, rejection);
    return direct(download);
  }

  get #isWithoutTransport(): boolean {
    return this.#noTransport.of(HERE, this.#platform.now()) === true;
  }

  #noteFallback(download: ActiveDownload, rejection: Rejection): void {
    download.fallback = rejection;
    this.#board.fallbacks++;
    this.#report(rejection, download.request.url, { ledTo: "fallback" });
  }

  /** A proxy gets no penalty if the network blocks datagrams: it still serves HTTP. */
  #noteSessionFailed(proxy: ProxyInfo, reason: string): void {
    if (!this.#isWithoutTransport) return this.#noteProxyFailed(proxy, { kind: "proxyLost", message: reason });
    this.reportError("noTransport", `Proxy ${proxy.name}: ${reason}`);
  }

  #noteProxyFailed(
    proxy: ProxyInfo,
    rejection: Rejection,
    download?: ActiveDownload,
    directory = this.#directory,
  ): void {
    const { kind } = rejection;
    const isOverHost = FAULTS_OVER_HOST.has(kind);
    // If nobody signed the digests, an answer that differs from the others' proves nothing.
    const isLying = LIES.has(kind) || (download?.publisher !== undefined && isOverHost);
    if (isLying) this.#board.of(proxy).lies++;
    if (OWN_FAULTS.has(kind)) for (const list of new Set([this.#directory, directory])) list.penalise(proxy.id);
    if (TOKEN_FAULTS.has(kind)) directory.renewToken();
    if (download?.object && (isOverHost || kind === "objectMissing")) directory.penalise(proxy.id);
    else if (download && isOverHost) directory.penalise(proxy.id, hostOf(download));
    const accused = isLying && download?.publisher ? proxy.id : undefined;
    const message = `Proxy ${proxy.name}: ${rejection.message}`;
    this.#report({ kind, message }, download?.request.url, { accused });
  }

  /** Reports an error to Origo, with the `url` of the download that it concerns. Does nothing if records are off. */
  reportError(kind: RejectionKind, message: string, url?: string): void {
    this.#report({ kind, message }, url);
  }

  #report({ kind, message }: Rejection, url?: string, { ledTo, accused }: ErrorContext = {}): void {
    if (!this.#reportRecords) return;
    this.#reporter.error({
      id: this.#platform.randomUUID(),
      clientId: this.#clientId,
      atMs: Math.round(this.#platform.epochMs()),
      source: this.#source,
      kind,
      message: message.slice(0, 2000),
      ...(url === undefined ? {} : { url: plainUrl(url) }),
      ...(ledTo === undefined ? {} : { ledTo }),
      ...(accused === undefined ? {} : { accused }),
    });
  }
}

const hostOf = ({ request }: ActiveDownload): string => new URL(request.url).host;

/** Every proxy offers WebRTC. */
function offers(proxy: ProxyInfo, name: TransportName): boolean {
  return name === "webrtc" || (name === "webtransport" ? proxy.webTransport : proxy.udp) !== undefined;
}
