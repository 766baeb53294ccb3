/**
 * Decides which proxies to use. It keeps Origo's list for a while, and it keeps the chosen proxies while they work, so
 * that sessions stay warm. If Origo is silent, the client still uses the chosen proxies.
 */
import { CONNECTIONS_MAX, type Rejection } from "@tributary/contract";
import type { ProxyInfo } from "./api";
import { DownloadError, faultOf, messageOf } from "./errors";
import { putLast } from "./memory";
import type { Platform } from "./platform";
import type { RemoteConfig } from "./remote-config";
import type { Settings } from "./settings";

/** After a failure, the client waits this long before it asks Origo again. */
const ASK_AGAIN_MS = 100;
/** A list that is newer than this is not asked for again because a proxy refuses its token. */
const RENEW_AFTER_MS = 1_000;
const MESSAGE_CHARS_MAX = 500;
/** So many pairs of a proxy and a host are remembered. */
const HOST_PENALTIES_MAX = 256;

export type Picked = { proxies: ProxyInfo[] } | { rejection: Rejection };

/** Where Origo lists proxies. */
export interface ProxyList {
  path: string;
  /** The list is asked for again after this time. Default: the setting `directoryAgeMs`. */
  ageMs?: number;
  /** Checks the rest of the answer, and says how many of its first proxies count. It may throw. */
  take?(answer: unknown): Promise<number>;
}

const ALL_PROXIES: ProxyList = { path: "/v1/proxies" };

export class Directory {
  /** The token that opens the listed and the chosen proxies. Undefined if Origo gives no token. */
  token: string | undefined;
  /** Origo's latest name for the client's network. Empty before Origo gives a name. */
  network = "";
  #chosen: ProxyInfo[] = [];
  #listed: ProxyInfo[] = [];
  #listedMs = -Infinity;
  #hasAnswered = false;
  #refreshing: Promise<Rejection | undefined> | undefined;
  #problem: Rejection | undefined;
  #problemMs = -Infinity;
  readonly #penaltyUntilMs = new Map<string, number>();
  /** By proxy and host. */
  readonly #hostPenaltyUntilMs = new Map<string, number>();

  readonly #origoUrl: string;
  readonly #platform: Platform;
  readonly #settings: Settings;
  readonly #remote: Pick<RemoteConfig, "refresh"> | undefined;
  readonly #clientId: string;
  readonly #list: ProxyList;

  constructor(
    origoUrl: string,
    platform: Platform,
    settings: Settings,
    /** Refreshed together with the list. */
    remote: Pick<RemoteConfig, "refresh"> | undefined,
    clientId: string,
    list: ProxyList = ALL_PROXIES,
  ) {
    this.#origoUrl = origoUrl;
    this.#platform = platform;
    this.#settings = settings;
    this.#remote = remote;
    this.#clientId = clientId;
    this.#list = list;
  }

  /** Resolves when Origo has given the list and the configuration for the first time, or when it cannot. */
  async ready(): Promise<void> {
    if (!this.#hasAnswered) await this.refresh();
  }

  /**
   * Picks up to `count` proxies for a request to `host`, at least one, or gives the reason why it has no proxy. Waits
   * for Origo only if it has no proxy, or if the token may have expired.
   */
  async pick(count: number, host = ""): Promise<Picked> {
    const isReady = this.#fill(count, host).length > 0;
    const ageMs = this.#platform.now() - this.#listedMs;
    const isStale = this.token !== undefined && ageMs > this.#settings.tokenAgeMs;
    if (!isReady || this.isOld) {
      const refreshed = this.#freshProblem() ?? this.refresh();
      const problem = isReady && !isStale ? undefined : await refreshed;
      if (problem && !isReady) return { rejection: problem };
    }
    const proxies = this.#fill(count, host);
    if (proxies.length > 0) return { proxies };
    const isOverHost = this.#usable(this.#listed).length > 0;
    const message = isOverHost
      ? "Every live proxy rests for this host, because their answers for it differed"
      : "Origo knows no live proxy that works";
    return { rejection: { kind: "noProxies", message } };
  }

  /**
   * Notes that this proxy failed. The client avoids it for a while, even if there is no other proxy. With `host` it
   * avoids the proxy for requests to that host only.
   */
  penalise(id: string, host?: string): void {
    const untilMs = this.#platform.now() + this.#settings.proxyPenaltyMs;
    if (host !== undefined) return void putLast(this.#hostPenaltyUntilMs, `${id} ${host}`, untilMs, HOST_PENALTIES_MAX);
    this.#penaltyUntilMs.set(id, untilMs);
    this.#chosen = this.#chosen.filter((proxy) => proxy.id !== id);
  }

  /** Ends the penalty of a proxy that works again or did not cause the failure. */
  forgive(id: string): void {
    this.#penaltyUntilMs.delete(id);
  }

  /** The token for one more request of a download. If the list is old, this asks for the next one in the background. */
  freshToken(): string | undefined {
    if (this.token !== undefined && this.isOld && !this.#freshProblem()) void this.refresh();
    return this.token;
  }

  /** A proxy refused the token. Asks for the next one in the background. */
  renewToken(): void {
    const isOld = this.#platform.now() - this.#listedMs > RENEW_AFTER_MS;
    if (isOld && !this.#freshProblem()) void this.refresh();
  }

  /** Asks Origo again, even if the list is new. Returns what went wrong, or undefined. */
  refresh(): Promise<Rejection | undefined> {
    this.#refreshing ??= Promise.all([this.#ask(), this.#remote?.refresh()])
      .then(([problem]) => this.#note(problem))
      .finally(() => (this.#refreshing = undefined));
    return this.#refreshing;
  }

  /** The problem of the last request, if it is newer than ASK_AGAIN_MS. A new request would only double the wait. */
  #freshProblem(): Rejection | undefined {
    return this.#platform.now() - this.#problemMs < ASK_AGAIN_MS ? this.#problem : undefined;
  }

  /** Its list should be asked for again. */
  get isOld(): boolean {
    return this.#platform.now() - this.#listedMs > this.#ageMs;
  }

  get #ageMs(): number {
    return this.#list.ageMs ?? this.#settings.directoryAgeMs;
  }

  get list(): readonly ProxyInfo[] {
    return this.#listed;
  }

  #note(problem: Rejection | undefined): Rejection | undefined {
    this.#hasAnswered ||= problem === undefined;
    this.#problem = problem;
    this.#problemMs = this.#platform.now();
    return problem;
  }

  async #ask(): Promise<Rejection | undefined> {
    try {
      const response = await this.#platform.fetch(
        `${this.#origoUrl}${this.#list.path}?count=${CONNECTIONS_MAX}&client=${this.#clientId}${this.#keep()}`,
        { signal: AbortSignal.timeout(this.#settings.directoryTimeoutMs), cache: "no-store", credentials: "omit" },
      );
      if (!response.ok) return await refusalOf(response, this.#origoUrl);
      const answer = (await response.json()) as { proxies?: unknown; token?: unknown; network?: unknown };
      const count = await this.#list.take?.(answer);
      if (typeof answer.network === "string") this.network = answer.network;
      this.token = typeof answer.token === "string" ? answer.token : undefined;
      this.#adopt((Array.isArray(answer.proxies) ? answer.proxies : []).filter(isProxyInfo).slice(0, count));
      return undefined;
    } catch (error) {
      if (error instanceof DownloadError) return faultOf(error);
      const message = `Origo at ${this.#origoUrl} cannot be reached: ${messageOf(error)}`;
      return { kind: "origoUnreachable", message };
    }
  }

  /** Names the chosen proxies, so that the token opens them too. Origo's list may leave them out. */
  #keep(): string {
    return this.#chosen.length === 0 ? "" : `&keep=${this.#chosen.map(({ id }) => encodeURIComponent(id)).join(",")}`;
  }

  /**
   * Takes a new list. A chosen proxy gets its listed addresses and certificates. It stays chosen if a full list leaves
   * it out, because a full list may omit live proxies.
   */
  #adopt(proxies: ProxyInfo[]): void {
    this.#listed = proxies;
    this.#listedMs = this.#platform.now();
    const live = new Map(proxies.map((proxy) => [proxy.id, proxy]));
    const isWhole = proxies.length < CONNECTIONS_MAX;
    this.#chosen = this.#chosen.flatMap((proxy) => live.get(proxy.id) ?? (isWhole ? [] : proxy));
  }

  /** Adds proxies from the list until `count` are chosen. Others stand in for the ones that rest for this host. */
  #fill(count: number, host: string): ProxyInfo[] {
    this.#chosen = this.#usable(this.#chosen);
    while (this.#chosen.length < count) {
      const left = this.#usable(this.#listed).filter(({ id }) => !this.#chosen.some((proxy) => proxy.id === id));
      const next = ofRarestOperator(left, this.#chosen);
      if (!next) break;
      this.#chosen.push(next);
    }
    const nowMs = this.#platform.now();
    const serves = ({ id }: ProxyInfo) => (this.#hostPenaltyUntilMs.get(`${id} ${host}`) ?? -Infinity) <= nowMs;
    const chosen = this.#chosen.slice(0, count);
    const others = [...this.#chosen.slice(count), ...this.#usable(this.#listed)];
    const standIns = others.filter(({ id }) => !chosen.some((proxy) => proxy.id === id));
    const all = [...chosen.filter(serves), ...standIns.filter(serves)];
    return [...new Map(all.map((proxy) => [proxy.id, proxy])).values()].slice(0, count);
  }

  #usable(proxies: readonly ProxyInfo[]): ProxyInfo[] {
    const nowMs = this.#platform.now();
    return proxies.filter(({ id }) => (this.#penaltyUntilMs.get(id) ?? -Infinity) <= nowMs);
  }
}

/** The first of the proxies whose operator runs the fewest chosen ones, so that operators can confirm each other. */
function ofRarestOperator(proxies: readonly ProxyInfo[], chosen: readonly ProxyInfo[]): ProxyInfo | undefined {
  const countOf = (proxy: ProxyInfo) => chosen.filter(({ operator }) => operator === proxy.operator).length;
  const least = Math.min(...proxies.map(countOf));
  return proxies.find((proxy) => countOf(proxy) === least);
}

/** Origo's own words, if it has any. */
async function refusalOf(response: Response, origoUrl: string): Promise<Rejection> {
  const said = (await response.json().catch(() => undefined)) as { error?: { message?: unknown } } | undefined;
  const why = typeof said?.error?.message === "string" ? `: ${said.error.message.slice(0, MESSAGE_CHARS_MAX)}` : "";
  return { kind: "noProxies", message: `Origo at ${origoUrl} answered ${response.status}${why}` };
}

function isProxyInfo(value: unknown): value is ProxyInfo {
  if (typeof value !== "object" || value === null) return false;
  const { id, name, url, webTransport, udp, operator } = value as Record<string, unknown>;
  const isNamed =
    typeof id === "string" && typeof name === "string" && typeof url === "string" && /^https?:\/\//.test(url);
  const isOwned = operator === undefined || typeof operator === "string";
  return isNamed && isOwned && isWebTransportAddress(webTransport) && isUdpAddress(udp);
}

function isWebTransportAddress(value: unknown): boolean {
  if (value === undefined) return true;
  const { url, certificateHashes: hashes } = (value ?? {}) as Record<string, unknown>;
  return (
    typeof url === "string" &&
    url.startsWith("https://") &&
    Array.isArray(hashes) &&
    hashes.every((hash) => /^[0-9a-f]{64}$/.test(String(hash)))
  );
}

function isUdpAddress(value: unknown): boolean {
  if (value === undefined) return true;
  const { host, port } = (value ?? {}) as Record<string, unknown>;
  return typeof host === "string" && typeof port === "number";
}
