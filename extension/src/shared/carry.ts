/**
 * Carry: what the page script and the carrying script, which is brought into a page at its first need, have in common.
 * Types only: neither holds the other's code.
 */
import type { Link } from "../page/link";
import type { Natives } from "../page/natives";
import type { ByteRange } from "./messages";

export interface ExchangeRequest {
  url: string;
  range: ByteRange | null;
}

export interface ExchangeHead {
  status: number;
  statusText: string;
  headers: [string, string][];
  responseType: ResponseType;
  url: string;
  redirected: boolean;
  totalBytes: number | null;
}

/** Either `native`, or `head`, then `bytes` in order, then `end` or `error`. Never from inside `exchange`. */
export interface ExchangeEvents {
  native(): void;
  head(head: ExchangeHead): void;
  bytes(bytes: Uint8Array<ArrayBuffer>): void;
  end(): void;
  /** Like a network error: the body can't be finished. */
  error(): void;
}

/** An exchange under way. */
export interface Carried {
  /** The caller has taken everything that was delivered so far. */
  credit(): void;
  /** Ends it; no event follows. */
  abort(): void;
}

export interface Carrier {
  exchange(request: ExchangeRequest, events: ExchangeEvents): Carried;
  /** The page's `fetch` of `request`, carried as `wanted`. */
  respond(request: Request, wanted: ExchangeRequest): Promise<Response>;
}

/** `natives`: the browser's own, kept before any script of the page ran, as the carrying script comes after them. */
export type MakeCarrier = (link: Link, natives: Natives) => Carrier;
