/**
 * First of the published: a request for a published file in a folder from which the browser has brought nothing yet.
 * Only the browser tells whether the document may fetch there (page/permits.ts), so the site is asked first. Nobody
 * checks the bytes of its answer, so they are the page's only if the transport knows of no such publication.
 */
import type { Link } from "../page/link";
import type { CarriedRequestEvents, RequestHandle, SiteRequest } from "../shared/carry";

export class FirstPublished<Site extends SiteRequest> implements RequestHandle {
  readonly #events: CarriedRequestEvents<Site>;
  readonly #carry: (events: CarriedRequestEvents<Site>) => RequestHandle;
  /** The browser's own request, until it is aborted or serves the page. */
  #site: Site | null;
  #carried: RequestHandle | null = null;
  #isOver = false;

  /** `carry` begins a carried request. The link must then be `ready`. */
  constructor(
    link: Pick<Link, "willAllow">,
    url: string,
    events: CarriedRequestEvents<Site>,
    carry: (events: CarriedRequestEvents<Site>) => RequestHandle,
  ) {
    this.#events = events;
    this.#carry = carry;
    const site = (this.#site = events.askSite());
    void this.#begin(site, link, url);
  }

  credit(): void {
    this.#carried?.credit();
  }

  abort(): void {
    this.#isOver = true;
    this.#dropSite();
    this.#carried?.abort();
  }

  useSite(): void {
    if (this.#carried !== null) return this.#carried.useSite();
    this.#serveSite();
  }

  async #begin(site: Site, link: Pick<Link, "willAllow">, url: string): Promise<void> {
    let isAllowed = false;
    try {
      await site.head;
      isAllowed = await link.willAllow(url);
    } catch {
      // The browser got no answer, which is the page's.
    }
    if (this.#isOver) return;
    if (!isAllowed) return this.#serveSite();
    const { bytes, native } = this.#events;
    this.#carried = this.#carry({
      askSite: () => this.#takeSite() ?? this.#events.askSite(),
      native,
      head: (head) => {
        this.#dropSite();
        this.#events.head(head);
      },
      bytes,
      end: () => this.#events.end(),
      error: () => {
        this.#dropSite();
        this.#events.error();
      },
    });
  }

  #takeSite(): Site | null {
    const site = this.#site;
    this.#site = null;
    return site;
  }

  #dropSite(): void {
    this.#takeSite()?.abort();
  }

  #serveSite(): void {
    this.#isOver = true;
    const site = this.#takeSite();
    if (site !== null) this.#events.native(site);
  }
}
