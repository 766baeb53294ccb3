/**
 * What swarm peers say to each other over one TCP connection. A frame is its kind (u8), the length of its body (u16)
 * and the body; numbers are big-endian. The connection is made by the peer that wants the blocks, and its first frame
 * is a hello. Pure. A frame that breaks a rule is a fault, and nothing after it is read.
 */
import type { Control } from "@tributary/protocol";

/** Payload bytes of a frame. Links share their rates in such steps. */
export const PIECE_BYTES = 8192;
export const TOKEN_BYTES = 16;
export const HEADER_BYTES = 3;

export type SwarmFrame =
  | Control
  /** First frame of a connection: the run's token, and who connects. */
  | { readonly kind: "hello"; readonly token: Uint8Array; readonly id: number }
  /** A block begins. What is missing of the block before does not come. */
  | { readonly kind: "sourceBlock"; readonly index: number }
  | { readonly kind: "codedBlock"; readonly vector: Uint8Array }
  | { readonly kind: "piece"; readonly payload: Uint8Array }
  /** So many payload bytes have passed the receiver's link. */
  | { readonly kind: "credit"; readonly bytes: number };

type Kind = SwarmFrame["kind"];

/** A broken rule, the value that broke it, and the limit. */
export interface SwarmFault {
  readonly fault: "kind" | "length" | "index" | "blockBytes" | "window" | "credit" | "flood" | "silence" | "hello";
  readonly got: number;
  readonly limit: number;
}

/** What a peer that serves us may send; what one that we serve may send; what a stranger may send. */
const KINDS = {
  upstream: ["have", "offer", "sourceBlock", "codedBlock", "piece"],
  downstream: ["request", "cancel", "accept", "refuse", "ask", "done", "credit"],
  stranger: ["hello"],
} as const satisfies Record<string, readonly Kind[]>;
export type Role = keyof typeof KINDS;

/** In the order of their codes, from 1. */
const CODES: readonly Kind[] = [...KINDS.stranger, ...KINDS.upstream, ...KINDS.downstream];

export function encodeSwarmFrame(frame: SwarmFrame): Uint8Array {
  const body = bodyOf(frame);
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + body.length);
  bytes.writeUInt8(CODES.indexOf(frame.kind) + 1, 0);
  bytes.writeUInt16BE(body.length, 1);
  bytes.set(body, HEADER_BYTES);
  return bytes;
}

function bodyOf(frame: SwarmFrame): Uint8Array {
  if (frame.kind === "piece") return frame.payload;
  if ("vector" in frame) return frame.vector;
  if ("index" in frame) return Uint8Array.of(frame.index >> 8, frame.index & 0xff);
  if (frame.kind === "hello") return Uint8Array.of(...frame.token, frame.id >> 8, frame.id & 0xff);
  if (frame.kind !== "credit") return new Uint8Array(0);
  const body = Buffer.alloc(4);
  body.writeUInt32BE(frame.bytes);
  return body;
}

/** Reads the frames of one connection. It holds less than one frame of bytes that it has not read. */
export class FrameReader {
  #kinds: readonly Kind[];
  readonly #blockCount: number;
  #bytes: Buffer = Buffer.alloc(0);

  constructor(role: Role, blockCount: number) {
    this.#kinds = KINDS[role];
    this.#blockCount = blockCount;
  }

  /** From now on frames come from a peer of this role. */
  become(role: Role): void {
    this.#kinds = KINDS[role];
  }

  push(bytes: Uint8Array): void {
    this.#bytes = this.#bytes.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#bytes, bytes]);
  }

  /** The next frame, a fault, or undefined until more bytes come. */
  next(): SwarmFrame | SwarmFault | undefined {
    if (this.#bytes.length < HEADER_BYTES) return undefined;
    const code = this.#bytes.readUInt8(0);
    const kind = CODES[code - 1];
    if (kind === undefined || !this.#kinds.includes(kind)) return { fault: "kind", got: code, limit: CODES.length };
    const length = this.#bytes.readUInt16BE(1);
    const [least, most] = this.#lengthsOf(kind);
    if (length < least || length > most) return { fault: "length", got: length, limit: length < least ? least : most };
    if (this.#bytes.length < HEADER_BYTES + length) return undefined;
    // A copy: blocks outlive the buffer that they came in.
    const body = Buffer.from(this.#bytes.subarray(HEADER_BYTES, HEADER_BYTES + length));
    this.#bytes = this.#bytes.subarray(HEADER_BYTES + length);
    return this.#frameOf(kind, body);
  }

  #lengthsOf(kind: Kind): readonly [least: number, most: number] {
    if (kind === "piece") return [1, PIECE_BYTES];
    const exact = { hello: TOKEN_BYTES + 2, offer: this.#blockCount, codedBlock: this.#blockCount, credit: 4 };
    const hasIndex = ["have", "request", "cancel", "sourceBlock"].includes(kind);
    const length = exact[kind as keyof typeof exact] ?? (hasIndex ? 2 : 0);
    return [length, length];
  }

  #frameOf(kind: Kind, body: Buffer): SwarmFrame | SwarmFault {
    switch (kind) {
      case "have":
      case "request":
      case "cancel":
      case "sourceBlock": {
        const index = body.readUInt16BE(0);
        if (index >= this.#blockCount) return { fault: "index", got: index, limit: this.#blockCount - 1 };
        return { kind, index };
      }
      case "offer":
      case "codedBlock":
        return { kind, vector: new Uint8Array(body) };
      case "piece":
        return { kind, payload: body };
      case "credit":
        return { kind, bytes: body.readUInt32BE(0) };
      case "hello":
        return { kind, token: body.subarray(0, TOKEN_BYTES), id: body.readUInt16BE(TOKEN_BYTES) };
      default:
        return { kind };
    }
  }
}
