/**
 * Known files: addresses that the browser has loaded or preloads for this page. It may have them in its cache, so a
 * request for one of them is the browser's. The page's Resource Timing tells whole files; it does not tell byte ranges.
 */
import type { MediaRequest } from "../shared/carry";

/** The oldest names go first. */
const NAMES_MAX = 2048;

export class KnownFiles {
  readonly #names = new Set<string>();
  readonly #document: Pick<Document, "querySelectorAll">;

  constructor(document: Pick<Document, "querySelectorAll">, observer: typeof PerformanceObserver) {
    this.#document = document;
    new observer((list) => {
      for (const { name } of list.getEntries()) this.#add(name);
    }).observe({ type: "resource", buffered: true });
  }

  has({ url, range, cache = "default" }: MediaRequest): boolean {
    if (range !== null || cache !== "default") return false;
    const links = this.#document.querySelectorAll<HTMLLinkElement>('link[rel~="preload" i], link[rel~="prefetch" i]');
    return this.#names.has(url) || [...links].some(({ href }) => href === url);
  }

  #add(name: string): void {
    this.#names.add(name);
    const oldest = this.#names.values().next();
    if (this.#names.size > NAMES_MAX && oldest.done === false) this.#names.delete(oldest.value);
  }
}
