/**
 * Detours: what went direct instead of through the proxies and why; which sites rest from the proxies for a while
 * because they failed there again and again, are refused there, or brought wrong bytes; and which chunks are too small
 * to gain by them. What pages of one origin brought about holds for them alone: no page can slow another's host down,
 * or learn what others have asked for. Pure: time arrives as `nowMs`.
 */
import type { Trouble } from "../shared/runtime";

/** So many failures of a host in a row, and it goes direct for so long. Failures close together are one. */
export const FAILURES_MAX = 3;
export const FAILURE_APART_MS = 2000;
export const REST_MS = 30_000;
/** For so long where the site itself answers proxies otherwise than the viewer, which is seldom over soon. */
export const REFUSED_MS = 600_000;
const HOSTS_MAX = 256;
/**
 * So long a host goes direct for the pages that got wrong bytes of it. Which proxy sent them, coded packets don't tell.
 */
export const WRONG_MS = 600_000;
/**
 * Even a fresh connection brings so much in its first flight (RFC 6928: 10 segments of 1,460 bytes), which no way over
 * proxies can better. After so many chunks of a kind in a row that are no larger, the next go direct for so long.
 */
export const SMALL_BYTES = 14_600;
export const SMALL_IN_A_ROW = 6;
export const SMALL_MS = 30_000;
const KINDS_MAX = 1024;
/** Most bytes that one note of a page can add; the pages' notes are claims, kept for the popup only. */
const NOTE_BYTES_MAX = 2 ** 32;

/** Kinds that are no trouble: what is asked for does not belong to the proxies, or the viewer wants it so. */
const HARMLESS = new Set(["direct-mode", "rule", "off", "small"]);

interface Failures {
  count: number;
  lastMs: number;
  restUntilMs: number;
}

export class Detours {
  /** By page's origin and host. */
  readonly #hosts = new Map<string, Failures>();
  /** By page's origin and kind of chunk: its address with each number in it left out. */
  readonly #sizes = new Map<string, { smallCount: number; directUntilMs: number }>();
  /** By page's origin and host: until when. */
  readonly #wrong = new Map<string, number>();
  #trouble: Trouble | null = null;
  fallbacks = 0;
  directBytes = 0;

  constructor(readonly epochMs: () => number) {}

  /** Why the last chunk went direct; null once one has come through the proxies again. */
  get trouble(): Trouble | null {
    return this.#trouble;
  }

  isDirect(host: string, pageOrigin: string, nowMs: number): boolean {
    const key = keyOf(pageOrigin, host);
    if ((this.#wrong.get(key) ?? 0) > nowMs) {
      this.noteFallback("wrong", host);
      return true;
    }
    const isResting = (this.#hosts.get(key)?.restUntilMs ?? 0) > nowMs;
    if (isResting) this.noteFallback("resting", `${host}, ${FAILURES_MAX} times`);
    return isResting;
  }

  noteSuccess(host: string, pageOrigin: string): void {
    this.#hosts.delete(keyOf(pageOrigin, host));
    this.#trouble = null;
  }

  /** `restMs`: how long it rests if this failure is one too many. */
  noteFailure(host: string, pageOrigin: string, nowMs: number, restMs = REST_MS): void {
    const key = keyOf(pageOrigin, host);
    const known = this.#hosts.get(key) ?? { count: 0, lastMs: -Infinity, restUntilMs: 0 };
    if (nowMs - known.lastMs < FAILURE_APART_MS) return;
    known.count += 1;
    known.lastMs = nowMs;
    if (known.count >= FAILURES_MAX) known.restUntilMs = nowMs + restMs;
    keepLatest(this.#hosts, key, known, HOSTS_MAX);
  }

  /**
   * A page of `pageOrigin` says that what came of `host` through proxies were other bytes. False when that is known
   * already.
   */
  noteWrong(host: string, pageOrigin: string, nowMs: number): boolean {
    const key = keyOf(pageOrigin, host);
    if ((this.#wrong.get(key) ?? 0) > nowMs) return false;
    keepLatest(this.#wrong, key, nowMs + WRONG_MS, HOSTS_MAX);
    this.noteFallback("wrong", host);
    return true;
  }

  /** A chunk of `url` came through the proxies and had `bytes`. */
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

  /** The viewer changed something: every site may try again. */
  reset(): void {
    this.#hosts.clear();
    this.#wrong.clear();
    this.#trouble = null;
  }
}

function keyOf(pageOrigin: string, of: string): string {
  return `${pageOrigin} ${of}`;
}

function kindOfChunk({ host, pathname }: URL): string {
  return host + pathname.replace(/\d+/g, "#");
}

/** Sets `key` as the newest; the oldest goes when there are more than `max`. */
function keepLatest<Value>(map: Map<string, Value>, key: string, value: Value, max: number): void {
  map.delete(key);
  map.set(key, value);
  const oldest = map.keys().next();
  if (map.size > max && oldest.done === false) map.delete(oldest.value);
}
