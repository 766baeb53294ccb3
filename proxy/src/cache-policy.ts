/**
 * Cache policy: what a stored answer may be used for, as RFC 9111 says for a shared cache. `http-cache-semantics`
 * implements the RFC. This file adds what is ours: no freshness that the origin did not state, and no use of an answer
 * by a validator that cannot tell its bytes from others.
 */
import CachePolicy from "http-cache-semantics";
import type { ResponseHead } from "@tributary/contract";

/** The request that all answers of one key belong to. They were asked for with the same headers. */
const REQUEST = { method: "GET", headers: {} };
/** Without a freshness that the origin states, each use is confirmed by the origin. A live stream may reuse names. */
const OPTIONS = { shared: true, cacheHeuristic: 0, immutableMinTimeToLive: 0 };

export class AnswerPolicy {
  readonly #policy: CachePolicy;
  readonly #headers: Record<string, string>;
  readonly #receivedMs: number;

  /** Times are milliseconds since 1970: when the request was sent, and when the head came. */
  constructor({ headers }: Pick<ResponseHead, "headers">, sentMs: number, receivedMs: number) {
    this.#headers = headers;
    this.#receivedMs = receivedMs;
    // A part is kept under its range, so the policy of a whole answer fits it.
    const response = { status: 200, headers: readable(headers, sentMs, receivedMs) };
    const policy = new CachePolicy(REQUEST, response, OPTIONS);
    this.#policy = CachePolicy.fromObject({ ...policy.toObject(), t: receivedMs });
  }

  get headerChars(): number {
    return Object.entries(this.#headers).reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  }

  /** Another client may get the answer. With `Vary: *` it fits no other request (RFC 9111 §4.1). */
  get isShareable(): boolean {
    return this.#policy.storable() && this.#headers.vary?.includes("*") !== true;
  }

  /** The answer may be used once more, now or when the origin has confirmed it. */
  isReusable(isPart: boolean): boolean {
    return this.isShareable && (this.#policy.maxAge() > 0 || this.conditions(isPart) !== undefined);
  }

  isFresh(nowMs: number): boolean {
    Object.assign(this.#policy, { now: () => nowMs });
    return this.#policy.satisfiesWithoutRevalidation(REQUEST);
  }

  /** RFC 9111 §4.2.3. */
  ageSec(nowMs: number): number {
    Object.assign(this.#policy, { now: () => nowMs });
    return Math.floor(this.#policy.age());
  }

  /**
   * The headers of a request that asks the origin whether the answer is still right; undefined if the answer has no
   * validator. A part needs a strong one, because others combine it with parts from elsewhere (RFC 9110 §13.1.5). A
   * date must be a second older than the answer: the bytes may have changed later in that second (§8.8.2.2).
   */
  conditions(isPart: boolean): Record<string, string> | undefined {
    const { etag, "last-modified": modified, date } = this.#headers;
    if (!this.isShareable) return undefined;
    if (etag !== undefined) return isPart && isWeak(etag) ? undefined : { "if-none-match": etag };
    const dateMs = date === undefined ? this.#receivedMs : Date.parse(date);
    return modified !== undefined && dateMs - Date.parse(modified) >= 1000
      ? { "if-modified-since": modified }
      : undefined;
  }

  /** The policy after the origin's 304. Undefined if the 304 is about other bytes (RFC 9111 §4.3.4). */
  confirmed({ headers }: Pick<ResponseHead, "headers">, sentMs: number, receivedMs: number): AnswerPolicy | undefined {
    for (const name of ["etag", "last-modified"]) {
      const [was, is] = [this.#headers[name], headers[name]];
      if (is !== undefined && is.replace(/^W\//, "") !== was?.replace(/^W\//, "")) return undefined;
    }
    // The age of the stored answer ends with its confirmation.
    const renewed = { ...this.#headers, age: "0", ...describing(headers) };
    return new AnswerPolicy({ headers: renewed }, sentMs, receivedMs);
  }
}

/** The headers of a 304 that replace those of the stored answer. It says nothing of the body. */
export function describing(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith("content-")));
}

/**
 * The headers as the library reads them. Names of directives are in lower case. `must-revalidate` forbids stale
 * answers, which nobody gets here; the library would also ask again for fresh ones. The age is that of RFC 9111 §4.2.3.
 */
function readable(headers: Record<string, string>, sentMs: number, receivedMs: number): Record<string, string> {
  const control = headers["cache-control"]
    ?.toLowerCase()
    .split(",")
    .filter((directive) => directive.trim() !== "must-revalidate")
    .join(",");
  const apparentSec = (receivedMs - Date.parse(headers["date"] ?? "")) / 1000 || 0;
  const toldSec = (Number(headers["age"] ?? 0) || 0) + (receivedMs - sentMs) / 1000;
  const age = Math.ceil(Math.max(0, apparentSec, toldSec));
  return { ...headers, age: String(age), ...(control === undefined ? {} : { "cache-control": control }) };
}

const isWeak = (etag: string): boolean => etag.startsWith("W/");
