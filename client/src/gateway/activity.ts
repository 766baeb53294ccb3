/** Activity: what players fetch through the gateway, for its page. No query strings: they can hold secrets. No I/O. */
import { putLast } from "../memory";
import { plainUrl } from "../request";

const RECENT_MAX = 20;
const PLAYS_MAX = 50;
/** A play without a request for this long has ended or is paused. */
const QUIET_MS = 30_000;
const RATE_MS = 5000;

export type Way = "proxies" | "direct";

/** One request of a player. */
export interface Transfer {
  readonly url: string;
  readonly player: string;
  readonly startedMs: number;
  way: Way;
  /** Why it is direct. */
  reason: string | undefined;
  status: number | undefined;
  proxyBytes: number;
  directBytes: number;
  /** The names of the proxies that brought bytes. */
  proxies: readonly string[];
  endedMs: number | undefined;
}

/** What one player plays: all requests that follow from one address. */
export interface Play {
  readonly root: string;
  readonly player: string;
  readonly startedMs: number;
  lastMs: number;
  open: number;
  /** What the latest request got, if that was an error. */
  failure: string | undefined;
  proxyBytes: number;
  directBytes: number;
  readonly proxies: Set<string>;
  /** Bytes and when they came, of the last seconds. */
  readonly arrivals: { atMs: number; bytes: number }[];
}

export class Activity {
  readonly #plays = new Map<string, Play>();
  readonly #recent: Transfer[] = [];
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Of several `roots`, the one that this player has used last counts. */
  begin(url: URL, roots: readonly string[], player: string): TransferLog {
    const transfer: Transfer = {
      url: plainUrl(url.href),
      player,
      startedMs: this.#now(),
      way: "direct",
      reason: undefined,
      status: undefined,
      proxyBytes: 0,
      directBytes: 0,
      proxies: [],
      endedMs: undefined,
    };
    this.#recent.unshift(transfer);
    this.#recent.length = Math.min(this.#recent.length, RECENT_MAX);
    return new TransferLog(transfer, this.#playOf(this.#rootOf(roots, player), player), this.#now);
  }

  /** The latest requests, newest first. */
  get recent(): readonly Transfer[] {
    return this.#recent;
  }

  /** What plays now, or has played. The latest is first. */
  plays(): (Play & { isPlaying: boolean; bytesPerSec: number })[] {
    const nowMs = this.#now();
    return [...this.#plays.values()].reverse().map((play) => {
      const bytes = play.arrivals.reduce((sum, each) => sum + (nowMs - each.atMs <= RATE_MS ? each.bytes : 0), 0);
      const isPlaying = play.open > 0 || nowMs - play.lastMs <= QUIET_MS;
      return { ...play, isPlaying, bytesPerSec: (1000 * bytes) / RATE_MS };
    });
  }

  #rootOf(roots: readonly string[], player: string): string {
    const keys = [...this.#plays.keys()].reverse();
    const last = keys.find((key) => roots.some((root) => key === keyOf(root, player)));
    return roots.find((root) => keyOf(root, player) === last) ?? roots[0]!;
  }

  #playOf(root: string, player: string): Play {
    const nowMs = this.#now();
    const key = keyOf(root, player);
    const play = this.#plays.get(key) ?? {
      root: plainUrl(root),
      player,
      startedMs: nowMs,
      lastMs: nowMs,
      open: 0,
      failure: undefined,
      proxyBytes: 0,
      directBytes: 0,
      proxies: new Set<string>(),
      arrivals: [],
    };
    putLast(this.#plays, key, play, PLAYS_MAX);
    return play;
  }
}

const keyOf = (root: string, player: string): string => `${player} ${root}`;

/** A player that goes away before the answer begins looks the same as an origin that does not answer. */
export function isFailed({ status, endedMs }: Transfer): boolean {
  return endedMs !== undefined && (status === undefined || status >= 400);
}

function failureOf(status: number | undefined): string {
  return status === undefined ? "no answer" : `status ${status}`;
}

/** Notes what happens to one transfer. */
export class TransferLog {
  readonly transfer: Transfer;
  readonly #play: Play;
  readonly #now: () => number;

  constructor(transfer: Transfer, play: Play, now: () => number) {
    this.transfer = transfer;
    this.#play = play;
    this.#now = now;
    play.open++;
  }

  by(way: Way, reason?: string): void {
    this.transfer.way = way;
    this.transfer.reason = reason;
  }

  /** Counts bytes that the player takes. */
  count(bytes: number): void {
    const nowMs = this.#now();
    const { arrivals } = this.#play;
    this.#play.lastMs = nowMs;
    const last = arrivals.at(-1);
    if (last && nowMs - last.atMs < 100) last.bytes += bytes;
    else arrivals.push({ atMs: nowMs, bytes });
    while (nowMs - arrivals[0]!.atMs > RATE_MS) arrivals.shift();
    const name = this.transfer.way === "proxies" ? "proxyBytes" : "directBytes";
    this.transfer[name] += bytes;
    this.#play[name] += bytes;
  }

  /** The record of the download: bytes that were counted as the proxies', but came from the origin, and the proxies. */
  settle(directBytes: number, proxies: readonly string[], reason: string | undefined): void {
    const moved = Math.min(directBytes, this.transfer.proxyBytes);
    for (const counts of [this.transfer, this.#play]) {
      counts.proxyBytes -= moved;
      counts.directBytes += moved;
    }
    this.transfer.proxies = proxies;
    this.transfer.reason ??= reason;
    for (const name of proxies) this.#play.proxies.add(name);
  }

  end(status: number | undefined): void {
    if (this.transfer.endedMs !== undefined) return;
    this.transfer.endedMs = this.#now();
    this.transfer.status = status;
    this.#play.open--;
    this.#play.lastMs = this.transfer.endedMs;
    this.#play.failure = isFailed(this.transfer) ? failureOf(status) : undefined;
  }
}
