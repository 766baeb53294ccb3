/**
 * Remembers values for each network, for example which transport reached a proxy. It keeps few entries, and only in
 * memory. Origo names the network (directory.ts). A client that returns to a network finds its old values.
 */

/** The memory keeps this many networks, and this many entries for each. The least recently noted ones go first. */
const NETWORKS_MAX = 8;
const ENTRIES_MAX = 64;

export class NetworkMemory<T> {
  readonly #byNetwork = new Map<string, Map<string, { value: T; atMs: number }>>();

  readonly #network: () => string;
  readonly #ageMs: () => number;

  /** `network` names the client's current network. Entries older than `ageMs` do not count. */
  constructor(network: () => string, ageMs: () => number) {
    this.#network = network;
    this.#ageMs = ageMs;
  }

  note(key: string, value: T, nowMs: number): void {
    const here = this.#byNetwork.get(this.#network()) ?? new Map<string, { value: T; atMs: number }>();
    putLast(this.#byNetwork, this.#network(), here, NETWORKS_MAX);
    putLast(here, key, { value, atMs: nowMs }, ENTRIES_MAX);
  }

  of(key: string, nowMs: number): T | undefined {
    const known = this.#byNetwork.get(this.#network())?.get(key);
    return known && nowMs - known.atMs <= this.#ageMs() ? known.value : undefined;
  }
}

/** Names the segments that differ in the numbers of their file name only, as in `https://site/720p/segment-*.ts`. */
export function seriesOf(url: string): string {
  const [path] = url.split(/[?#]/, 1);
  const from = path!.lastIndexOf("/") + 1;
  return path!.slice(0, from) + path!.slice(from).replaceAll(/\d+/g, "*");
}

/** Puts the entry last, and removes the oldest one if there are more than `most`. */
export function putLast<V>(map: Map<string, V>, key: string, value: V, most: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > most) map.delete(map.keys().next().value!);
}
