/**
 * Holders: which proxies hold which objects, from their reports. In memory and bounded: an object beyond the limit is
 * not remembered, so no client is sent to its proxy.
 */
import type { ObjectsReport } from "@tributary/contract/publication-schema";

/** The owner of the proxies that are connected to this Origo. */
const HERE = "";

export class Holders {
  /** The proxies of each object. */
  readonly #proxies = new Map<string, Set<string>>();
  /** The objects of each proxy. */
  readonly #objects = new Map<string, Set<string>>();
  /** The Origo that each proxy is connected to. */
  readonly #owners = new Map<string, string>();
  #count = 0;
  /** Counts up with each change. */
  version = 0;
  /** Hears what a proxy that is connected to this Origo reports; undefined: it left. */
  onOwn: (proxyId: string, report: ObjectsReport | undefined) => void = () => undefined;

  readonly #entriesMax: () => number;

  constructor(entriesMax: () => number) {
    this.#entriesMax = entriesMax;
  }

  /** `owner`: another Origo, which the proxy is connected to. */
  handleReport(proxyId: string, report: ObjectsReport, owner = HERE): void {
    const { isFirst, added, removed } = report;
    const isNew = this.#owners.get(proxyId) !== owner;
    if (isFirst || isNew) this.#forget(proxyId);
    this.#owners.set(proxyId, owner);
    if (owner === HERE) this.onOwn(proxyId, report);
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

  /** The proxy left this Origo, or the `owner`. It reports everything again where it comes back. */
  handleGone(proxyId: string, owner = HERE): void {
    if (this.#owners.get(proxyId) !== owner) return;
    this.#forget(proxyId);
    if (owner === HERE) this.onOwn(proxyId, undefined);
  }

  /** What the proxies that are connected to this Origo hold. */
  own(): [proxyId: string, objects: string[]][] {
    return [...this.#objects].flatMap(([id, objects]) => (this.#owners.get(id) === HERE ? [[id, [...objects]]] : []));
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

  #forget(proxyId: string): void {
    for (const object of this.#objects.get(proxyId) ?? []) this.#remove(object, proxyId);
    this.#objects.delete(proxyId);
    this.#owners.delete(proxyId);
    this.version++;
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
