/**
 * Carry: the types that the page script and the carrying script share. The carrying script enters a page when the page
 * first needs it. Neither script contains the other's code.
 */
import type { ByteRange, CacheMode } from "@tributary/contract";
import type { PageResponseHead } from "./messages";

/** What a page asks for and the transport may carry. */
export interface MediaRequest {
  url: string;
  range: ByteRange | null;
  /** How the page wants caches to be used. */
  cache?: CacheMode;
}

/**
 * The events are either `native`, or `head`, then `bytes` in order, then `end` or `error`. All come after `carry` has
 * returned.
 */
export interface CarriedRequestEvents {
  native(): void;
  head(head: PageResponseHead): void;
  bytes(bytes: Uint8Array<ArrayBuffer>): void;
  end(): void;
  /** The body cannot be finished, for example after a network error. */
  error(): void;
}

/** The caller's hold on a carried request. */
export interface RequestHandle {
  /** The caller has taken all the bytes that it has received so far. */
  credit(): void;
  /** Ends the request. No event follows. */
  abort(): void;
}

/** The carrying script's service to the page script. */
export interface Carrier {
  carry(request: MediaRequest, events: CarriedRequestEvents): RequestHandle;
  /** Answers the page's `fetch` of `request`, carried as `wanted`. */
  respond(request: Request, wanted: MediaRequest): Promise<Response>;
}
