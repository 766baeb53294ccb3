/**
 * Announcer: tells the client a list, in order, until the client has confirmed it: the digests of the generations that
 * the proxy holds, or the proofs of an object. It decides which items go out next and when they are repeated, and
 * nothing about data. Pure: time arrives as `nowMs`. Rules: protocol.md §9.1 and §9.2.
 */
import { DIGEST_BYTES, joined, PIECE_BYTES } from "@tributary/contract/tree";
import { generationBytes, generationStart, type Geometry } from "../geometry";
import { DIGEST_EVERY_PACKETS, DIGEST_HASHED_BYTES_MAX, LIMITS, PROOF_DIGESTS_URGENT, TIMING } from "../limits";
import type { ChunkSource, DigestFrame, ProofFrame, RequestFrame } from "../types";

/** What an announcer tells. */
interface Announced<F> {
  readonly count: number;
  /** At most so many items wait to be confirmed. */
  readonly aheadMax: number;
  /** The items below it do not wait for their turn between data frames. */
  readonly urgentCount: number;
  /** The first items from `first` on, all below `end`. Undefined if none is there yet. */
  frame(first: number, end: number): { frame: F; count: number } | undefined;
}

export class Announcer<F> {
  /** The next item to announce. */
  #next = 0;
  /** The client has the items below it. */
  #heard = 0;
  #packetsSince = DIGEST_EVERY_PACKETS;
  #repeatMs: number = TIMING.digestRepeatMs;
  /** Infinity while nothing waits to be confirmed. */
  #repeatDueMs = Infinity;

  readonly #list: Announced<F>;

  constructor(list: Announced<F>) {
    this.#list = list;
  }

  handleHeard(count: number): void {
    if (count <= this.#heard || count > this.#list.count) return;
    this.#heard = count;
    this.#next = Math.max(this.#next, count);
    this.#repeatMs = TIMING.digestRepeatMs;
    if (this.#heard >= this.#next) this.#repeatDueMs = Infinity;
  }

  /** The client asks for the plan again. If it had confirmed items, it has forgotten them with the plan. */
  handleAskedAgain(): void {
    if (this.#heard > 0) this.#next = this.#heard = 0;
  }

  handleTimeout(nowMs: number): void {
    if (nowMs < this.#repeatDueMs) return;
    this.#next = this.#heard;
    this.#repeatMs = Math.min(2 * this.#repeatMs, TIMING.digestRepeatMsMax);
    this.#repeatDueMs = nowMs + this.#repeatMs;
  }

  pollTimeout(): number | undefined {
    return this.#repeatDueMs === Infinity ? undefined : this.#repeatDueMs;
  }

  handleDataSent(): void {
    this.#packetsSince++;
  }

  /** The next items, if there are new ones. While there is data to send, they wait for their turn. */
  poll(hasData: boolean, nowMs: number): F | undefined {
    const { count, aheadMax, urgentCount } = this.#list;
    if (hasData && this.#packetsSince < DIGEST_EVERY_PACKETS && this.#next >= urgentCount) return undefined;
    const end = Math.min(count, this.#heard + aheadMax);
    const taken = this.#next < end ? this.#list.frame(this.#next, end) : undefined;
    if (!taken) return undefined;
    this.#next += taken.count;
    this.#packetsSince = 0;
    if (this.#repeatDueMs === Infinity) this.#repeatDueMs = nowMs + this.#repeatMs;
    return taken.frame;
  }
}

/** Announces the digest of each generation as soon as the source has the generation. */
export function digestAnnouncer(requestId: number, geometry: Geometry, source: ChunkSource): Announcer<DigestFrame> {
  const frame = (first: number, end: number) => {
    const digests: Uint8Array[] = [];
    for (let hashed = 0; first + digests.length < end && hashed < DIGEST_HASHED_BYTES_MAX;) {
      if (digests.length === LIMITS.digestsPerFrameMax) break;
      const start = generationStart(geometry, first + digests.length);
      const bytes = generationBytes(geometry, first + digests.length);
      if (start + bytes > source.availableBytes) break;
      digests.push(source.digest!(start, start + bytes));
      hashed += bytes;
    }
    if (digests.length === 0) return undefined;
    const made: DigestFrame = { type: "digest", requestId, firstGeneration: first, digests };
    return { frame: made, count: digests.length };
  };
  return new Announcer({ count: geometry.generationCount, aheadMax: LIMITS.digestsAheadMax, urgentCount: 0, frame });
}

/** Announces the proofs of an object. The first piece's go out before data, so that they cost no round trip. */
export function proofAnnouncer(
  { requestId, range }: Pick<RequestFrame, "requestId" | "range">,
  source: ChunkSource,
): Announcer<ProofFrame> {
  const start = range?.start ?? 0;
  const parts: Uint8Array[] = [];
  for (let piece = Math.floor(start / PIECE_BYTES); piece * PIECE_BYTES < start + source.totalBytes; piece++)
    parts.push(source.proof!(piece));
  const proofs = joined(parts);
  const frame = (first: number, end: number) => {
    const count = Math.min(end - first, LIMITS.proofDigestsPerFrameMax);
    const digests = proofs.subarray(first * DIGEST_BYTES, (first + count) * DIGEST_BYTES);
    const made: ProofFrame = { type: "proof", requestId, firstDigest: first, digests };
    return { frame: made, count };
  };
  const count = proofs.length / DIGEST_BYTES;
  return new Announcer({ count, aheadMax: LIMITS.proofDigestsAheadMax, urgentCount: PROOF_DIGESTS_URGENT, frame });
}
