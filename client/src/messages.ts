/**
 * What goes between the main thread and the download engine in its worker. Frames travel packed: one buffer and the
 * lengths of what is in it, so that a batch costs one transfer however many packets it holds.
 */
import type { ByteRange, TransportName, Rejection } from "@tributary/contract";
import type { KnownPath, MutpMode, PacketFate, PlanHead, ReceiverStats } from "@tributary/protocol";
import type { ProxyInfo } from "./api";
import { joined } from "./bytes";

export interface PackedFrames {
  bytes: Uint8Array;
  lengths: Uint32Array;
}

export interface StartOptions {
  url: string;
  /** Shown to the proxies. */
  token?: string;
  range?: ByteRange;
  mode: MutpMode;
  symbolBytes?: number;
  generationSize?: number;
  windowPackets?: number;
  feedbackEveryPackets?: number;
  feedbackEveryMs?: number;
  /** Mode `coded`: what is remembered of each proxy. */
  known?: (KnownPath | undefined)[];
  /** Note when each packet came. */
  traced?: boolean;
  /**
   * A body up to this length is one chunk: a proxy that finds it too large is not believed. Default: the limit of the
   * protocol.
   */
  chunkBytesMax?: number;
}

/** What came, and what feedback was sent: ms since the request was started here, and the index of the proxy. */
export interface RequestTrace {
  packets: [ms: number, proxy: number, generation: number, fate: PacketFate][];
  feedback: [ms: number, proxy: number][];
}

export type ToEngine =
  | { type: "init"; wasm: ArrayBuffer }
  /** `sessions[i]` is the session key of the request's proxy i. */
  | { type: "start"; requestId: number; sessions: number[]; options: StartOptions }
  | { type: "ready"; requestId: number; proxyIndex: number }
  | { type: "lost"; requestId: number; proxyIndex: number; reason: string; away: boolean }
  | { type: "frames"; session: number; frames: PackedFrames }
  /** Make a channel in the worker; `session`'s frames go through it once it is `opened`. */
  | { type: "open"; channel: number; session: number; transport: TransportName; proxy: ProxyInfo }
  | { type: "closeChannel"; channel: number }
  /** The proxy's answer to the offer of `sendOffer`. */
  | { type: "answer"; channel: number; sdp: string }
  | { type: "abort"; requestId: number }
  | { type: "hash"; hashId: number; bytes: Uint8Array }
  | { type: "digest"; hashId: number }
  | { type: "discard"; hashId: number };

export type FromEngine =
  | { type: "inited"; engine: string }
  | { type: "initFailed"; message: string }
  | { type: "send"; session: number; frames: PackedFrames }
  /** For WebRTC: bring this offer to the proxy. An `answer` follows, or the channel is closed. */
  | { type: "sendOffer"; channel: number; offer: string }
  | { type: "opened"; channel: number }
  /** It was open and is not any more, or could not be opened. */
  | { type: "channelClosed"; channel: number; reason: string }
  | { type: "head"; requestId: number; head: PlanHead }
  | { type: "bytes"; requestId: number; bytes: Uint8Array }
  | { type: "stats"; requestId: number; stats: ReceiverStats }
  | { type: "complete"; requestId: number }
  /** Of a traced request, once, before `closed`. */
  | { type: "trace"; requestId: number; trace: RequestTrace }
  | { type: "failed"; requestId: number; rejection: Rejection }
  /** The last message of a request: the proxies have had its final feedback. Carries its last counts. */
  | { type: "closed"; requestId: number; stats: ReceiverStats }
  | { type: "digested"; hashId: number; hex: string };

/**
 * One buffer, no larger than what is in it: what receives it keeps it until its next garbage collection, which may be
 * long.
 */
export function pack(frames: readonly Uint8Array[]): PackedFrames {
  return { bytes: joined(frames), lengths: Uint32Array.from(frames, ({ length }) => length) };
}

/** Views on the packed buffer, one a frame. */
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
