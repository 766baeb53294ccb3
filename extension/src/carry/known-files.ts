/**
 * Known files: addresses that the browser has loaded or preloads for this page. It may have them in its cache, so a
 * request for one of them is the browser's. The page's Resource Timing tells whole files; it does not tell byte ranges.
 */
import type { MediaRequest } from "../shared/carry";
import { newTable } from "../shared/primordials";
import { entryOf, nodeCount, select } from "../shared/platform";
import { hearEntries, linkOf } from "../shared/late-platform";

/** The oldest half of this many names goes first. */
const NAMES_MAX = 4096;
const PRELOADS = 'link[rel~="preload" i], link[rel~="prefetch" i]';

export class KnownFiles {
  #names = newTable<true>();
  #older = newTable<true>();
  #count = 0;

  constructor() {
    hearEntries({ type: "resource", buffered: true }, (entry) => this.#add(entryOf(entry).name));
  }

  has({ url, range, cache }: MediaRequest): boolean {
    if (range !== null || cache !== "default") return false;
    return url in this.#names || url in this.#older || isPreloaded(url);
  }

  #add(name: string): void {
    if (this.#count === NAMES_MAX / 2) {
      this.#older = this.#names;
      this.#names = newTable();
      this.#count = 0;
    }
    if (!(name in this.#names)) this.#count += 1;
    this.#names[name] = true;
  }
}

function isPreloaded(url: string): boolean {
  const links = select(document, PRELOADS);
  const count = nodeCount(links);
  for (let at = 0; at < count; at++) if (linkOf(links[at] as HTMLLinkElement) === url) return true;
  return false;
}
