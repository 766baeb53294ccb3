/**
 * Detours: which chunks go direct instead of through the proxies, and why. A host rests from the proxies for a while
 * after repeated failures. It goes direct for long if it answers the proxies otherwise than the page, or if the proxies
 * do not serve it. Chunks that are too small to gain go direct too. All of this is kept per origin of the asking page,
 * so a page can neither slow down another page's host nor learn what others asked for. Pure: time arrives as `nowMs`.
 */
import type { Trouble } from "../shared/runtime";
import { keepLatest } from "../shared/keep-latest";

/** After this many failures in a row a host goes direct for REST_MS. Failures closer than FAILURE_APART_MS are one. */
export const FAILURES_MAX = 3;
export const FAILURE_APART_MS = 2000;
export const REST_MS = 30_000;
/**
 * How long a host goes direct, by the reason. Such a reason lasts: the host refuses the proxies (`status`, `cors`) or
 * limits requests (`limited`), it gives them other bytes (`differs`), it takes long to its first byte (`slow`), or the
 * proxies' operator does not allow it (`egressRefused`).
 */
export const DIRECT_MS = {
  status: 600_000,
  cors: 600_000,
  limited: 3_600_000,
  slow: 600_000,
  differs: 3_600_000,
  egressRefused: 3_600_000,
} as const;
export type DirectReason = keyof typeof DIRECT_MS;
/** These refusals may be of the proxies' own making: an address is good once, or a limit is used up. */
const REFUSALS = new Set([401, 403, 410, 429, 503]);
const LIMITS = new Set([429, 503]);
const HOSTS_MAX = 256;
/**
 * A fresh connection brings this much in its first flight (RFC 6928: 10 segments of 1,460 bytes), and proxies cannot be
 * faster. After SMALL_IN_A_ROW chunks of a kind that are no larger, the next ones go direct for SMALL_MS.
 */
export const SMALL_BYTES = 14_600;
export const SMALL_IN_A_ROW = 6;
export const SMALL_MS = 30_000;
const KINDS_MAX = 1024;
/** The most bytes that one message of a page can add. Pages may claim anything, so only the popup shows the sum. */
const NOTE_BYTES_MAX = 2 ** 32;

/** These kinds are not faults: the proxies do not carry these requests, or the viewer chose this. */
const HARMLESS = new Set(["direct-mode", "rule", "off", "small", "compare"]);

/** The popup tells these failures as they are while a host rests, because no proxy has failed. */
const WITHOUT_PROXIES = new Set(["origoUnreachable", "noProxies"]);

interface Failures {
  count: number;
  lastMs: number;
  restUntilMs: number;
  kind: string;
  detail: string;
}

interface Direct {
  reason: DirectReason;
  detail: string;
  untilMs: number;
  /** What the proxies got, if it may be no refusal. */
  refused?: Refused;
}

/** A status that the proxies got instead of bytes. */
export interface Refused {
  url: string;
  status: number;
}

/** Whether the status says that the site does not want the request, or not so often. */
export function isRefusal(status: number): boolean {
  return REFUSALS.has(status);
}

export class Detours {
  /** By the page's origin and the host. */
  readonly #hosts = new Map<string, Failures>();
  readonly #direct = new Map<string, Direct>();
  /** By the page's origin and the kind of chunk, which is its address without the numbers in it. */
  readonly #sizes = new Map<string, { smallCount: number; directUntilMs: number }>();
  #trouble: Trouble | null = null;
  fallbacks = 0;
  directBytes = 0;
  /** Of published files. */
  uncheckedBytes = 0;

  constructor(readonly epochMs: () => number) {}

  /** Why the last chunk went direct; null after a chunk came through the proxies. */
  get trouble(): Trouble | null {
    return this.#trouble;
  }

  isDirect(host: string, pageOrigin: string, nowMs: number): boolean {
    const key = keyOf(pageOrigin, host);
    const direct = this.#direct.get(key);
    if (direct !== undefined && direct.untilMs > nowMs) {
      this.noteFallback(direct.reason, direct.detail);
      return true;
    }
    const failures = this.#hosts.get(key);
    if (failures === undefined || failures.restUntilMs <= nowMs) return false;
    this.noteFallback(WITHOUT_PROXIES.has(failures.kind) ? failures.kind : "resting", failures.detail);
    return true;
  }

  /** The host goes direct from now on, for long. */
  noteDirectHost(host: string, pageOrigin: string, reason: DirectReason, detail: string, nowMs: number): void {
    const direct = { reason, detail, untilMs: nowMs + DIRECT_MS[reason] };
    keepLatest(this.#direct, keyOf(pageOrigin, host), direct, HOSTS_MAX);
    this.noteFallback(reason, detail);
  }

  /** The proxies got a status instead of bytes, so the host goes direct at once. */
  noteStatus({ url, status }: Refused, pageOrigin: string, nowMs: number): void {
    const { host } = new URL(url);
    if (LIMITS.has(status)) return this.noteDirectHost(host, pageOrigin, "limited", host, nowMs);
    this.noteDirectHost(host, pageOrigin, "status", `${host} answered ${status} through the proxies`, nowMs);
    const direct = this.#direct.get(keyOf(pageOrigin, host));
    if (direct !== undefined && !isRefusal(status)) direct.refused = { url, status };
  }

  /** The site gave the page an answer. If it is the one that the proxies got, the host treats both alike. */
  forgiveStatus({ url, status }: Refused, pageOrigin: string): void {
    const key = keyOf(pageOrigin, new URL(url).host);
    const refused = this.#direct.get(key)?.refused;
    if (refused?.url !== url || refused.status !== status) return;
    this.#direct.delete(key);
    if (this.#trouble?.kind === "status") this.#trouble = null;
  }

  noteSuccess(host: string, pageOrigin: string): void {
    this.#hosts.delete(keyOf(pageOrigin, host));
    this.#trouble = null;
  }

  /** The host rests for a while if this failure reaches FAILURES_MAX. */
  noteFailure(host: string, pageOrigin: string, kind: string, detail: string, nowMs: number): void {
    const key = keyOf(pageOrigin, host);
    const known = this.#hosts.get(key) ?? { count: 0, lastMs: -Infinity, restUntilMs: 0, kind, detail };
    if (nowMs - known.lastMs < FAILURE_APART_MS) return;
    known.count += 1;
    known.lastMs = nowMs;
    known.kind = kind;
    known.detail = detail;
    if (known.count >= FAILURES_MAX) known.restUntilMs = nowMs + REST_MS;
    keepLatest(this.#hosts, key, known, HOSTS_MAX);
  }

  /** The chunk at `url` came through the proxies. */
  noteSize(url: URL, pageOrigin: string, bytes: number, nowMs: number): void {
    const kind = keyOf(pageOrigin, kindOfChunk(url));
    const smallCount = bytes > SMALL_BYTES ? 0 : (this.#sizes.get(kind)?.smallCount ?? 0) + 1;
    keepLatest(
      this.#sizes,
      kind,
      { smallCount, directUntilMs: smallCount >= SMALL_IN_A_ROW ? nowMs + SMALL_MS : 0 },
      KINDS_MAX,
    );
  }

  isSmall(url: URL, pageOrigin: string, nowMs: number): boolean {
    return (this.#sizes.get(keyOf(pageOrigin, kindOfChunk(url)))?.directUntilMs ?? 0) > nowMs;
  }

  noteFallback(kind: string, detail: string): void {
    if (HARMLESS.has(kind)) return;
    this.fallbacks += 1;
    this.#trouble = { kind, detail, atMs: this.epochMs() };
  }

  noteDirect(bytes: number): void {
    this.directBytes += Math.min(bytes, NOTE_BYTES_MAX);
  }

  noteUnchecked(bytes: number): void {
    this.uncheckedBytes += Math.min(bytes, NOTE_BYTES_MAX);
  }

  /** Lets every host try again, because the viewer changed a setting. */
  reset(): void {
    this.#hosts.clear();
    this.#direct.clear();
    this.#sizes.clear();
    this.#trouble = null;
  }
}

function keyOf(pageOrigin: string, of: string): string {
  return `${pageOrigin} ${of}`;
}

function kindOfChunk({ host, pathname }: URL): string {
  return host + pathname.replace(/\d+/g, "#");
}
