/**
 * Site: a page's request to the site itself, beside the proxies or in place of them. A site that limits the rate of
 * requests counts those of the proxies, too. A refusal right after them is theirs, so the page does not see it: the
 * request waits and goes again.
 */
import { attempt } from "../page/wrap";
import type { SiteRequest } from "../shared/carry";
import type { SiteHead } from "../shared/messages";
import { retryAfterMs, fieldsOf } from "../shared/fields";
import { itemOf, newTable, options, OwnURL, type Table } from "../shared/primordials";
import { hostAndPort, max, nowOfDate } from "../shared/late-primordials";

/** A refusal this long after the last request of the proxies is not theirs. */
export const OURS_MS = 60_000;
/**
 * Without `Retry-After`. A limit of connections is free again at once. Limits of requests count some seconds, and their
 * status is 429. A server that is out of order answers 503, too.
 */
export const WAITS_MS: Readonly<Table<readonly number[]>> = options({
  429: [250, 500, 1000, 2000, 4000, 4000],
  503: [250, 500, 1000, 2000],
});
/** A player asks again after a time without an answer, but not after a refusal. */
export const WAIT_MS_MAX = 30_000;

/** When the proxies were last asked, by host. */
export class Asked {
  readonly #atMs = newTable<number>();

  note(url: string, nowMs: number): void {
    this.#atMs[hostOf(url)] = nowMs;
  }

  isRecent(url: string, nowMs: number): boolean {
    return nowMs - (this.#atMs[hostOf(url)] ?? -Infinity) < OURS_MS;
  }

  /** The site refuses the page alone, too. */
  forget(url: string): void {
    delete this.#atMs[hostOf(url)];
  }
}

const hostOf = (url: string): string => hostAndPort(new OwnURL(url));

/** How long to wait after the refusal `head`; undefined if the page gets it. `attempt` counts from 0. */
export function waitMsOf({ status, headers }: SiteHead, attempt: number): number | undefined {
  const waitsMs = WAITS_MS[status];
  const toldMs = retryAfterMs(fieldsOf(headers), nowOfDate());
  if (toldMs === undefined) return waitsMs === undefined ? undefined : itemOf(waitsMs, attempt);
  if (waitsMs === undefined || toldMs > WAIT_MS_MAX || attempt > 0) return undefined;
  return max(waitsMs[0]!, toldMs);
}

interface SiteEnvironment {
  nowMs(): number;
  setTimeout(callback: () => void, ms: number): unknown;
  clearTimeout(timer: unknown): void;
}

/** What the asker of the site hears: `answered` or `failed`, once. */
export interface SiteListener<Site> {
  answered(site: Site, head: SiteHead): void;
  failed(site: Site): void;
  /** The site refused, maybe because of the proxies. */
  limited(): void;
  /** It refused after all waits, too. */
  refused(): void;
}

/** Asks the site until it gives an answer that is the page's. */
export class SiteAsker<Site extends SiteRequest> {
  #site: Site | null = null;
  #timer: unknown;
  #attempt = 0;

  constructor(
    readonly env: SiteEnvironment,
    readonly askSite: () => Site,
    /** Whether the proxies asked the site recently. */
    readonly isOurs: () => boolean,
    readonly listener: SiteListener<Site>,
  ) {
    this.#ask();
  }

  abort(): void {
    this.env.clearTimeout(this.#timer);
    this.#site?.abort();
    this.#site = null;
  }

  #ask(): void {
    const site = this.askSite();
    this.#site = site;
    void this.#hear(site);
  }

  async #hear(site: Site): Promise<void> {
    let head: SiteHead;
    try {
      head = await site.head;
    } catch {
      if (this.#site === site) this.listener.failed(site);
      return;
    }
    if (this.#site === site) this.#handle(site, head);
  }

  #handle(site: Site, head: SiteHead): void {
    const isRefused = this.isOurs() && head.status in WAITS_MS;
    if (isRefused) this.listener.limited();
    const waitMs = isRefused ? attempt(() => waitMsOf(head, this.#attempt)) : undefined;
    if (waitMs === undefined) {
      if (isRefused) this.listener.refused();
      return this.listener.answered(site, head);
    }
    site.abort();
    this.#site = null;
    this.#attempt += 1;
    this.#timer = this.env.setTimeout(() => this.#ask(), waitMs);
  }
}
