/**
 * ObjectProofs: the digests of an object's blocks, as they become known with the proofs that the proxies send. The
 * object's root and length are known beforehand, so a proof needs no trust, and a wrong one convicts its sender.
 * Rules: protocol.md §9.2.
 */
import type { ByteRange, Rejection, ResponseHead } from "@tributary/contract";
import {
  BLOCK_BYTES,
  blocksOfPiece,
  checkProof,
  digestAt,
  DIGEST_BYTES,
  objectId,
  PIECE_BLOCKS,
  PIECE_BYTES,
  proofDigestsOf,
  type Hash,
  type ObjectName,
} from "@tributary/contract/tree";
import type { RequestFrame } from "../types";
import type { Assembly, ByteCheck } from "./assembly";
import type { ReceiverOptions } from "./options";
import type { ReceiverEvent } from "./outcome";
import { sameBytes } from "./verification";

/** Where the digests of the proof of one piece are among all that a proxy sends. */
interface PieceProof {
  readonly piece: number;
  readonly start: number;
  readonly end: number;
  /** The proof, once it is known. */
  known: Uint8Array | undefined;
}

/** What one proxy has sent. */
interface Sent {
  readonly digests: Uint8Array;
  readonly has: Uint8Array;
}

export class ObjectProofs implements ByteCheck {
  readonly #pieces: readonly PieceProof[];
  /** Of all proofs. */
  readonly digestCount: number;
  readonly #sent = new Map<number, Sent>();
  readonly #startByte: number;
  readonly #endByte: number;

  readonly #object: ObjectName;
  readonly #range: ByteRange | undefined;
  readonly #generationBytes: number;
  readonly #hash: Hash;

  /** The range begins and ends with blocks, and generations are whole blocks. */
  constructor(object: ObjectName, range: ByteRange | undefined, generationBytes: number, hash: Hash) {
    checkBlocks(object, range, generationBytes);
    this.#object = object;
    this.#range = range;
    this.#generationBytes = generationBytes;
    this.#hash = hash;
    this.#startByte = range?.start ?? 0;
    this.#endByte = range ? range.end + 1 : object.bytes;
    const pieces: PieceProof[] = [];
    let start = 0;
    for (let piece = Math.floor(this.#startByte / PIECE_BYTES); piece * PIECE_BYTES < this.#endByte; piece++) {
      const next = start + proofDigestsOf(object.bytes, piece);
      pieces.push({ piece, start, end: next, known: undefined });
      start = next;
    }
    this.#pieces = pieces;
    this.digestCount = start;
  }

  /** What each plan must say. */
  get head(): ResponseHead & { totalBytes: number } {
    const { bytes } = this.#object;
    if (!this.#range) return { status: 200, totalBytes: bytes, headers: {} };
    const { start, end } = this.#range;
    return { status: 206, totalBytes: end - start + 1, headers: { "content-range": `bytes ${start}-${end}/${bytes}` } };
  }

  /** What a wrong proof convicts its sender of. */
  get wrong(): Rejection {
    const message = `The proxy sent a proof that does not lead to the root of ${objectId(this.#object)}.`;
    return { kind: "proofWrong", message };
  }

  /** The client needs no digests below it from this proxy. */
  heardFrom(proxyIndex: number): number {
    let count = 0;
    for (const { end, known } of this.#pieces) {
      if (!known) break;
      count = end;
    }
    const has = this.#sent.get(proxyIndex)?.has;
    while (has?.[count]) count++;
    return count;
  }

  /**
   * Takes digests from a proxy, in any order. Returns the proxies whose proofs are wrong, and calls `onKnown` with the
   * first and the last generation of each piece that has become known.
   */
  handleDigests(
    proxyIndex: number,
    first: number,
    digests: Uint8Array,
    onKnown: (firstGeneration: number, lastGeneration: number) => void,
  ): ReadonlySet<number> {
    const liars = new Set<number>();
    const count = digests.length / DIGEST_BYTES;
    if (first + count > this.digestCount) return liars.add(proxyIndex);
    const sent = this.#sentBy(proxyIndex);
    for (let i = 0; i < count; i++) {
      if (sent.has[first + i]) continue;
      sent.has[first + i] = 1;
      sent.digests.set(digestAt(digests, i)!, (first + i) * DIGEST_BYTES);
    }
    for (const proof of this.#pieces) {
      if (proof.end <= first || proof.start >= first + count) continue;
      if (proof.known) {
        if (contradicts(sent, proof)) liars.add(proxyIndex);
      } else if (sent.has.subarray(proof.start, proof.end).every((one) => one === 1)) {
        this.#check(proxyIndex, proof, liars);
        if (!liars.has(proxyIndex)) onKnown(...this.#generationsOf(proof.piece));
      }
    }
    return liars;
  }

  isKnown(index: number): boolean {
    const [start, end] = this.#bytesOf(index);
    for (let at = start; at < end; at += PIECE_BYTES - (at % PIECE_BYTES)) if (!this.#leafAt(at)) return false;
    return true;
  }

  /** Each block has a digest of its own. */
  readonly partBytes = BLOCK_BYTES;

  isTrue(index: number, bytes: Uint8Array, offset = 0): boolean {
    const start = this.#bytesOf(index)[0] + offset;
    for (let at = 0; at < bytes.length; at += BLOCK_BYTES) {
      const leaf = this.#leafAt(start + at);
      if (!leaf || !sameBytes(this.#hash(bytes.subarray(at, at + BLOCK_BYTES)), leaf)) return false;
    }
    return true;
  }

  /** The next false packet that someone may be shown. */
  takeConviction(assembly: Assembly | undefined): ReceiverEvent | undefined {
    const packet = assembly?.falsePackets.shift();
    if (!packet) return undefined;
    const { generationIndex, ...shown } = packet;
    const [offset, end] = this.#bytesOf(generationIndex);
    const proofs = this.#pieces
      .filter(({ piece }) => piece * PIECE_BYTES < end && (piece + 1) * PIECE_BYTES > offset)
      .map(({ known }) => known!);
    return { kind: "conviction", evidence: { ...shown, offset, proofs } };
  }

  #sentBy(proxyIndex: number): Sent {
    const known = this.#sent.get(proxyIndex);
    if (known) return known;
    const count = this.digestCount;
    const made = { digests: new Uint8Array(count * DIGEST_BYTES), has: new Uint8Array(count) };
    this.#sent.set(proxyIndex, made);
    return made;
  }

  /** The proof is complete. A true one is compared with what the others have sent of it. */
  #check(proxyIndex: number, proof: PieceProof, liars: Set<number>): void {
    const digests = this.#sentBy(proxyIndex).digests.slice(proof.start * DIGEST_BYTES, proof.end * DIGEST_BYTES);
    if (!checkProof(this.#object, proof.piece, digests, this.#hash)) return void liars.add(proxyIndex);
    proof.known = digests;
    for (const [other, sent] of this.#sent) if (contradicts(sent, proof)) liars.add(other);
  }

  /** The bytes of a generation, in the object. */
  #bytesOf(index: number): [start: number, end: number] {
    const start = this.#startByte + index * this.#generationBytes;
    return [start, Math.min(start + this.#generationBytes, this.#endByte)];
  }

  #generationsOf(piece: number): [first: number, last: number] {
    const first = Math.floor((piece * PIECE_BYTES - this.#startByte) / this.#generationBytes);
    const last = Math.floor(((piece + 1) * PIECE_BYTES - 1 - this.#startByte) / this.#generationBytes);
    return [Math.max(0, first), last];
  }

  #leafAt(byte: number): Uint8Array | undefined {
    const piece = Math.floor(byte / PIECE_BYTES);
    const known = this.#pieces[piece - this.#pieces[0]!.piece]?.known;
    const block = Math.floor(byte / BLOCK_BYTES) - piece * PIECE_BLOCKS;
    return known && block < blocksOfPiece(this.#object.bytes, piece) ? digestAt(known, block) : undefined;
  }
}

/** Whether the proxy has sent something else than this proof, which is known. */
function contradicts({ digests, has }: Sent, { start, end, known }: PieceProof): boolean {
  for (let index = start; index < end; index++)
    if (has[index] && !sameBytes(digestAt(digests, index)!, digestAt(known!, index - start)!)) return true;
  return false;
}

/** Undefined unless the request is for an object. */
export function proofsOf({ object, hash }: ReceiverOptions, request: RequestFrame): ObjectProofs | undefined {
  return object && new ObjectProofs(object, request.range, request.symbolBytes * request.generationSize, hash!);
}

/** Throws unless the bytes asked for, and all generations, are whole blocks. */
function checkBlocks({ bytes }: ObjectName, range: ByteRange | undefined, generationBytes: number): void {
  const end = range ? range.end + 1 : bytes;
  const isWhole = (range?.start ?? 0) % BLOCK_BYTES === 0 && (end % BLOCK_BYTES === 0 || end === bytes);
  if (!isWhole || end > bytes)
    throw new RangeError(
      `The range must be whole blocks of the object's ${bytes} bytes: got ${range?.start}-${range?.end}.`,
    );
  if (generationBytes % BLOCK_BYTES !== 0)
    throw new RangeError(`A generation must be whole blocks: got ${generationBytes} bytes, block ${BLOCK_BYTES}.`);
}
