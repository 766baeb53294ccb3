/**
 * Trust: which kinds of requests the proxies may carry, because a comparison has shown that they get the same answer as
 * the page. A kind is the shape of an address, the way of asking and whether it is the page's own origin. It is kept
 * per origin of the asking page, so a page can fool nobody but itself. Pure: time arrives as `nowMs`.
 */
import type { ByteRange } from "@tributary/contract";

/** A kind is compared again after this time. */
export const TRUST_MS = 3_600_000;
/** One in so many requests for a host is compared again. */
export const COMPARED_ONE_IN = 32;
/** After so many kinds of one host agreed, its other kinds are trusted, too. */
export const KINDS_ENOUGH = 3;
export const AT_ONCE_PER_HOST = 2;
export const AT_ONCE = 4;
const KINDS_MAX = 1024;
const FORMS_MAX = 8;
const DUE_MAX = 8;

/** One request of a page, as trust sees it. */
export interface Asking {
  pageOrigin: string;
  url: URL;
  range: ByteRange | null;
}

interface Kind {
  /** The forms (formOf) of the answers that were compared. */
  forms: string[];
  untilMs: number;
  /** The proxies that brought the compared answers. */
  proxyIds: ReadonlySet<string>;
}

/** A host, as pages of one origin see it. */
interface Place {
  kinds: Map<string, Kind>;
  carriedCount: number;
  /** The names of the kinds that go to the site until a comparison begins. */
  due: Set<string>;
}

export class Trust {
  /** By the page's origin and the host. */
  readonly #places = new Map<string, Place>();
  readonly #running = new Map<string, { place: string; ended: Promise<void> }>();

  /** `carry`, `compare` (the page asks the site and shows its answer), or the end of a comparison to wait for. */
  decide(asking: Asking, proxyIds: readonly string[], nowMs: number): "carry" | "compare" | Promise<void> {
    const { place, name } = namesOf(asking);
    const running = this.#running.get(`${place} ${name}`);
    if (running !== undefined) return running.ended;
    const known = this.#places.get(place);
    const kind = known?.kinds.get(name);
    if (known === undefined) return "compare";
    const isKindGood = (each: Kind): boolean => isGood(each, proxyIds, nowMs);
    const isTrusted = kind === undefined ? areEnough(known, mannerOf(asking), isKindGood) : isKindGood(kind);
    if (!isTrusted || known.due.has(name)) return "compare";
    known.carriedCount += 1;
    if (known.carriedCount % COMPARED_ONE_IN !== 0) return "carry";
    this.compareNext(asking);
    return "compare";
  }

  /** Has the next answer of the kind compared, although the kind is trusted. */
  compareNext(asking: Asking): void {
    const { place, name } = namesOf(asking);
    const due = this.#places.get(place)?.due.add(name);
    if (due !== undefined && due.size > DUE_MAX) for (const oldest of [...due].slice(0, 1)) due.delete(oldest);
  }

  /** Whether the page and the proxies got the same answer of this host before. */
  isMet({ pageOrigin, url }: Pick<Asking, "pageOrigin" | "url">): boolean {
    return this.#places.has(placeOf(pageOrigin, url));
  }

  /** Whether an answer of the form `form` was compared before. Only then the page may get it. */
  isKnown(asking: Asking, form: string): boolean {
    const { place, name } = namesOf(asking);
    const kinds = this.#places.get(place)?.kinds;
    const kind = kinds?.get(name);
    return kind?.forms.includes(form) ?? [...(kinds?.values() ?? [])].some(({ forms }) => forms.includes(form));
  }

  /** Begins a comparison. The caller calls the result once at its end. Undefined if there are enough at once. */
  begin(asking: Asking): (() => void) | undefined {
    const { place, name } = namesOf(asking);
    const key = `${place} ${name}`;
    const ofPlace = [...this.#running.values()].filter((each) => each.place === place).length;
    if (this.#running.has(key) || ofPlace >= AT_ONCE_PER_HOST || this.#running.size >= AT_ONCE) return undefined;
    let end!: () => void;
    const ended = new Promise<void>((resolve) => (end = resolve));
    this.#running.set(key, { place, ended });
    this.#places.get(place)?.due.delete(name);
    return () => {
      this.#running.delete(key);
      end();
    };
  }

  /** The page and the proxies got the same answer, of the form `form`. */
  noteSame(asking: Asking, form: string, proxyIds: readonly string[], nowMs: number): void {
    const { place, name } = namesOf(asking);
    const known = this.#places.get(place) ?? {
      kinds: new Map<string, Kind>(),
      carriedCount: 0,
      due: new Set<string>(),
    };
    const formsBefore = known.kinds.get(name)?.forms.filter((each) => each !== form) ?? [];
    const kind = {
      forms: [...formsBefore, form].slice(-FORMS_MAX),
      untilMs: nowMs + TRUST_MS,
      proxyIds: new Set(proxyIds),
    };
    known.kinds.delete(name);
    known.kinds.set(name, kind);
    this.#places.delete(place);
    this.#places.set(place, known);
    this.#forgetOldest(known);
  }

  /** The whole host is not trusted any more. */
  forget({ pageOrigin, url }: Pick<Asking, "pageOrigin" | "url">): void {
    this.#places.delete(placeOf(pageOrigin, url));
  }

  clear(): void {
    this.#places.clear();
  }

  #forgetOldest(newest: Place): void {
    const count = [...this.#places.values()].reduce((sum, { kinds }) => sum + kinds.size, 0);
    if (count <= KINDS_MAX) return;
    const [oldest] = this.#places;
    if (oldest !== undefined && oldest[1] !== newest) this.#places.delete(oldest[0]);
    else for (const name of [...newest.kinds.keys()].slice(0, 1)) newest.kinds.delete(name);
  }
}

function isGood(kind: Kind, proxyIds: readonly string[], nowMs: number): boolean {
  return nowMs < kind.untilMs && proxyIds.every((id) => kind.proxyIds.has(id));
}

/** Whether so many good kinds of the same manner are known that the host is trusted with another one. */
function areEnough({ kinds }: Place, manner: string, isKindGood: (kind: Kind) => boolean): boolean {
  const alike = [...kinds].filter(([name, kind]) => name.startsWith(manner) && isKindGood(kind));
  return alike.length >= KINDS_ENOUGH;
}

function namesOf(asking: Asking): { place: string; name: string } {
  return { place: placeOf(asking.pageOrigin, asking.url), name: `${mannerOf(asking)} ${shapeOf(asking.url)}` };
}

function placeOf(pageOrigin: string, { protocol, host }: URL): string {
  return `${pageOrigin} ${protocol}//${host}`;
}

function mannerOf({ pageOrigin, url, range }: Asking): string {
  return `${url.origin === pageOrigin ? "own" : "other"} ${range === null ? "whole" : "range"}`;
}

/** The path without what tells one chunk from the next: numbers, digests and random names. The ending stays. */
export function shapeOf({ pathname }: URL): string {
  const ending = /\.\w+$/.exec(pathname)?.[0] ?? "";
  const name = pathname.slice(0, pathname.length - ending.length);
  return name.replace(/[0-9a-z]{16,}|[0-9a-f]{8,}|\d+/gi, (token) => (/\d/.test(token) ? "#" : token)) + ending;
}

/** What must stay as it was when the answers were compared: who answered, and the kinds of some headers. */
export function formOf(answered: URL, headers: Readonly<Record<string, string>>): string {
  const vary = (headers.vary ?? "").toLowerCase().split(",");
  return JSON.stringify([
    answered.host,
    headers["content-type"] ?? "",
    headers["content-language"] ?? "",
    headers.etag !== undefined,
    headers["last-modified"] !== undefined,
    vary.map((name) => name.trim()).sort(),
  ]);
}
