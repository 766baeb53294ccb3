/** The messages between stack.ts and driver.ts. Types only. */
import type { GetOptions, TransportOption } from "@tributary/client";
import type { DownloadRecord } from "@tributary/contract/schema";

export type SessionKind = "warm" | "new";

export type Order =
  /** The answer comes when no connection is left. */
  | { kind: "close" }
  | { kind: "get"; url: string; transport: TransportOption; traced: boolean; options: Omit<GetOptions, "signal"> }
  /** Asks for parts of `partBytes` one by one. A server gets the next one when it has sent its last one. */
  | { kind: "pull"; urls: readonly string[]; bytes: number; partBytes: number }
  /** From the origin's HTTP/2 server (http2-origin.ts). `url` has no path. `bytes`: how many to ask for. */
  | { kind: "http2"; url: string; bytes: number }
  | { kind: "json"; url: string };

/** The result of a pull. Times in ms from the first request. */
export interface Pulled {
  ms: number;
  firstByteMs: number;
  bytes: number;
  sha256: string;
}

/**
 * `cpuMs`: processor time of the client's process. `idleShare`: idle share of all cores from the request to the last
 * byte.
 */
export interface Reply {
  cpuMs: number;
  idleShare: number;
  record?: DownloadRecord;
  pulled?: Pulled;
  /** Answer to `json`. */
  json?: unknown;
  problem?: string;
}
