/**
 * Permits: what the browser has let this document fetch. The browser refuses or changes requests for many reasons that
 * no script can read: mixed content, HSTS, the page's policy (CSP), the local network, another extension. So the
 * browser fetches the first file of each folder itself, and the proxies carry a folder only after that. They follow a
 * redirect only to an origin where a redirect of the browser has ended, because a policy counts there, too.
 * Only the page script notes permits. No other script of the page can.
 */

import { TARGETS_MAX } from "../shared/messages";

export class Permits {
  readonly #folders = new Set<string>();
  readonly #targets = new Set<string>();
  #policyCount = 0;

  /** `countPolicies` counts the elements that can hold a policy. */
  constructor(readonly countPolicies: () => number) {}

  /** The browser asked for `url` and let the page have an answer, which came from `answeredUrl`. */
  note(url: string, answeredUrl: string): void {
    this.#heedPolicies();
    const answered = new URL(answeredUrl);
    // The browser upgraded the request, so a proxy must not ask in the clear.
    if (url.startsWith("http:") && answered.protocol === "https:") return;
    this.#folders.add(folderOf(url));
    if (answered.origin !== new URL(url).origin && this.#targets.size < TARGETS_MAX) this.#targets.add(answered.origin);
  }

  allows(url: string): boolean {
    this.#heedPolicies();
    return this.#folders.has(folderOf(url));
  }

  /** The origins where answers may come from after redirects. */
  get targets(): string[] {
    return [...this.#targets];
  }

  /** Forgets all permits when the page adds a policy, which may be stricter than the one before. */
  #heedPolicies(): void {
    const count = this.countPolicies();
    if (count === this.#policyCount) return;
    this.#policyCount = count;
    this.#folders.clear();
    this.#targets.clear();
  }
}

function folderOf(url: string): string {
  return new URL(".", url).href;
}
