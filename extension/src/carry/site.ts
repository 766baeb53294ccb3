/**
 * Site: a page's request to the site itself, beside the proxies or in place of them. A site that limits the rate of
 * requests counts those of the proxies, too. A refusal right after them is theirs, so the page does not see it: the
 * request waits and goes again.
 */
import type { SiteRequest } from "../shared/carry";
import type { SiteHead } from "../shared/messages";

/** A refusal this long after the last request of the proxies is not theirs. */
export const OURS_MS = 20_000;
const WAIT_MS_MIN = 1000;
/** Together. Players wait ten seconds for the first byte. */
export const WAITS_MS_MAX = 9000;

/** When the proxies were last asked, by host. */
export class Asked {
  readonly #atMs = new Map<string, number>();

  note(url: string, nowMs: number): void {
    this.#atMs.set(new URL(url).host, nowMs);
  }

  isRecent(url: string, nowMs: number): boolean {
    return nowMs - (this.#atMs.get(new URL(url).host) ?? -Infinity) < OURS_MS;
  }
}

/** How long to wait after the refusal `head`; undefined if `head` is no refusal for the rate of requests. */
export function waitMsOf({ status, headers }: SiteHead, attempt: number): number | undefined {
  if (status !== 429 && status !== 503) return undefined;
  const told = headers["retry-after"];
  const seconds = Number(told ?? NaN);
  const untilMs = told === undefined || !Number.isNaN(seconds) ? NaN : Date.parse(told) - Date.now();
  const wantedMs = Number.isNaN(seconds) ? untilMs : 1000 * seconds;
  return Math.max(WAIT_MS_MIN, Number.isNaN(wantedMs) ? WAIT_MS_MIN * 2 ** attempt : wantedMs);
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
  /** The site refused because of the proxies. */
  limited(): void;
}

/** Asks the site until it gives an answer that is the page's. */
export class SiteAsker<Site extends SiteRequest> {
  #site: Site | null = null;
  #timer: unknown;
  #attempt = 0;
  #waitedMs = 0;

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
    site.head.then(
      (head) => this.#site === site && this.#handle(site, head),
      () => this.#site === site && this.listener.failed(site),
    );
  }

  #handle(site: Site, head: SiteHead): void {
    const waitMs = this.isOurs() ? waitMsOf(head, this.#attempt) : undefined;
    if (waitMs !== undefined) this.listener.limited();
    if (waitMs === undefined || this.#waitedMs + waitMs > WAITS_MS_MAX) return this.listener.answered(site, head);
    site.abort();
    this.#site = null;
    this.#attempt += 1;
    this.#waitedMs += waitMs;
    this.#timer = this.env.setTimeout(() => this.#ask(), waitMs);
  }
}
