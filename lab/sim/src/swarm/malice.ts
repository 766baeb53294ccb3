/**
 * Malicious proxies, which change the messages of an honest sender, and frames that are well formed but random. It also
 * has the corruption on the way. Corruption makes a message unreadable or foreign. It never makes another valid
 * message: sessions are authenticated, so only a malicious proxy can do that.
 */
import type { RejectionKind } from "@tributary/contract";
import { DIGEST_BYTES } from "@tributary/contract/tree";
import { encodeFrame, LIMITS, parseFrame, type DataFrame, type Frame } from "@tributary/protocol";
import type { Random } from "../random";
import type { Malice } from "./draw";

const REPLAYED = 32;

export class MaliciousProxy {
  readonly #sent: Uint8Array[] = [];
  #firstData: DataFrame | undefined;
  #dataFrames = 0;

  readonly #kinds: readonly Malice[];
  readonly #random: Random;
  readonly #requestId: number;
  readonly #symbolBytes: number;

  constructor(kinds: readonly Malice[], random: Random, requestId: number, symbolBytes: number) {
    this.#kinds = kinds;
    this.#random = random;
    this.#requestId = requestId;
    this.#symbolBytes = symbolBytes;
  }

  /** Returns the messages that go out in place of `message`. */
  twist(message: Uint8Array): Uint8Array[] {
    let out = [message];
    for (const kind of this.#kinds) out = out.flatMap((one) => this.#twistOne(kind, one));
    return out;
  }

  #twistOne(kind: Malice, message: Uint8Array): Uint8Array[] {
    const frame = parseFrame(message);
    const random = this.#random;
    if (kind === "noise") return random.unit() < 0.3 ? [message, garble(message, random)] : [message];
    if (kind === "wild")
      return random.unit() < 0.3
        ? [message, encodeFrame(wildFrame(random, this.#requestId, this.#symbolBytes))]
        : [message];
    if (kind === "wrong-id") return random.unit() < 0.5 ? [message, withId(frame, random.u32())] : [message];
    if (kind === "replay") return this.#replay(message);
    if (kind === "no-end" && frame.type === "end") return [];
    if (frame.type === "digest" && kind === "false-digest")
      return [encodeFrame({ ...frame, digests: frame.digests.map((digest) => polluted(digest, random)) })];
    if (frame.type === "proof" && kind === "false-proof")
      return [encodeFrame({ ...frame, digests: polluted(frame.digests, random) })];
    if (frame.type === "plan") return this.#twistPlan(kind, frame, message);
    if (frame.type === "data") return this.#twistData(kind, frame, message);
    return [message];
  }

  #replay(message: Uint8Array): Uint8Array[] {
    if (this.#sent.push(message) > REPLAYED) this.#sent.shift();
    return [message, this.#sent[below(this.#random, this.#sent.length)]!];
  }

  #twistPlan(kind: Malice, frame: Frame & { type: "plan" }, message: Uint8Array): Uint8Array[] {
    const { head } = frame;
    if (kind === "no-plan") return [];
    if (kind === "lie-reads" && head.reads)
      return [encodeFrame({ ...frame, head: { ...head, reads: [{ from: 0, end: 65_535 }] } })];
    if (kind === "lie-status") return [encodeFrame({ ...frame, head: { ...head, status: 404 } })];
    if (kind === "lie-etag")
      return [encodeFrame({ ...frame, head: { ...head, headers: { ...head.headers, etag: '"false"' } } })];
    if (kind !== "lie-length") return [message];
    const totalBytes = below(this.#random, 2) ? below(this.#random, LIMITS.chunkBytesMax) : head.totalBytes + 1;
    return [encodeFrame({ ...frame, head: { ...head, totalBytes } })];
  }

  #twistData(kind: Malice, frame: DataFrame, message: Uint8Array): Uint8Array[] {
    const random = this.#random;
    const count = this.#dataFrames++;
    this.#firstData ??= frame;
    if (kind === "mute") return count < 5 ? [message] : [];
    if (kind === "reject")
      return count === 3
        ? [
            encodeFrame({
              type: "reject",
              requestId: this.#requestId,
              rejection: { kind: "false" as RejectionKind, message: "" },
            }),
          ]
        : [message];
    if (kind === "end")
      return count % 8 === 3
        ? [message, encodeFrame({ type: "end", requestId: this.#requestId, sentPackets: random.u32() })]
        : [message];
    if (kind === "useless") return [encodeFrame({ ...this.#firstData, sequence: frame.sequence })];
    if (kind === "jump") return [encodeFrame({ ...frame, sequence: random.u32() })];
    if (kind === "mislabel") return [encodeFrame(mislabelled(frame, random))];
    if (kind === "pollute-bytes") return [encodeFrame({ ...frame, payload: spoilt(frame.payload, 0.01, random) })];
    if (kind === "pollute-all") return [encodeFrame({ ...frame, payload: spoilt(frame.payload, 1, random) })];
    if (kind === "pollute-repair" && frame.coding.kind !== "systematic")
      return [encodeFrame({ ...frame, payload: polluted(frame.payload, random) })];
    const share = kind === "pollute" ? 1 : kind === "pollute-rarely" ? 0.05 : 0;
    return random.unit() < share ? [encodeFrame({ ...frame, payload: polluted(frame.payload, random) })] : [message];
  }
}

function below(random: Random, bound: number): number {
  return Math.floor(random.unit() * bound);
}

function polluted(payload: Uint8Array, random: Random): Uint8Array {
  const made = payload.slice();
  made[below(random, made.length)]! ^= 1 + below(random, 255);
  return made;
}

/** Changes this share of the bytes. */
function spoilt(payload: Uint8Array, share: number, random: Random): Uint8Array {
  return payload.map((byte) => (random.unit() < share ? byte ^ (1 + below(random, 255)) : byte));
}

function mislabelled(frame: DataFrame, random: Random): DataFrame {
  const { coding } = frame;
  if (below(random, 2)) return { ...frame, generationIndex: below(random, frame.generationIndex + 2) };
  if (coding.kind === "systematic")
    return { ...frame, coding: { ...coding, symbolIndex: below(random, LIMITS.generationSizeMax) } };
  if (coding.kind === "seed") return { ...frame, coding: { ...coding, seed: random.u32() } };
  return frame;
}

function withId(frame: ReturnType<typeof parseFrame>, requestId: number): Uint8Array {
  if (frame.type === "parseError" || !("requestId" in frame)) return Uint8Array.of(1);
  return encodeFrame({ ...frame, requestId });
}

/** Cuts the message short or replaces it by noise. */
export function garble(message: Uint8Array, random: Random): Uint8Array {
  if (below(random, 2)) return message.slice(0, below(random, Math.min(message.length, 60)));
  return Uint8Array.from({ length: below(random, 80) }, () => random.u32());
}

/** A random frame of this request. Its fields can have any value that the wire can carry. */
export function wildFrame(random: Random, requestId: number, symbolBytes: number): Frame {
  const u32 = () => random.u32();
  const bytes = (count: number) => Uint8Array.from({ length: count }, u32);
  const index = below(random, 3) ? below(random, 6) : below(random, 65536);
  const small = below(random, 2) ? below(random, 64) : u32();
  switch (below(random, 13)) {
    case 0:
      return { type: "pending", requestId };
    case 1:
      return {
        type: "plan",
        requestId,
        head: {
          status: 100 + below(random, 500),
          totalBytes: below(random, LIMITS.chunkBytesMax),
          headers: {},
          serverFetchMs: u32(),
        },
      };
    case 2:
      return { type: "end", requestId, sentPackets: u32() };
    case 3:
      return {
        type: "feedback",
        requestId,
        ...wildFeedback(random),
        received: { kind: "degreesOfFreedom", counts: bytes(below(random, 200)) },
      };
    case 4: {
      const count = below(random, 2000);
      return {
        type: "feedback",
        requestId,
        ...wildFeedback(random),
        received: { kind: "symbols", count, bitmap: bytes(Math.ceil(count / 8)) },
      };
    }
    case 5: {
      const runs = Array.from({ length: below(random, LIMITS.grantRunsMax) }, () => ({
        generationIndex: below(random, 2) ? index : below(random, 65536),
        count: below(random, 256),
      }));
      return {
        type: "grant",
        requestId,
        grantSequence: small,
        fromSequence: below(random, 2) ? below(random, 300) : u32(),
        base: index,
        runs,
      };
    }
    case 6: {
      const digests = Array.from({ length: 1 + below(random, 3) }, () => bytes(LIMITS.digestBytes));
      return { type: "digest", requestId, firstGeneration: index, digests };
    }
    case 7:
      return { type: "digestsHeard", requestId, digestCount: index };
    case 8:
      return { type: "proof", requestId, firstDigest: small, digests: bytes(DIGEST_BYTES * (1 + below(random, 3))) };
    case 9:
      return { type: "proofHeard", requestId, digestCount: small };
    default:
      return {
        type: "data",
        requestId,
        sequence: small,
        generationIndex: index,
        coding: wildCoding(random),
        payload: bytes(below(random, 4) ? symbolBytes : below(random, 1200)),
      };
  }
}

function wildFeedback(random: Random) {
  const pick = () => (below(random, 2) ? below(random, 300) : random.u32());
  return {
    feedbackSequence: pick(),
    epoch: below(random, 4) ? 0 : pick(),
    final: false,
    reason: "none" as const,
    nextSequence: pick(),
    receivedPackets: pick(),
    base: pick(),
  };
}

function wildCoding(random: Random): DataFrame["coding"] {
  const which = below(random, 3);
  if (which === 0) return { kind: "systematic", symbolIndex: below(random, 256), grant: below(random, 256) };
  if (which === 1) return { kind: "seed", seed: random.u32(), grant: below(random, 256) };
  return {
    kind: "vector",
    coefficients: Uint8Array.from({ length: 1 + below(random, LIMITS.generationSizeMax) }, () =>
      below(random, 4) ? 0 : random.u32(),
    ),
  };
}
