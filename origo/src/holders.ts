/**
 * Holders: which proxies hold which objects, from their reports. In memory and bounded: an object beyond the limit is
 * not remembered, so no client is sent to its proxy.
 */
import type { ObjectsReport } from "@tributary/contract/publication-schema";

export class Holders {
  /** The proxies of each object. */
  readonly #proxies = new Map<string, Set<string>>();
  /** The objects of each proxy. */
  readonly #objects = new Map<string, Set<string>>();
  #count = 0;
  /** Counts up with each change. */
  version = 0;

  readonly #entriesMax: () => number;

  constructor(entriesMax: () => number) {
    this.#entriesMax = entriesMax;
  }

  handleReport(proxyId: string, { isFirst, added, removed }: ObjectsReport): void {
    if (isFirst) this.handleGone(proxyId);
    const objects = this.#objects.get(proxyId) ?? new Set();
    this.#objects.set(proxyId, objects);
    for (const object of removed) if (objects.delete(object)) this.#remove(object, proxyId);
    for (const object of added) {
      if (this.#count >= this.#entriesMax()) break;
      if (objects.has(object)) continue;
      objects.add(object);
      this.#add(object, proxyId);
    }
    this.version++;
  }

  /** The proxy left. It reports everything again when it comes back. */
  handleGone(proxyId: string): void {
    for (const object of this.#objects.get(proxyId) ?? []) this.#remove(object, proxyId);
    this.#objects.delete(proxyId);
    this.version++;
  }

  /** The ids of the proxies that have the object. */
  of(object: string): string[] {
    return [...(this.#proxies.get(object) ?? [])];
  }

  /** The objects of a proxy. */
  objectsOf(proxyId: string): ReadonlySet<string> {
    return this.#objects.get(proxyId) ?? new Set();
  }

  /** How many of these objects each proxy has. */
  count(objects: Iterable<string>): Map<string, number> {
    const counts = new Map<string, number>();
    for (const object of objects)
      for (const id of this.#proxies.get(object) ?? []) counts.set(id, (counts.get(id) ?? 0) + 1);
    return counts;
  }

  #add(object: string, proxyId: string): void {
    const proxies = this.#proxies.get(object);
    if (proxies === undefined) this.#proxies.set(object, new Set([proxyId]));
    else proxies.add(proxyId);
    this.#count++;
  }

  #remove(object: string, proxyId: string): void {
    const proxies = this.#proxies.get(object);
    if (!proxies?.delete(proxyId)) return;
    if (proxies.size === 0) this.#proxies.delete(object);
    this.#count--;
  }
}
