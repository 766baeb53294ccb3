/**
 * What the client remembers, network by network: what it saw of its proxies, and over what it reached them. In memory
 * only, and little of it. A network is whatever Origo calls it (directory.ts); coming back to one is finding what was
 * left there.
 */

/** The networks, and the entries of each, that came up last. */
const NETWORKS_MAX = 8;
const ENTRIES_MAX = 64;

export class NetworkMemory<T> {
  readonly #byNetwork = new Map<string, Map<string, { value: T; atMs: number }>>();

  readonly #network: () => string;
  readonly #ageMs: () => number;

  /** `network` names the one that the client is in. What is older than `ageMs` is as good as none. */
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

/** The oldest goes where there would be more than `most`. */
function putLast<V>(map: Map<string, V>, key: string, value: V, most: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > most) map.delete(map.keys().next().value!);
}
