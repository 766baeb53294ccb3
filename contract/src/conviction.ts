/**
 * Convictions: what a client sends to Origo when a proxy sent it a false packet of a published object, and the answer.
 * What the evidence proves: evidence.ts. Rules: docs/spec/publications.md §8.
 */
import { z } from "zod";
import { EVIDENCE_LIMITS, SCHEMA_LIMITS } from "./message-limits";
import { ObjectId, PublicationName, PublisherKey } from "./publication-schema";
import { DIGEST_BYTES } from "./tree";

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
