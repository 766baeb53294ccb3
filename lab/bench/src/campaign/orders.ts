/** What run.ts and driver.ts say to each other. Types only. */
import type { GetOptions, TransportOption } from "@tributary/client";
import type { DownloadRecord } from "@tributary/contract/schema";

export type SessionKind = "warm" | "new";

export type Order =
  /** Answered when no connection is left: what comes next finds none. */
  | { kind: "close" }
  | { kind: "get"; url: string; transport: TransportOption; traced: boolean; options: Omit<GetOptions, "signal"> }
  /** Parts of `partBytes` asked for one by one, the next one of whichever server is done with its last. */
  | { kind: "pull"; urls: readonly string[]; bytes: number; partBytes: number }
  /** From the origin's HTTP/2 server (http2Origin.ts): `url` without its path, and how many bytes to ask for. */
  | { kind: "http2"; url: string; bytes: number }
  | { kind: "json"; url: string };

/** What was pulled. Times in ms from the first asking. */
export interface Pulled {
  ms: number;
  firstByteMs: number;
  bytes: number;
  sha256: string;
}

/**
 * `cpuMs`: processor time of the client's process meanwhile. `idleShare`: of the processor time of all cores, from the
 * asking to the last byte.
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
