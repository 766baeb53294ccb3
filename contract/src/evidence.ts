/**
 * Evidence: what proves that a proxy sent a false packet of a published object, and the check that anyone can do. The
 * evidence is the packet, the true bytes of its generation, and the proofs that lead from these bytes to the root that
 * the publisher signed. A packet that is not the product of its coefficients and the true bytes is false. Packets are
 * not signed by proxies, so clients that work together can still accuse one that told the truth:
 * docs/spec/threat-model.md. Rules: docs/spec/publications.md §8.
 */
import type { Conviction } from "./conviction";
import { addProduct } from "./galois";
import { EVIDENCE_LIMITS } from "./message-limits";
import {
  BLOCK_BYTES,
  checkProof,
  digestAt,
  DIGEST_BYTES,
  objectId,
  parseObjectId,
  PIECE_BLOCKS,
  PIECE_BYTES,
  proofDigestsOf,
  type Hash,
  type ObjectName,
} from "./tree";

const { symbols } = EVIDENCE_LIMITS;

/** A false packet of an object, and what shows to anyone that it is false. */
export interface Evidence {
  coding:
    | { kind: "systematic"; symbolIndex: number }
    | { kind: "seed"; seed: number }
    | { kind: "vector"; coefficients: Uint8Array };
  payload: Uint8Array;
  /** The true bytes of its generation, which begins here in the object. */
  offset: number;
  bytes: Uint8Array;
  /** Of the pieces in which the generation lies, in order. */
  proofs: Uint8Array[];
}

/** As Origo takes it. `publication` has the object. */
export function convictionOf(
  { coding, payload, offset, bytes, proofs }: Evidence,
  proxy: string,
  publication: { key: string; name: string },
  object: ObjectName,
): Conviction {
  return {
    proxy,
    ...publication,
    object: objectId(object),
    offset,
    symbolBytes: payload.length,
    coding: told(coding),
    payload: base64(payload),
    generation: base64(bytes),
    proofs: proofs.map(base64),
  };
}

function told(coding: Evidence["coding"]): Conviction["coding"] {
  if (coding.kind === "systematic") return { kind: "systematic", symbolIndex: coding.symbolIndex };
  if (coding.kind === "seed") return { kind: "seed", seed: coding.seed };
  return { kind: "vector", coefficients: base64(coding.coefficients) };
}

/** In parts, because an engine limits the arguments of a call. */
function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 4096) text += String.fromCharCode(...bytes.subarray(at, at + 4096));
  return btoa(text);
}

/** Why the evidence proves nothing; undefined if it convicts the proxy. It does not ask who signed the root. */
export function evidenceFault(
  evidence: Conviction,
  decode: (base64: string) => Uint8Array,
  hash: Hash,
): string | undefined {
  const object = parseObjectId(evidence.object)!;
  const { offset, coding } = evidence;
  const [generation, payload] = [decode(evidence.generation), decode(evidence.payload)];
  const end = offset + generation.length;
  const symbolCount = Math.ceil(generation.length / evidence.symbolBytes);
  if (generation.length === 0 || symbolCount > symbols)
    return `generation: must have 1 to ${symbols} symbols, got ${symbolCount}`;
  if (payload.length !== evidence.symbolBytes)
    return `payload: must have ${evidence.symbolBytes} bytes, got ${payload.length}`;
  if (end > object.bytes) return `generation: must end within the object's ${object.bytes} bytes, got ${end}`;
  if (offset % BLOCK_BYTES !== 0 || (end % BLOCK_BYTES !== 0 && end !== object.bytes))
    return `generation: must begin and end with blocks of ${BLOCK_BYTES} bytes, got ${offset} to ${end}`;
  const firstPiece = Math.floor(offset / PIECE_BYTES);
  const pieceCount = Math.floor((end - 1) / PIECE_BYTES) - firstPiece + 1;
  if (evidence.proofs.length !== pieceCount) return `proofs: must be ${pieceCount}, got ${evidence.proofs.length}`;
  for (const [index, text] of evidence.proofs.entries()) {
    const [piece, proof] = [firstPiece + index, decode(text)];
    const digests = proofDigestsOf(object.bytes, piece);
    if (proof.length !== digests * DIGEST_BYTES)
      return `proofs[${index}]: must have ${digests} digests, got ${proof.length} bytes`;
    const leaves = checkProof(object, piece, proof, hash);
    if (!leaves) return `proofs[${index}]: does not lead to the object's root`;
    for (let at = Math.max(offset, piece * PIECE_BYTES); at < Math.min(end, (piece + 1) * PIECE_BYTES);) {
      const block = generation.subarray(at - offset, at - offset + BLOCK_BYTES);
      if (!isSame(hash(block), digestAt(leaves, (at / BLOCK_BYTES) % PIECE_BLOCKS)!))
        return `generation: the block at ${at} is not the object's`;
      at += BLOCK_BYTES;
    }
  }
  const coefficients = coefficientsOf(coding, symbolCount, decode);
  if (typeof coefficients === "string") return coefficients;
  if (isSame(productOf(coefficients, generation, evidence.symbolBytes), payload))
    return "payload: is true, so the packet proves nothing";
  return undefined;
}

function coefficientsOf(
  coding: Conviction["coding"],
  symbolCount: number,
  decode: (base64: string) => Uint8Array,
): Uint8Array | string {
  if (coding.kind === "seed") return seedCoefficients(coding.seed, symbolCount);
  if (coding.kind === "vector") {
    const given = decode(coding.coefficients);
    return given.length === symbolCount ? given : `coding.coefficients: must be ${symbolCount}, got ${given.length}`;
  }
  if (coding.symbolIndex >= symbolCount)
    return `coding.symbolIndex: must be below ${symbolCount}, got ${coding.symbolIndex}`;
  return Uint8Array.from({ length: symbolCount }, (_, index) => (index === coding.symbolIndex ? 1 : 0));
}

const WORD_BITS = 64;
const word = (value: bigint): bigint => BigInt.asUintN(WORD_BITS, value);

/** The coefficients that a seed stands for: protocol.md §5.3. */
export function seedCoefficients(seed: number, symbolCount: number): Uint8Array {
  const bytes = new Uint8Array(Math.ceil(symbolCount / 8) * 8);
  const view = new DataView(bytes.buffer);
  let state = BigInt(seed);
  do {
    for (let at = 0; at < bytes.length; at += 8) {
      let z = (state = word(state + 0x9e3779b97f4a7c15n));
      z = word((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
      z = word((z ^ (z >> 27n)) * 0x94d049bb133111ebn);
      view.setBigUint64(at, z ^ (z >> 31n), true);
    }
  } while (bytes.subarray(0, symbolCount).every((byte) => byte === 0));
  return bytes.subarray(0, symbolCount);
}

/** The sum of the symbols, each multiplied by its coefficient, over GF(2^8) with the polynomial 0x11D. */
function productOf(coefficients: Uint8Array, generation: Uint8Array, bytes: number): Uint8Array {
  const sum = new Uint8Array(bytes);
  coefficients.forEach((coefficient, index) =>
    addProduct(sum, generation.subarray(index * bytes, (index + 1) * bytes), coefficient),
  );
  return sum;
}

const isSame = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && a.every((byte, i) => byte === b[i]);
