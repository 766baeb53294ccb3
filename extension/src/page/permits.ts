/**
 * Permits: what the browser has let this document fetch. The browser refuses or changes requests for many reasons that
 * no script can read: mixed content, HSTS, the page's policy (CSP), the local network, another extension. So the
 * browser fetches the first file of each folder itself, and the proxies carry a folder only after that. Some sites have
 * a folder for each segment: once the browser has brought files of FAMILY_MIN folders side by side, the others beside
 * them are permitted, too. The proxies follow a redirect only to an origin where a redirect of the browser has ended,
 * because a policy counts there, too. Only the page script notes permits. No other script of the page can.
 */

import { keepLatest } from "../shared/keep-latest";
import { TARGETS_MAX } from "../shared/messages";

export const FAMILY_MIN = 3;
const UNPROVEN_MAX = 8;

export class Permits {
  readonly #folders = new Set<string>();
  /** By family: the branches that have a permitted folder. */
  readonly #families = new Map<string, Set<string>>();
  /** By folder: an address that the browser asked for in the clear, or upgraded without saying so. */
  readonly #unproven = new Map<string, string>();
  readonly #targets = new Set<string>();
  /** By origin and status. HTTP/2 and HTTP/3 have no reason phrases, so "" is for all statuses of the origin. */
  readonly #phrases = new Map<string, string>();
  #policyCount = 0;

  /**
   * `countPolicies` counts the elements that can hold a policy. `wasAsked` says whether the browser's list of requests
   * (Resource Timing) has this address. A `Response` keeps the address of a request that a policy upgraded.
   */
  constructor(
    readonly countPolicies: () => number,
    readonly wasAsked: (url: string) => boolean,
  ) {}

  /** The browser asked for `url` and let the page have an answer, which came from `answeredUrl`. */
  note(url: string, answeredUrl: string, { status, statusText }: Pick<Response, "status" | "statusText">): void {
    this.#heedPolicies();
    const answered = new URL(answeredUrl);
    this.#phrases.set(answered.origin + status, statusText);
    if (statusText === "") this.#phrases.set(answered.origin, "");
    if (!url.startsWith("http:")) this.#permit(folderOf(url));
    else if (answered.protocol === "http:") keepLatest(this.#unproven, folderOf(url), url, UNPROVEN_MAX);
    if (answered.origin !== new URL(url).origin && this.#targets.size < TARGETS_MAX) this.#targets.add(answered.origin);
  }

  allows(url: string): boolean {
    this.#heedPolicies();
    for (const [folder, first] of this.#unproven)
      if (this.wasAsked(first) && this.#unproven.delete(folder)) this.#permit(folder);
    return this.#isPermitted(folderOf(url));
  }

  /** Whether the browser has let the page have an answer from the folder of `url`. */
  hasAnswered(url: string): boolean {
    return this.#isPermitted(folderOf(url)) || this.#unproven.has(folderOf(url));
  }

  #permit(folder: string): void {
    if (this.#isPermitted(folder)) return;
    this.#folders.add(folder);
    for (const [family, branch] of familiesOf(folder))
      this.#families.set(family, (this.#families.get(family) ?? new Set()).add(branch));
  }

  #isPermitted(folder: string): boolean {
    const isLarge = ([family]: [string, string]): boolean => (this.#families.get(family)?.size ?? 0) >= FAMILY_MIN;
    return this.#folders.has(folder) || familiesOf(folder).some(isLarge);
  }

  /** The origins where answers may come from after redirects. */
  get targets(): string[] {
    return [...this.#targets];
  }

  /** The reason phrase that the browser shows with an answer from `url`, as far as it is known. */
  phraseOf(url: string, status: number): string | undefined {
    const { origin } = new URL(url);
    return this.#phrases.get(origin + status) ?? this.#phrases.get(origin);
  }

  /** Forgets all permits when the page adds a policy, which may be stricter than the one before. */
  #heedPolicies(): void {
    const count = this.countPolicies();
    if (count === this.#policyCount) return;
    this.#policyCount = count;
    this.#folders.clear();
    this.#families.clear();
    this.#unproven.clear();
    this.#targets.clear();
  }
}

function folderOf(url: string): string {
  return new URL(".", url).href;
}

/**
 * The families of `folder`: for each folder above it all folders as deep as it is. With each its branch there, the name
 * of the next folder on the way.
 */
function familiesOf(folder: string): [family: string, branch: string][] {
  const parts = folder.split("/");
  return parts.slice(3, -1).map((branch, at) => [`${parts.length} ${parts.slice(0, at + 3).join("/")}`, branch]);
}
