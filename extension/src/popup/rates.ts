/**
 * Rates: makes rates and shares from readings of the transport's cumulative figures. Pure.
 */
import { isCarrying, type LiveFigures, type LiveProxy } from "../shared/runtime";

/** Older readings do not count in a rate. */
const SPAN_MS = 3000;

export interface Stream extends LiveProxy {
  /** Over the last seconds. */
  bytesPerSec: number;
  /** Share of the bytes of all proxies, 0..1: over the last seconds, or over all time while no bytes arrive. */
  share: number;
}

export class Rates {
  #readings: LiveFigures[] = [];

  /**
   * Takes a reading and returns the stream of each proxy, sorted by name. A restarted transport clears the readings.
   */
  add(figures: LiveFigures): { streams: Stream[]; bytesPerSec: number } {
    const last = this.#readings.at(-1);
    if (last !== undefined && totalOf(figures) < totalOf(last)) this.#readings = [];
    this.#readings.push(figures);
    while (this.#readings.length > 2 && figures.atMs - (this.#readings[1]?.atMs ?? 0) >= SPAN_MS)
      this.#readings.shift();
    const first = this.#readings[0] ?? figures;
    const seconds = Math.max(1, figures.atMs - first.atMs) / 1000;
    const gained = figures.proxies.map(
      (proxy) => proxy.bytes - (first.proxies.find(({ id }) => id === proxy.id)?.bytes ?? 0),
    );
    const gainedSum = gained.reduce((sum, bytes) => sum + bytes, 0);
    const allSum = totalOf(figures);
    const streams = figures.proxies.map((proxy, index): Stream => {
      const bytes = gained[index] ?? 0;
      const share = gainedSum > 0 ? bytes / gainedSum : allSum > 0 ? proxy.bytes / allSum : 0;
      return { ...proxy, share, bytesPerSec: this.#readings.length > 1 ? bytes / seconds : 0 };
    });
    return { streams: streams.sort(byName), bytesPerSec: this.#readings.length > 1 ? gainedSum / seconds : 0 };
  }
}

/** The state of the session, `http` while bytes come without one, or `dropped` for a liar that brings nothing. */
export function shownState({ state, bytesPerSec, lies }: Stream, overHttp: LiveFigures["overHttp"]): string {
  if (lies > 0 && bytesPerSec === 0) return "dropped";
  return bytesPerSec > 0 && !isCarrying(state) && (state === "idle" || overHttp !== null) ? "http" : state;
}

/**
 * The share of useless data from the proxies, 0..1. Packets that bring nothing new are useless; bytes that are on their
 * way to the page are not. Without packets (HTTP), all bytes that no page received are useless.
 */
export function wastedShare(proxies: readonly LiveProxy[], deliveredBytes: number): number {
  const sum = (of: (proxy: LiveProxy) => number): number => proxies.reduce((total, proxy) => total + of(proxy), 0);
  const [bytes, packets] = [sum((proxy) => proxy.bytes), sum((proxy) => proxy.packets)];
  if (packets > 0) return Math.max(0, 1 - sum(({ innovative }) => innovative) / packets);
  return bytes > 0 ? Math.max(0, 1 - deliveredBytes / bytes) : 0;
}

function totalOf(figures: LiveFigures): number {
  return figures.proxies.reduce((sum, { bytes }) => sum + bytes, 0);
}

function byName(a: Stream, b: Stream): number {
  return a.name.localeCompare(b.name) || a.id.localeCompare(b.id);
}
