/** The interface by which a download asks an origin directly. */
import type { CacheMode, RangeRequest, ResponseHead } from "@tributary/contract";

export interface OriginRequest {
  url: string;
  range: RangeRequest | undefined;
  /** Further headers of the caller. Only the origin gets them. */
  headers: Readonly<Record<string, string>>;
  /** Remove the content coding from the body. Without it the body comes as it was sent, where the platform can. */
  decode: boolean;
  cache: CacheMode;
  /** `error`: the answer of another address does not count, so a redirect fails. Default: redirects are followed. */
  redirect?: "error";
  signal: AbortSignal;
}

/** An origin's answer. Whoever has it reads the body or ends it by the request's signal. */
export interface OriginAnswer {
  head: ResponseHead;
  body: AsyncIterable<Uint8Array>;
}

export type AskOrigin = (request: OriginRequest) => Promise<OriginAnswer>;

/** The other headers of the caller are for the origin that the caller named: they can tell who asks. */
const HEADERS_FOR_ALL = ["accept", "accept-language", "user-agent"];

/** Those of the caller's headers that another origin may get, which a redirect or a playlist names. */
export function headersForOthers(headers: OriginRequest["headers"]): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => HEADERS_FOR_ALL.includes(name.toLowerCase())));
}
