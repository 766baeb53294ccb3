/**
 * Convictions: what a client sends to Origo when a proxy sent it a false packet of a published object, and the check
 * that anyone can do. The evidence is the packet, the true bytes of its generation, and the proofs that lead from these
 * bytes to the root, which the publisher signed. A packet that is not the product of its coefficients and the true
 * bytes is false. Packets are not signed by proxies, so clients that work together can still accuse one that told the
 * truth: docs/spec/threat-model.md. Rules: docs/spec/publications.md §8.
 */
import { z } from "zod";
import { SCHEMA_LIMITS } from "./message-limits";
import { ObjectId, PublicationName, PublisherKey } from "./publication-schema";
import {
  BLOCK_BYTES,
  checkProof,
  digestAt,
  parseObjectId,
  PIECE_BYTES,
  proofDigestsOf,
  PIECE_BLOCKS,
  DIGEST_BYTES,
  type Hash,
} from "./tree";

export const EVIDENCE_LIMITS = {
  symbolBytes: 1140,
  symbols: 128,
  /** A generation lies in as many pieces. */
  proofs: 2,
  /** Of the message: generation, payload and proofs in base64, and the rest. */
  bytes: 256 * 1024,
} as const;

const { symbolBytes, symbols, proofs } = EVIDENCE_LIMITS;
const PROOF_BYTES_MAX = 128 * DIGEST_BYTES;
const base64 = (bytesMax: number) =>
  z
    .string()
    .max(Math.ceil(bytesMax / 3) * 4)
    .regex(/^[A-Za-z0-9+/]*={0,2}$/, "must be base64");
const whole = (min: number, max: number) => z.number().int().min(min).max(max);

/** Body of POST /v1/convictions. */
export const Conviction = z
  .object({
    /** The id of the proxy that sent the packet. */
    proxy: z.string().min(1).max(SCHEMA_LIMITS.idChars),
    /** The publication whose manifest has the object. */
    key: PublisherKey,
    name: PublicationName,
    object: ObjectId,
    /** Of the generation in the object. */
    offset: whole(0, Number.MAX_SAFE_INTEGER),
    symbolBytes: whole(1, symbolBytes),
    /** How the payload was made: protocol.md §4.4 to §4.6. */
    coding: z.discriminatedUnion("kind", [
      z.object({ kind: z.literal("systematic"), symbolIndex: whole(0, symbols - 1) }).strict(),
      z.object({ kind: z.literal("seed"), seed: whole(0, 0xffff_ffff) }).strict(),
      z.object({ kind: z.literal("vector"), coefficients: base64(symbols) }).strict(),
    ]),
    payload: base64(symbolBytes),
    /** The true bytes, without padding. */
    generation: base64(symbols * symbolBytes),
    /** Of the pieces in which the generation lies, in order. */
    proofs: z.array(base64(PROOF_BYTES_MAX)).min(1).max(proofs),
  })
  .strict();
export type Conviction = z.infer<typeof Conviction>;

/** Answer (202): in how many networks clients have convicted this proxy with evidence. */
export const ConvictionResponse = z.object({ networks: z.number().int().nonnegative() }).strict();
export type ConvictionResponse = z.infer<typeof ConvictionResponse>;

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
  coefficients.forEach((coefficient, index) => {
    if (coefficient === 0) return;
    const logarithm = LOGARITHMS[coefficient]!;
    const symbol = generation.subarray(index * bytes, (index + 1) * bytes);
    for (let at = 0; at < symbol.length; at++)
      if (symbol[at] !== 0) sum[at]! ^= POWERS[logarithm + LOGARITHMS[symbol[at]!]!]!;
  });
  return sum;
}

const ORDER = 255;
/** The powers of 2, twice in a row, so that a sum of two logarithms needs no division. */
const POWERS = new Uint8Array(2 * ORDER);
const LOGARITHMS = new Uint8Array(ORDER + 1);
for (let exponent = 0, power = 1; exponent < ORDER; exponent++) {
  POWERS[exponent] = POWERS[exponent + ORDER] = power;
  LOGARITHMS[power] = exponent;
  power = (power << 1) ^ (power & 0x80 ? 0x11d : 0);
}

const isSame = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && a.every((byte, i) => byte === b[i]);
