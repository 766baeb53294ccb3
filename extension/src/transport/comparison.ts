/**
 * Comparison: whether the proxies get the same answer as the page got from the site. It compares status, address,
 * length, the headers that describe the body, and the bodies byte by byte. Of a longer body it compares the first
 * COMPARED_BYTES_MAX; then the validators must be equal, too.
 */
import { VALIDATOR_HEADERS, type ResponseHead } from "@tributary/contract";
import { exposeTo } from "../shared/cors";

import { COMPARED_BYTES_MAX, type SiteHead } from "../shared/messages";
import type { Route } from "./route";
import { formOf } from "./trust";

/** A comparison without a result by then ends. */
export const COMPARISON_MS_MAX = 30_000;
const DESCRIBING_HEADERS = ["content-type", "content-range", "content-language", "content-disposition"] as const;

export type Verdict =
  | { kind: "same"; form: string }
  /** `what` differs. */
  | { kind: "differs"; what: string }
  /** The page may not have what the proxies got. */
  | { kind: "cors"; what: string }
  | { kind: "status"; what: string }
  /** No one knows, because a body broke off. */
  | { kind: "none" };

/** What the page shows of the site's answer. */
export class SiteBody {
  #pieces: Uint8Array[] = [];
  #bytes = 0;
  #end: "whole" | "broken" | null = null;
  #wake: (() => void) | null = null;

  /** False if this is more than may be compared. */
  push(bytes: Uint8Array): boolean {
    this.#bytes += bytes.length;
    if (this.#bytes > COMPARED_BYTES_MAX) return false;
    if (bytes.length > 0) this.#pieces.push(bytes);
    this.#wake?.();
    return true;
  }

  end(isWhole: boolean): void {
    this.#end ??= isWhole ? "whole" : "broken";
    this.#wake?.();
  }

  /** Up to `max` next bytes. At the end whether the body was whole. */
  async next(max: number): Promise<Uint8Array | "whole" | "broken"> {
    while (this.#pieces.length === 0 && this.#end === null)
      await new Promise<void>((resolve) => (this.#wake = resolve));
    const first = this.#pieces[0];
    if (first === undefined) return this.#end ?? "broken";
    if (first.length <= max) return this.#pieces.shift() ?? first;
    this.#pieces[0] = first.subarray(max);
    return first.subarray(0, max);
  }
}

/**
 * Why the page must not get the answer to `target` that came by `route`; null if the page may get it. At its own
 * origin a page may have cookies and a service worker, so an HTML page may be meant for strangers only. A cookie that
 * its own origin sets is the browser's to keep, and data that it clears are the browser's to clear.
 */
export function refusalOf(
  { headers }: Pick<ResponseHead, "headers">,
  { hops, answered }: Route,
  target: URL,
  pageOrigin: string,
): { kind: "status" | "cors"; what: string } | null {
  const isOwn = target.origin === pageOrigin;
  if (answered.origin === pageOrigin && headers["clear-site-data"] !== undefined)
    return { kind: "status", what: `${target.host} clears the browser's data` };
  const cookies = [...hops, { origin: answered.origin, setsCookie: headers["set-cookie"] !== undefined }];
  if (cookies.some(({ origin, setsCookie }) => setsCookie && origin === pageOrigin))
    return { kind: "status", what: `${target.host} sets cookies` };
  if (isOwn && /^\s*text\/html\b/i.test(headers["content-type"] ?? ""))
    return { kind: "status", what: `${target.host} sent the proxies to another page` };
  if (isOwn && (/\bcookie\b|\bauthorization\b|\*/i.test(headers.vary ?? "") || isPrivate(headers)))
    return { kind: "status", what: `${target.host} answers each viewer otherwise, and the proxies are strangers` };
  if (exposeTo(pageOrigin, answered, headers, hops) === undefined)
    return { kind: "cors", what: `${answered.host} does not share with ${pageOrigin}` };
  return null;
}

/** `private` without the names of fields (RFC 9111, §5.2.2.7): the answer is for one viewer. */
function isPrivate(headers: ResponseHead["headers"]): boolean {
  return (headers["cache-control"] ?? "").split(",").some((directive) => directive.trim().toLowerCase() === "private");
}

/** How the head that the proxies brought differs from the site's; null if it does not. */
export function headDifference(
  site: SiteHead,
  { status, headers, totalBytes }: ResponseHead,
  { answered, hops }: Route,
  pageOrigin: string,
): string | null {
  if (status !== site.status) return `status ${status} instead of ${site.status}`;
  const own = new URL(site.url);
  if (own.origin !== answered.origin) return `an answer of ${answered.origin} instead of ${own.origin}`;
  const shown = exposeTo(pageOrigin, answered, headers, hops)?.headers ?? {};
  for (const name of DESCRIBING_HEADERS)
    if (described(shown[name]) !== described(site.headers[name]))
      return `${name} ${shown[name]} instead of ${site.headers[name]}`;
  const length = site.headers["content-length"];
  if (length !== undefined && totalBytes !== null && Number(length) !== totalBytes)
    return `${totalBytes} bytes instead of ${length}`;
  return null;
}

/** Without the length of the whole file in a Content-Range, because the file may grow. */
function described(value: string | undefined): string | undefined {
  return value?.replace(/^(bytes \d+-\d+)\/(?:\d+|\*)$/, "$1");
}

/** Compares the body that the proxies bring with the site's. */
export async function compareBodies(
  brought: ReadableStream<Uint8Array>,
  site: SiteBody,
): Promise<"same" | "prefix" | "none" | { differsAt: number }> {
  const reader = brought.getReader();
  let at = 0;
  try {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      for (let left = piece.value; left.length > 0;) {
        if (at === COMPARED_BYTES_MAX) return "prefix";
        const own = await site.next(left.length);
        if (own === "broken") return "none";
        if (own === "whole" || !isEqual(own, left)) return { differsAt: at };
        at += own.length;
        left = left.subarray(own.length);
      }
    }
    const rest = await site.next(1);
    if (rest === "broken") return "none";
    return rest === "whole" ? "same" : { differsAt: at };
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

function isEqual(own: Uint8Array, brought: Uint8Array): boolean {
  return own.every((byte, index) => byte === brought[index]);
}

/** Compares the whole answers. Rejects if the proxies fail. */
export async function compare(
  site: { head: SiteHead; body: SiteBody },
  brought: { head: ResponseHead; body: ReadableStream<Uint8Array> },
  route: Route,
  target: URL,
  pageOrigin: string,
): Promise<Verdict> {
  const refusal = refusalOf(brought.head, route, target, pageOrigin);
  if (refusal !== null) return refusal;
  const difference = headDifference(site.head, brought.head, route, pageOrigin);
  if (difference !== null) return { kind: "differs", what: difference };
  const result = await compareBodies(brought.body, site.body);
  if (result === "none") return { kind: "none" };
  if (typeof result === "object") return { kind: "differs", what: `other bytes from byte ${result.differsAt} on` };
  const shown = exposeTo(pageOrigin, route.answered, brought.head.headers, route.hops)?.headers ?? {};
  const other = VALIDATOR_HEADERS.find((name) => shown[name] !== site.head.headers[name]);
  if (result === "prefix" && other !== undefined) return { kind: "differs", what: `another ${other}` };
  return { kind: "same", form: formOf(route.answered, brought.head.headers) };
}
