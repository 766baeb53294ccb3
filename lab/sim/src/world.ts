/**
 * What a simulation is given: the links between a client and its proxies, what befalls them, and what is downloaded.
 * All times in milliseconds, all rates in bytes of whole packets a second. Data only.
 */
import type { MutpMode, ReceiverOptions } from "@tributary/protocol";
import type { BurstLoss } from "./link";

/** A full data frame of today's default. */
export const PACKET_BYTES = 1115;

/** The way between the client and one proxy, and the proxy at its end. */
export interface ProxyLink {
  /** Proxy to client. */
  bytesPerSec: number;
  /** Half of it each way. */
  rttMs: number;
  /** For what leaves from then on, as where the viewer's network is another. */
  rttChanges?: readonly { atMs: number; rttMs: number }[];
  /** Both ways, each packet its own: packets may overtake, unless they come `inOrder`, as over radio. */
  jitterMs?: number;
  inOrder?: boolean;
  /** Proxy to client; and client to proxy where `feedbackLoss` does not say otherwise. */
  loss?: number;
  feedbackLoss?: number;
  /** Proxy to client. */
  burst?: BurstLoss;
  reorder?: { share: number; extraMs: number };
  repeat?: number;
  /** Drop-tail limit before the proxy's serializer. It matters where nobody holds the sender back. */
  queueBytes?: number;
  rateChanges?: readonly { atMs: number; bytesPerSec: number }[];
  /**
   * Now and then it stands still and then goes on, as a process does that shares a processor: means of random times.
   */
  pauses?: { apartMs: number; lastMs: number };
  /** Nothing goes in or out meanwhile; a proxy that crashed comes back knowing nothing. */
  outages?: readonly { fromMs: number; toMs: number; crash?: boolean }[];
  /** From then on nothing is lost, late or repeated by chance, either way. */
  healMs?: number;
  /** Client to proxy; unlimited without it. */
  upBytesPerSec?: number;
  /** What the proxy's clock shows at time 0. */
  clockOffsetMs?: number;
  /** The chunk comes from there while it is sent; without it the proxy has it already. */
  origin?: OriginLeg;
  /** The sender is asked for a packet while the serializer has fewer than this; 2 without it. */
  backpressurePackets?: number;
}

export interface OriginLeg {
  bytesPerSec: number;
  rttMs: number;
}

export interface World {
  seed: number;
  links: readonly ProxyLink[];
  chunkBytes: number;
  /** Behind all links: what the viewer's own connection takes. */
  downlink?: { bytesPerSec: number; queueBytes: number };
  /** Carried by every packet besides the frame, both ways; 0 without it. */
  overheadBytes?: number;
  /**
   * Proxies send under the product's congestion control, in new sessions or in those that have carried the same chunk
   * before; without it as fast as their links take.
   */
  congestion?: "new" | "warm";
  /** The run is given up then; 60,000 without it. */
  untilMs?: number;
}

export type Mode = MutpMode | HttpMode | "coded";
export type HttpMode = "parallel-http" | "split-http" | "parallel-http-cubic" | "split-http-cubic";
export const HTTP_MODES: readonly HttpMode[] = [
  "parallel-http",
  "split-http",
  "parallel-http-cubic",
  "split-http-cubic",
];
export const PROTOCOL_MODES = ["uncoded-mutp", "coded-mutp", "coded"] as const;

/** What may be set of the receiver's own options. */
export type Tuning = Partial<Omit<ReceiverOptions, "requestId" | "url" | "mode" | "proxyCount" | "codec" | "nowMs">>;

/** What a data packet was when it came: `late` after the chunk was complete. */
export type ArrivalKind = "innovative" | "duplicate" | "late";
export type OnArrival = (nowMs: number, proxy: number, kind: ArrivalKind) => void;

export interface Outcome {
  /** From the client's first request to the last degree of freedom; Infinity when it never came. */
  completionMs: number;
  /** To the first bytes handed on; Infinity when there were none. */
  firstBytesMs: number;
  /** Symbols of the chunk over data packets received, late ones counted. */
  normalizedGoodput: number;
  symbolCount: number;
  receivedPackets: number;
  sentPackets: number;
  /** Mean of the data packets sent, overhead included: what the bound counts with. */
  packetBytes: number;
  /** When each stretch of bytes was handed on in order, one after another: bytes delivered so far, and when. */
  delivered: { untilByte: number; atMs: number }[];
  /** True when every byte handed on was the right one and, when complete, all were there. */
  bytesRight: boolean;
  eventHash: string;
  events: number;
  failure?: string;
}
