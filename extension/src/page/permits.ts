/**
 * Permits: what the browser has let this document fetch. The browser refuses or changes requests for many reasons that
 * no script can read: mixed content, HSTS, the page's policy (CSP), the local network, another extension. So the
 * browser fetches the first file of each folder itself, and the proxies carry a folder only after that. Some sites have
 * a folder for each segment: once the browser has brought files of FAMILY_MIN folders side by side, the others beside
 * them are permitted, too. The proxies follow a redirect only to an origin where a redirect of the browser has ended,
 * because a policy counts there, too. Only the page script notes permits. No other script of the page can.
 * A policy can also have the browser ask over https for an http address (`upgrade-insecure-requests`), and the
 * `Response` keeps the http address. So an http address counts only once the browser's list of requests (Resource
 * Timing) has one of its origin in the clear. The browser lists a request after the body has ended.
 */

import { TARGETS_MAX } from "../shared/messages";

export const FAMILY_MIN = 3;
/** Some milliseconds are usual. */
const LISTED_MS_MAX = 1000;
const LISTED_EVERY_MS = 20;

/** What a document tells of the browser's requests. */
export interface DocumentFacts {
  /** How many elements can hold a policy. */
  countPolicies(): number;
  /** What the browser has listed (Resource Timing) since the last call, at the first call from the start on. */
  takeListed(): Pick<PerformanceEntry, "name" | "startTime">[];
  /** On the clock of the list. */
  nowMs(): number;
  setTimeout(callback: () => void, ms: number): unknown;
}

export class Permits {
  readonly #folders = new Set<string>();
  /** By family: the branches that have a permitted folder. */
  readonly #families = new Map<string, Set<string>>();
  /** Origins that the browser has asked in the clear under the present policies. */
  readonly #clearOrigins = new Set<string>();
  readonly #targets = new Set<string>();
  /** By origin and status. HTTP/2 and HTTP/3 have no reason phrases, so "" is for all statuses of the origin. */
  readonly #phrases = new Map<string, string>();
  readonly #document: DocumentFacts;
  #policyCount = 0;
  #policiesMs = 0;

  constructor(document: DocumentFacts) {
    this.#document = document;
  }

  /** The browser asked for `url` and let the page have an answer, which came from `answeredUrl`. */
  note(url: string, answeredUrl: string, { status, statusText }: Pick<Response, "status" | "statusText">): void {
    this.#heedPolicies();
    const answered = new URL(answeredUrl);
    this.#phrases.set(answered.origin + status, statusText);
    if (statusText === "") this.#phrases.set(answered.origin, "");
    if (!isHttp(url) || isHttp(answeredUrl)) this.#permit(folderOf(url));
    if (answered.origin !== new URL(url).origin && this.#targets.size < TARGETS_MAX) this.#targets.add(answered.origin);
  }

  allows(url: string): boolean {
    this.#heedPolicies();
    return this.#isPermitted(folderOf(url)) && this.#isAsWritten(url);
  }

  /** The same. If only the browser's list is missing, waits for it. */
  async willAllow(url: string): Promise<boolean> {
    for (let ms = 0; ms < LISTED_MS_MAX && !this.allows(url); ms += LISTED_EVERY_MS) {
      if (!this.#isPermitted(folderOf(url))) return false;
      await new Promise<void>((resolve) => this.#document.setTimeout(resolve, LISTED_EVERY_MS));
    }
    return this.allows(url);
  }

  /** Whether the browser asks for `url` by its own scheme, as far as it has told. */
  #isAsWritten(url: string): boolean {
    if (!isHttp(url)) return true;
    for (const { name, startTime } of this.#document.takeListed())
      if (isHttp(name) && startTime >= this.#policiesMs) this.#clearOrigins.add(new URL(name).origin);
    return this.#clearOrigins.has(new URL(url).origin);
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
    const count = this.#document.countPolicies();
    if (count === this.#policyCount) return;
    this.#policyCount = count;
    this.#policiesMs = this.#document.nowMs();
    this.#folders.clear();
    this.#families.clear();
    this.#clearOrigins.clear();
    this.#targets.clear();
  }
}

const isHttp = (url: string): boolean => url.startsWith("http:");

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
