/**
 * The input and the outcome of a simulation: the links between a client and its proxies, their faults, and the chunk.
 * Times are in milliseconds. Rates are in bytes of whole packets a second. Data only.
 */
import type { MutpMode, ReceiverOptions } from "@tributary/protocol";
import type { BurstLoss } from "./link";

/** A full data frame at the default symbol size. */
export const PACKET_BYTES = 1115;

/** The path between the client and one proxy, and the proxy itself. */
export interface ProxyLink {
  /** From proxy to client. */
  bytesPerSec: number;
  /** Each direction takes half of it. */
  rttMs: number;
  /** Holds for packets that leave from `atMs` on, as when the viewer moves to another network. */
  rttChanges?: readonly { atMs: number; rttMs: number }[];
  /** In both directions. Packets can overtake each other unless `inOrder`, as over radio. */
  jitterMs?: number;
  inOrder?: boolean;
  /** From proxy to client, and also from client to proxy unless `feedbackLoss` is set. */
  loss?: number;
  feedbackLoss?: number;
  /** From proxy to client, like the next two. */
  burst?: BurstLoss;
  reorder?: { share: number; extraMs: number };
  repeat?: number;
  /** Drop-tail limit before the proxy's serializer. It matters when nothing holds the sender back. */
  queueBytes?: number;
  rateChanges?: readonly { atMs: number; bytesPerSec: number }[];
  /** The link pauses at random times, like a process that shares a processor. Both values are means. */
  pauses?: { apartMs: number; lastMs: number };
  /** Nothing goes in or out during an outage. A proxy that crashed comes back without its state. */
  outages?: readonly { fromMs: number; toMs: number; crash?: boolean }[];
  /** From this time on nothing is lost, late or repeated by chance in either direction. */
  healMs?: number;
  /** From client to proxy; unlimited by default. */
  upBytesPerSec?: number;
  /** The proxy's clock at time 0. */
  clockOffsetMs?: number;
  /** The chunk comes from this origin while it is sent. Without an origin the proxy has it already. */
  origin?: OriginLeg;
  /** The sender may send while the serializer has fewer packets than this; 2 by default. */
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
  /** The viewer's own connection, which all links share. */
  downlink?: { bytesPerSec: number; queueBytes: number };
  /** Bytes of every packet besides the frame, in both directions; 0 by default. */
  overheadBytes?: number;
  /**
   * Proxies send under the product's congestion control. A warm session has carried the same chunk before. Without
   * this, proxies send as fast as their links take packets.
   */
  congestion?: "new" | "warm";
  /** The run is given up at this time; 60,000 by default. */
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

/** Options of the receiver that a caller may set. */
export type Tuning = Partial<Omit<ReceiverOptions, "requestId" | "url" | "mode" | "proxyCount" | "codec" | "nowMs">>;

/** The use of a data packet when it came. A packet is `late` after the chunk is complete. */
export type ArrivalKind = "innovative" | "duplicate" | "late";
export type OnArrival = (nowMs: number, proxy: number, kind: ArrivalKind) => void;

export interface Outcome {
  /** From the client's first request to the last degree of freedom; Infinity if it never came. */
  completionMs: number;
  /** From the first request to the first delivered bytes; Infinity if there were none. */
  firstBytesMs: number;
  /** Symbols of the chunk divided by data packets received, late ones included. */
  normalizedGoodput: number;
  symbolCount: number;
  receivedPackets: number;
  sentPackets: number;
  /** Mean size of the data packets sent, overhead included. The bound counts with it. */
  packetBytes: number;
  /** One entry for each delivery in order: the bytes delivered so far, and the time. */
  delivered: { untilByte: number; atMs: number }[];
  /** True when every delivered byte was correct and a complete download had all of them. */
  bytesRight: boolean;
  eventHash: string;
  events: number;
  failure?: string;
}
