/**
 * DigestAnnouncer: tells the client the digests of the generations that the proxy holds, in order, until the client has
 * confirmed them. It decides which digests go out next and when they are repeated, and nothing about data.
 * Pure: time arrives as `nowMs`. Rules: protocol.md §9.1.
 */
import { generationBytes, generationStart, type Geometry } from "../geometry";
import { DIGEST_EVERY_PACKETS, DIGEST_HASHED_BYTES_MAX, LIMITS, TIMING } from "../limits";
import type { ChunkSource, DigestFrame } from "../types";

export class DigestAnnouncer {
  readonly #requestId: number;
  readonly #geometry: Geometry;
  readonly #source: ChunkSource;
  /** The next generation to announce. */
  #next = 0;
  /** The client has the digests of the generations below it. */
  #heard = 0;
  #packetsSince = DIGEST_EVERY_PACKETS;
  #repeatMs: number = TIMING.digestRepeatMs;
  /** Infinity while nothing waits to be confirmed. */
  #repeatDueMs = Infinity;

  constructor(requestId: number, geometry: Geometry, source: ChunkSource) {
    this.#requestId = requestId;
    this.#geometry = geometry;
    this.#source = source;
  }

  handleHeard(digestCount: number): void {
    if (digestCount <= this.#heard || digestCount > this.#geometry.generationCount) return;
    this.#heard = digestCount;
    this.#next = Math.max(this.#next, digestCount);
    this.#repeatMs = TIMING.digestRepeatMs;
    if (this.#heard >= this.#next) this.#repeatDueMs = Infinity;
  }

  /** The client asks for the plan again. If it had confirmed digests, it has forgotten them with the plan. */
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

  /** The next digests, if there are new ones. While there is data to send, they wait for their turn. */
  poll(hasData: boolean, nowMs: number): DigestFrame | undefined {
    if (hasData && this.#packetsSince < DIGEST_EVERY_PACKETS) return undefined;
    const firstGeneration = this.#next;
    const digests: Uint8Array[] = [];
    for (let hashed = 0; this.#hasNext() && hashed < DIGEST_HASHED_BYTES_MAX; this.#next++) {
      if (digests.length === LIMITS.digestsPerFrameMax) break;
      const start = generationStart(this.#geometry, this.#next);
      const bytes = generationBytes(this.#geometry, this.#next);
      digests.push(this.#source.digest!(start, start + bytes));
      hashed += bytes;
    }
    if (digests.length === 0) return undefined;
    this.#packetsSince = 0;
    if (this.#repeatDueMs === Infinity) this.#repeatDueMs = nowMs + this.#repeatMs;
    return { type: "digest", requestId: this.#requestId, firstGeneration, digests };
  }

  #hasNext(): boolean {
    const index = this.#next;
    if (index >= Math.min(this.#geometry.generationCount, this.#heard + LIMITS.digestsAheadMax)) return false;
    const end = generationStart(this.#geometry, index) + generationBytes(this.#geometry, index);
    return end <= this.#source.availableBytes;
  }
}
