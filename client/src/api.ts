/** The words of the library as types: what goes into a download and what comes out of it. No code but constants. */
import type { ByteRange, Mode, ResponseHead, TransportName } from "@tributary/contract";
import type { DownloadRecord, ListedProxy } from "@tributary/contract/schema";

export { MODES, type Mode } from "@tributary/contract";

export type Source = "extension" | "cli" | "library";

/** A proxy as Origo lists it: where its HTTP endpoint is, and how else it can be reached. */
export type ProxyInfo = ListedProxy;

export const TRANSPORTS = ["auto", "webtransport", "webrtc", "udp"] as const;
/** What carries the datagrams: `auto` lets the client choose; anything else is tried alone. */
export type TransportOption = "auto" | TransportName;

export interface GetOptions {
  /** Default `coded`. */
  mode?: Mode;
  /** Proxies to use at once, 1..32; default 4. Fewer are used when fewer are live. */
  connections?: number;
  /** Both ends inclusive, as in HTTP. */
  range?: ByteRange;
  signal?: AbortSignal;
  /** Silent for so long it is given up as stalled, where the settings would wait longer. */
  patienceMs?: number;
  /** Goes into the record as it is: of the program that asks, e.g. the name of a campaign. */
  comment?: string;
  /** The same, of the viewer. */
  userComment?: string;
  /** What plays it, e.g. `hls.js`; for the record. */
  player?: string;
  generationSize?: number;
  windowPackets?: number;
  symbolBytes?: number;
  feedbackEveryPackets?: number;
  feedbackEveryMs?: number;
  /**
   * What may stand in when datagrams or proxies fail: `true` (default) HTTP through the same proxies, then the rest
   * from the origin itself; `proxies` the former only; `false` nothing.
   */
  allowFallback?: boolean | "proxies";
}

export interface Download {
  /** Rejects when the download ends before the origin's answer is known. */
  head: Promise<ResponseHead>;
  /** Pieces of at most 64 KiB, in order, each with a buffer of its own, as they become readable. */
  body: ReadableStream<Uint8Array>;
  /** What happened. Resolves always, also for failed and aborted downloads. */
  record: Promise<DownloadRecord>;
  abort(reason?: unknown): void;
}

/** Totals of one proxy since the client was made. */
export interface LiveProxy {
  id: string;
  name: string;
  state: "idle" | "connecting" | "open" | "closed";
  bytes: number;
  packets: number;
  innovative: number;
  duplicate: number;
  rttMs: number | null;
}

/** Totals since the client was made. */
export interface LiveStats {
  proxies: LiveProxy[];
  downloads: number;
  /** Handed to body streams. */
  deliveredBytes: number;
  /** Fetched from origins directly, by choice or as a fallback. */
  directBytes: number;
  fallbacks: number;
}
