/**
 * The messages between the main thread and the download engine in its worker. Frames travel packed, as one buffer and
 * the length of each frame, so a batch costs one transfer for any number of packets.
 */
import type { ByteRange, CacheMode, TransportName, Rejection } from "@tributary/contract";
import type { ObjectName } from "@tributary/contract/tree";
import type { KnownPath, MutpMode, PacketFate, PlanHead, ReceiverStats, ShownEvidence } from "@tributary/protocol";
import type { ProxyInfo } from "./api";
import { joined } from "@tributary/contract/tree";

export interface PackedFrames {
  bytes: Uint8Array;
  lengths: Uint32Array;
}

export interface StartOptions {
  url: string;
  /** The token that opens the proxies. */
  token?: string;
  range?: ByteRange;
  /** The object that `url` names. */
  object?: ObjectName;
  cache?: CacheMode;
  pageOrigin?: string;
  mode: MutpMode;
  /** Who runs each proxy. */
  operators?: readonly string[];
  /** Mode `coded`: the ids of the proxies, which read the chunk together. */
  sharing?: readonly string[];
  /** The length of the body, as the last one of its series makes it likely. */
  expectedBytes?: number;
  symbolBytes?: number;
  generationSize?: number;
  windowPackets?: number;
  feedbackEveryPackets?: number;
  feedbackEveryMs?: number;
  /** Mode `coded`: earlier measurements of each proxy. */
  known?: (KnownPath | undefined)[];
  /** Records the arrival time of each packet. */
  traced?: boolean;
  /**
   * The longest body that is one chunk, in bytes. If a proxy rejects a shorter chunk as too large, the engine treats
   * that as the proxy's fault. Default: the limit of the protocol.
   */
  chunkBytesMax?: number;
}

/** The received packets and the sent feedback. `ms` counts from the start of the request, `proxy` is an index. */
export interface RequestTrace {
  packets: [ms: number, proxy: number, generation: number, fate: PacketFate][];
  feedback: [ms: number, proxy: number][];
}

export type ToEngine =
  | { type: "init"; wasm: ArrayBuffer }
  /** `sessions[i]` is the session key of proxy i of the request. */
  | { type: "start"; requestId: number; sessions: number[]; options: StartOptions }
  | { type: "ready"; requestId: number; proxyIndex: number }
  | { type: "lost"; requestId: number; proxyIndex: number; reason: string; away: boolean }
  | { type: "frames"; session: number; frames: PackedFrames }
  /** Asks the proxy of an open session whether it is there. */
  | { type: "check"; session: number }
  /** Opens a channel in the worker. When it is `opened`, it carries the frames of `session`. */
  | { type: "open"; channel: number; session: number; transport: TransportName; proxy: ProxyInfo }
  | { type: "closeChannel"; channel: number }
  /** The proxy's answer to the offer in `sendOffer`. */
  | { type: "answer"; channel: number; sdp: string }
  | { type: "abort"; requestId: number }
  | { type: "hash"; hashId: number; bytes: Uint8Array }
  | { type: "digest"; hashId: number }
  | { type: "discard"; hashId: number };

export type FromEngine =
  | { type: "inited"; engine: string }
  | { type: "initFailed"; message: string }
  | { type: "send"; session: number; frames: PackedFrames }
  /** WebRTC: asks the main thread to bring this offer to the proxy. It answers by `answer` or `closeChannel`. */
  | { type: "sendOffer"; channel: number; offer: string }
  | { type: "opened"; channel: number }
  /** Nothing came over the session since `check`, although the proxy was asked several times. */
  | { type: "silent"; session: number }
  /** An open channel has closed, or a channel could not be opened. */
  | { type: "channelClosed"; channel: number; reason: string }
  | { type: "head"; requestId: number; head: PlanHead }
  | { type: "bytes"; requestId: number; bytes: Uint8Array }
  | { type: "stats"; requestId: number; stats: ReceiverStats }
  | { type: "conviction"; requestId: number; evidence: ShownEvidence }
  | { type: "complete"; requestId: number }
  /** Sent once for a traced request, before `closed`. */
  | { type: "trace"; requestId: number; trace: RequestTrace }
  | { type: "failed"; requestId: number; rejection: Rejection }
  /** The last message of a request, with its final counts. The final feedback has gone to the proxies. */
  | { type: "closed"; requestId: number; stats: ReceiverStats }
  | { type: "digested"; hashId: number; hex: string };

/**
 * Packs frames into one buffer without spare room. The thread that receives the buffer keeps it until its next garbage
 * collection, which may come late.
 */
export function pack(frames: readonly Uint8Array[]): PackedFrames {
  return { bytes: joined(frames), lengths: Uint32Array.from(frames, ({ length }) => length) };
}

/** Yields one view on the packed buffer for each frame. */
export function* unpack(frames: PackedFrames): Generator<Uint8Array> {
  let at = 0;
  for (const length of frames.lengths) {
    yield frames.bytes.subarray(at, at + length);
    at += length;
  }
}

/** The buffer to put on a transfer list. */
export function bufferOf(bytes: Uint8Array): ArrayBuffer {
  return bytes.buffer as ArrayBuffer;
}
