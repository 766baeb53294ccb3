/** The words of the protocol as types: frames, heads, rejections. Byte layouts: docs/spec/protocol.md §4. */
import type { ByteRange, CacheMode, Rejection, ResponseHead } from "@tributary/contract";

/** The paper's two protocols and `coded`, in which the client says how much of what each proxy sends. */
export type MutpMode = "uncoded-mutp" | "coded-mutp" | "coded";

/** The origin's answer, as a proxy's plan reports it. */
export interface PlanHead extends ResponseHead {
  totalBytes: number;
  /** Milliseconds from the proxy's request to the origin's head; 0 when the proxy had the chunk. */
  serverFetchMs: number;
  /** The proxy shares the reading: the generations that it holds or reads, in ascending order (protocol.md §11). */
  reads?: readonly GenerationSpan[];
  /** Set by the receiver: the strong validator of all plans that had come when the plan was confirmed. */
  version?: string;
}

/** Returns a uniform unsigned 32-bit integer. */
export type Rng = () => number;

/** Generations `from` to before `end`. */
export interface GenerationSpan {
  from: number;
  end: number;
}

/** The proxies that read the chunk together, and which of them the request goes to: protocol.md §11. */
export interface Sharing {
  ownIndex: number;
  /** So many generations each proxy reads before it knows the length of the body; 0 if the request tells it. */
  firstGenerations: number;
  /** `id`: by Origo's list. `weight`: at least 1. */
  readers: readonly { id: string; weight: number }[];
}

/** Body bytes as they arrive at a proxy. All senders of the chunk share it. Views stay valid while it lives. */
export interface ChunkSource {
  readonly totalBytes: number;
  readonly availableBytes: number;
  /** Bytes `start` (inclusive) to `end` (exclusive); both at most `availableBytes`. */
  view(start: number, end: number): Uint8Array;
  /** SHA-256 of `view(start, end)`, cut to `LIMITS.digestBytes`. A source without it announces no digests. */
  digest?(start: number, end: number): Uint8Array;
  /** A source that does not fill from its start tells which bytes it has. `availableBytes` is then the length. */
  has?(start: number, end: number): boolean;
  /** A client wants bytes that the source does not have. The source may get them. */
  want?(start: number, end: number): void;
  /** Sources with the same name have the same bytes, so that senders can share what they code of them. */
  readonly name?: string;
  /** The proof of a piece, as `Tree.proofOf` makes it; pieces are numbered from the object's start. Objects only. */
  proof?(piece: number): Uint8Array;
}

export interface RequestFrame {
  type: "request";
  requestId: number;
  mode: MutpMode;
  symbolBytes: number;
  generationSize: number;
  /** The paper's w, in packets. In mode `coded` it is what may be sent before the first grant. */
  windowPackets: number;
  /** Mode `coded`: the part of each generation that this proxy begins with. */
  share?: Share;
  url: string;
  range?: ByteRange;
  /** Proves that the client may use the proxy. */
  token?: string;
  cache?: CacheMode;
  /** The web page for which the client asks. The proxy names it to origins as a browser does. */
  pageOrigin?: string;
  /** The proxy is to announce the digests of its generations: protocol.md §9.1. */
  digests?: boolean;
  /** The proxy is to send the proofs of the object's pieces: protocol.md §9.2. */
  proofs?: boolean;
  /** Mode `coded`: the proxy is to read only its part. */
  sharing?: Sharing;
}

/** The part from `start` to `end` (in 65535ths) of each generation from `firstGeneration` on: protocol.md §8.2. */
export interface Share {
  start: number;
  end: number;
  firstGeneration: number;
}

/** Packets of one generation that follow each other in a grant. */
export interface GrantedRun {
  generationIndex: number;
  count: number;
}

export type Coding =
  /** `grant`: low byte of the sequence of the sender's newest grant; 0 outside mode `coded`. */
  | { kind: "systematic"; symbolIndex: number; grant: number }
  | { kind: "seed"; seed: number; grant: number }
  | { kind: "vector"; coefficients: Uint8Array };

export interface DataFrame {
  type: "data";
  requestId: number;
  /** Counts the data frames of this sender for this request, from 0. */
  sequence: number;
  generationIndex: number;
  coding: Coding;
  payload: Uint8Array;
}

export type FinalReason = "none" | "complete" | "aborted" | "rejected";

export interface FeedbackFrame {
  type: "feedback";
  requestId: number;
  feedbackSequence: number;
  /** Raised when the client takes back some of what it had reported: protocol.md §9.5. */
  epoch: number;
  final: boolean;
  reason: FinalReason;
  /** One more than the highest sequence received from this proxy; 0 before the first. */
  nextSequence: number;
  receivedPackets: number;
  /** Symbols (uncoded) or generations (coded) below `base` are complete. */
  base: number;
  received: { kind: "symbols"; count: number; bitmap: Uint8Array } | { kind: "degreesOfFreedom"; counts: Uint8Array };
}

/** Mode `coded`: tells a proxy which packets to send from `fromSequence` on. The proxy stops after the last run. */
export interface GrantFrame {
  type: "grant";
  requestId: number;
  grantSequence: number;
  fromSequence: number;
  /** Generations below it are complete. */
  base: number;
  runs: GrantedRun[];
}

export interface PlanFrame {
  type: "plan";
  requestId: number;
  head: PlanHead;
}

/** The digests of generations that the proxy holds, from `firstGeneration` on. */
export interface DigestFrame {
  type: "digest";
  requestId: number;
  firstGeneration: number;
  digests: Uint8Array[];
}

/** Digests of the proofs of all pieces that the body touches, from the one with the number `firstDigest` on. */
export interface ProofFrame {
  type: "proof";
  requestId: number;
  firstDigest: number;
  /** 32 bytes each. */
  digests: Uint8Array;
}

export interface RejectFrame {
  type: "reject";
  requestId: number;
  rejection: Rejection;
}

export type Frame =
  | RequestFrame
  | { type: "pending"; requestId: number }
  | PlanFrame
  | RejectFrame
  | DigestFrame
  /** The client has this proxy's digests of the generations below `digestCount`. */
  | { type: "digestsHeard"; requestId: number; digestCount: number }
  | ProofFrame
  /** The client needs none of the proofs' digests below `digestCount` any more. */
  | { type: "proofHeard"; requestId: number; digestCount: number }
  | DataFrame
  | FeedbackFrame
  | GrantFrame
  | { type: "end"; requestId: number; sentPackets: number }
  | { type: "ping"; token: number }
  | { type: "pong"; token: number };

/** `requestId` is present when the bytes contain it, so that their sender can be answered. */
export interface ParseError {
  type: "parseError";
  requestId?: number;
  rejection: Rejection;
}
