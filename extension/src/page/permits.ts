/**
 * Permits: what the browser has let this document fetch. The browser refuses or changes requests for many reasons that
 * no script can read: mixed content, HSTS, the page's policy (CSP), the local network, another extension. So the
 * browser fetches the first file of each folder itself, and the proxies carry a folder only after that. Some sites have
 * a folder for each segment: once the browser has brought files of FAMILY_MIN folders side by side, the others beside
 * them are permitted, too. The proxies follow a redirect only to an origin where a redirect of the browser has ended,
 * because a policy counts there, too. A policy can also name single files, so the content script, which knows the
 * document's policies, refuses what they do not allow. Only the page script notes permits. No other script of the page
 * can.
 * A policy can also have the browser ask over https for an http address (`upgrade-insecure-requests`), and the
 * `Response` keeps the http address. So an http address counts only once the browser's list of requests (Resource
 * Timing) has one of its origin in the clear. The browser lists a request after the body has ended.
 */

import { TARGETS_MAX } from "../shared/messages";
import {
  add,
  firstOf,
  isOneOf,
  newTable,
  OwnPromise,
  OwnURL,
  partsOf,
  startsWith,
  type Table,
  url as part,
} from "../shared/primordials";

export const FAMILY_MIN = 3;
/** Some milliseconds are usual. */
const LISTED_MS_MAX = 1000;
const LISTED_EVERY_MS = 20;

/** Hears of a request that the browser has listed. */
export type HearListed = (address: string, startMs: number) => void;

/** Of the browser's answer. */
export interface Answered {
  status: number;
  statusText: string;
}

/** What a document tells of the browser's requests. */
export interface DocumentFacts {
  /** Whether a policy refuses a request for `url`, as far as the policies are known. */
  refuses(url: string): boolean;
  /** How many elements can hold a policy. */
  countPolicies(): number;
  /** Tells what the browser has listed (Resource Timing) since the last call, at the first call from the start on. */
  takeListed(hear: HearListed): void;
  /** On the clock of the list. */
  nowMs(): number;
  setTimeout(callback: () => void, ms: number): unknown;
}

export class Permits {
  #folders = newTable<true>();
  /** By family: the branches that have a permitted folder. */
  #families = newTable<Table<true>>();
  /** When the browser last asked an origin in the clear. */
  readonly #clearMs = newTable<number>();
  #targets: string[] = [];
  /** By origin and status. HTTP/2 and HTTP/3 have no reason phrases, so "" is for all statuses of the origin. */
  readonly #phrases = newTable<string>();
  /** Origins that a policy which only reports would refuse. The browser reports each request itself. */
  readonly #reported = newTable<true>();
  readonly #document: DocumentFacts;
  #policyCount = 0;
  #policiesMs = 0;

  constructor(document: DocumentFacts) {
    this.#document = document;
  }

  /** The browser asked for `url` and let the page have an answer, which came from `answeredUrl`. */
  note(url: string, answeredUrl: string, { status, statusText }: Answered): void {
    this.#heedPolicies();
    const origin = originOf(answeredUrl);
    this.#phrases[origin + status] = statusText;
    if (statusText === "") this.#phrases[origin] = "";
    if (!isHttp(url) || isHttp(answeredUrl)) this.#permit(folderOf(url));
    if (origin !== originOf(url) && this.#targets.length < TARGETS_MAX && !isOneOf(this.#targets, origin))
      add(this.#targets, origin);
  }

  allows(url: string): boolean {
    this.#heedPolicies();
    return this.#isPermittedAt(url) && this.#isAsWritten(url);
  }

  /** The same. If only the browser's list is missing, waits for it. */
  async willAllow(url: string): Promise<boolean> {
    for (let ms = 0; ms < LISTED_MS_MAX && !this.allows(url); ms += LISTED_EVERY_MS) {
      if (!this.#isPermittedAt(url)) return false;
      await new OwnPromise<void>((resolve) => this.#document.setTimeout(resolve, LISTED_EVERY_MS));
    }
    return this.allows(url);
  }

  /** The browser reported a request for `url` to the site. */
  refuse(url: string): void {
    if (startsWith(url, "http")) this.#reported[originOf(url)] = true;
  }

  /** Whether the browser asks for `url` by its own scheme, as far as it has told. */
  #isAsWritten(url: string): boolean {
    if (!isHttp(url)) return true;
    this.#document.takeListed((address, startMs) => {
      if (isHttp(address)) this.#clearMs[originOf(address)] = startMs;
    });
    return this.#clearMs[originOf(url)]! >= this.#policiesMs;
  }

  #permit(folder: string): void {
    if (this.#isPermitted(folder)) return;
    this.#folders[folder] = true;
    firstOf(familiesOf(folder), ({ family, branch }) => {
      (this.#families[family] ??= newTable<true>())[branch] = true;
    });
  }

  #isPermittedAt(url: string): boolean {
    return !this.#document.refuses(url) && this.#isPermitted(folderOf(url));
  }

  #isPermitted(folder: string): boolean {
    if (originOf(folder) in this.#reported) return false;
    if (folder in this.#folders) return true;
    const isLarge = ({ family }: Branch): boolean => sizeOf(this.#families[family]) >= FAMILY_MIN;
    return firstOf(familiesOf(folder), isLarge) !== undefined;
  }

  /** The origins where answers may come from after redirects. */
  get targets(): string[] {
    return this.#targets;
  }

  /** The reason phrase that the browser shows with an answer from `url`, as far as it is known. */
  phraseOf(url: string, status: number): string | undefined {
    const origin = originOf(url);
    return this.#phrases[origin + status] ?? this.#phrases[origin];
  }

  /** Forgets all permits when the page adds a policy, which may be stricter than the one before. */
  #heedPolicies(): void {
    const count = this.#document.countPolicies();
    if (count === this.#policyCount) return;
    this.#policyCount = count;
    this.#policiesMs = this.#document.nowMs();
    this.#folders = newTable();
    this.#families = newTable();
    this.#targets = [];
  }
}

const isHttp = (url: string): boolean => startsWith(url, "http:");

function originOf(url: string): string {
  return part.origin(new OwnURL(url));
}

function sizeOf(table: Table<true> = newTable()): number {
  let size = 0;
  for (const name in table) size += table[name] ? 1 : 0;
  return size;
}

function folderOf(url: string): string {
  return part.href(new OwnURL(".", url));
}

interface Branch {
  family: string;
  branch: string;
}

/**
 * The families of `folder`: for each folder above it all folders as deep as it is. With each its branch there, the name
 * of the next folder on the way.
 */
function familiesOf(folder: string): Branch[] {
  const parts = partsOf(folder, "/");
  const families: Branch[] = [];
  let above = `${parts.length} ${parts[0]}/${parts[1]}/${parts[2]}`;
  for (let at = 3; at < parts.length - 1; at++) {
    add(families, { family: above, branch: parts[at]! });
    above += `/${parts[at]}`;
  }
  return families;
}
