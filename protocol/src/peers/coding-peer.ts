/**
 * A peer that recodes: it sends random combinations of the blocks that it holds, with their vectors on the source
 * blocks. Density, aggressiveness and the check on arrival are those of Wang, Li 2006, section II-B. The check `ahead`
 * is our own: the vector travels first, and its block follows only if the neighbour needs it.
 */
import type { Codec, Decoder, Encoder } from "../codec";
import { below } from "../rng";
import { Outbox } from "./outbox";
import type { Block, Control, Peer, PeerOptions } from "./peer";

/**
 * What is done about dependent blocks. `off`: the first `blockCount` blocks count, whatever they are. `arrival`: a
 * dependent block is thrown away. `ahead`: a dependent block is not sent.
 */
export const DEPENDENCE_CHECKS = ["off", "arrival", "ahead"] as const;
export type DependenceCheck = (typeof DEPENDENCE_CHECKS)[number];

export interface CodingOptions extends PeerOptions {
  codec: Codec;
  /** A coded block combines this share of the source blocks, at most all that are held; in (0, 1]. */
  density: number;
  /** A peer serves when it holds this share of the blocks; in (0, 1]. */
  aggressiveness: number;
  check: DependenceCheck;
}

/** Accepted offers of a neighbour that are not sent yet. While a block is on its way, the next one is agreed on. */
const ACCEPTED_MAX = 1;
/** Blocks that a neighbour may have promised and not sent: one on its way, those agreed on, and messages that cross. */
const PROMISED_MAX = 4;
/** A peer has up to this share of the blocks sent twice at the end, because the first way turns out to be slow. */
const TWICE_SHARE = 0.2;

/** A combination: multipliers of the held rows, and the vector that they make. */
interface Combination {
  readonly multipliers: Uint8Array;
  readonly vector: Uint8Array;
  readonly terms: number;
}

interface Downstream {
  offered: Combination | undefined;
  readonly accepted: Combination[];
  /** The rank at which it needed nothing of ours. */
  refusedAt: number;
  isDone: boolean;
  /** Its last answer was a refusal. */
  isSparseRefused: boolean;
}

export class CodingPeer implements Peer {
  readonly counts = { received: 0, innovative: 0 };
  readonly #options: CodingOptions;
  readonly #outbox = new Outbox();
  readonly #decoder: Decoder;
  /** The vectors of the rows that are held, and the same rows with their payloads behind them. */
  readonly #vectors: Encoder;
  readonly #rows: Encoder;
  readonly #held: Uint8Array[] = [];
  readonly #downstream = new Map<number, Downstream>();
  /** What is held and what is promised: vectors only. */
  #promised: Decoder;
  /** By upstream neighbour, the oldest first. */
  #promises: { from: number; vector: Uint8Array }[] = [];
  /** Upstream neighbours whose last offer was not needed. */
  readonly #waiting = new Set<number>();
  /** Upstream neighbours that had promised so much that their last offer was not looked at. */
  readonly #postponed = new Set<number>();
  #twice = 0;

  constructor(options: CodingOptions) {
    const { codec, blockCount, blockBytes, source, downstream } = options;
    this.#options = options;
    this.#decoder = codec.createDecoder(blockCount, blockBytes);
    this.#vectors = codec.createEncoder(blockCount, blockCount);
    this.#rows = codec.createEncoder(blockCount, blockBytes);
    this.#promised = codec.createDecoder(blockCount, 1);
    for (const to of downstream)
      this.#downstream.set(to, {
        offered: undefined,
        accepted: [],
        refusedAt: -1,
        isDone: false,
        isSparseRefused: false,
      });
    for (let index = 0; source && index < blockCount; index++) {
      const vector = new Uint8Array(blockCount);
      vector[index] = 1;
      const payload = source.subarray(index * blockBytes, (index + 1) * blockBytes);
      this.#decoder.addSystematic(index, payload);
      this.#hold(vector, payload);
    }
  }

  get isComplete(): boolean {
    return this.#decoder.rank === this.#options.blockCount;
  }

  start(): void {
    if (this.#options.check === "ahead") this.#offerAll();
  }

  handleControl(from: number, control: Control): void {
    if (control.kind === "offer") return this.#handleOffer(from, control.vector);
    const neighbour = this.#downstream.get(from);
    if (!neighbour) return;
    if (control.kind === "done") neighbour.isDone = true;
    if (control.kind === "ask") neighbour.refusedAt = -1;
    if (control.kind === "accept" && neighbour.offered) neighbour.accepted.push(neighbour.offered);
    if (control.kind === "refuse" && neighbour.offered) {
      // A combination of all that is held is of no use only if all of it is. One of a few rows says less.
      if (neighbour.offered.terms === this.#held.length) neighbour.refusedAt = this.#held.length;
      neighbour.isSparseRefused = true;
    } else neighbour.isSparseRefused = false;
    if (control.kind === "accept" || control.kind === "refuse") neighbour.offered = undefined;
    this.#offer(from, neighbour);
  }

  handleBlock(from: number, { vector, payload }: Block): void {
    this.counts.received++;
    const { check, blockCount, upstream } = this.#options;
    if (this.isComplete || vector?.length !== blockCount) return;
    const at = this.#promises.findIndex((promise) => promise.from === from && isSame(promise.vector, vector));
    if (at >= 0) this.#promises.splice(at, 1);
    if (this.#postponed.delete(from)) this.#outbox.tell(from, { kind: "ask" });
    const isInnovative = this.#decoder.addVector(vector, payload);
    if (isInnovative) this.counts.innovative++;
    const hasRoom = this.#held.length < blockCount;
    if (hasRoom && (isInnovative || check === "off")) this.#hold(vector, payload);
    if (this.isComplete) this.#outbox.tellAll(upstream, { kind: "done" });
    if (check !== "ahead") return;
    if (isInnovative) this.#offerAll();
    if (!this.isComplete) this.#askAgain();
  }

  handleGone(neighbour: number): void {
    this.#downstream.delete(neighbour);
    this.#waiting.delete(neighbour);
    this.#postponed.delete(neighbour);
    // Also when none of its promises counts any more: what does not count was still to come.
    this.#keepPromises(this.#promises.filter((promise) => promise.from !== neighbour));
    this.#outbox.tellAll(this.#waiting, { kind: "ask" });
    this.#waiting.clear();
  }

  pollControl(): ReturnType<Peer["pollControl"]> {
    return this.#outbox.poll();
  }

  nextBlock(to: number): Block | undefined {
    const neighbour = this.#downstream.get(to);
    if (!neighbour || neighbour.isDone) return undefined;
    if (this.#options.check !== "ahead") return this.#isServing ? this.#blockOf(this.#combine()) : undefined;
    const combination = neighbour.accepted.shift();
    this.#offer(to, neighbour);
    return combination && this.#blockOf(combination);
  }

  isWanted(to: number): boolean {
    return this.#downstream.get(to)?.isDone === false;
  }

  content(): Uint8Array {
    const { blockCount, blockBytes } = this.#options;
    const whole = new Uint8Array(blockCount * blockBytes);
    this.#decoder.read(0, blockCount, whole);
    return whole;
  }

  free(): void {
    for (const coder of [this.#decoder, this.#vectors, this.#rows, this.#promised]) coder.free();
  }

  get #isServing(): boolean {
    const { aggressiveness, blockCount } = this.#options;
    return this.#held.length >= Math.max(1, Math.ceil(aggressiveness * blockCount));
  }

  #hold(vector: Uint8Array, payload: Uint8Array): void {
    this.#vectors.setSymbols(this.#held.length, vector);
    this.#rows.setSymbols(this.#held.length, payload);
    this.#held.push(vector);
  }

  /** A random combination of as many held rows as the density says. */
  #combine(density = this.#options.density): Combination {
    const { blockCount, rng } = this.#options;
    const terms = Math.min(this.#held.length, Math.max(1, Math.round(density * blockCount)));
    const places = Array.from(this.#held.keys());
    const multipliers = new Uint8Array(blockCount);
    for (let term = 0; term < terms; term++) {
      const at = term + below(rng, places.length - term);
      [places[term], places[at]] = [places[at]!, places[term]!];
      multipliers[places[term]!] = 1 + below(rng, 255);
    }
    const vector = new Uint8Array(blockCount);
    this.#vectors.encodeVector(multipliers, vector);
    return { multipliers, vector, terms };
  }

  #blockOf({ multipliers, vector, terms }: Combination): Block {
    const payload = new Uint8Array(this.#options.blockBytes);
    this.#rows.encodeVector(multipliers, payload);
    return { vector, payload, codedBytes: terms * payload.length };
  }

  #offerAll(): void {
    for (const [to, neighbour] of this.#downstream) this.#offer(to, neighbour);
  }

  /** Offers a neighbour the next block, if it may need one. */
  #offer(to: number, neighbour: Downstream): void {
    const { offered, accepted, refusedAt, isDone } = neighbour;
    if (this.#options.check !== "ahead" || !this.#isServing) return;
    if (offered || isDone || accepted.length >= ACCEPTED_MAX || refusedAt >= this.#held.length) return;
    neighbour.offered = this.#combine(neighbour.isSparseRefused ? 1 : this.#options.density);
    this.#outbox.tell(to, { kind: "offer", vector: neighbour.offered.vector });
  }

  #handleOffer(from: number, vector: Uint8Array): void {
    const { blockCount, upstream } = this.#options;
    if (vector.length !== blockCount || !upstream.includes(from)) return;
    if (this.#promises.filter((promise) => promise.from === from).length >= PROMISED_MAX) {
      this.#postponed.add(from);
      return this.#outbox.tell(from, { kind: "refuse" });
    }
    const isNeeded = !this.isComplete && this.#promised.addVector(vector, NOTHING);
    if (isNeeded) {
      this.#promises.push({ from, vector });
      this.#waiting.delete(from);
    } else this.#waiting.add(from);
    this.#outbox.tell(from, { kind: isNeeded ? "accept" : "refuse" });
    this.#askAgain();
  }

  /**
   * All that is missing is promised, and neighbours are idle. So the promise that has been open the longest is not
   * counted any more, and an idle neighbour may bring something in its place.
   */
  #askAgain(): void {
    const { blockCount } = this.#options;
    const oldest = this.#promises[0];
    if (this.#promised.rank < blockCount || !oldest || this.#twice >= TWICE_SHARE * blockCount) return;
    const idle = [...this.#waiting].find((from) => !this.#promises.some((promise) => promise.from === from));
    if (idle === undefined) return;
    this.#twice++;
    this.#keepPromises(this.#promises.slice(1));
    this.#waiting.delete(idle);
    this.#outbox.tell(idle, { kind: "ask" });
  }

  /** Counts these promises and no others. */
  #keepPromises(promises: { from: number; vector: Uint8Array }[]): void {
    const { blockCount, codec } = this.#options;
    this.#promises = promises;
    this.#promised.free();
    this.#promised = codec.createDecoder(blockCount, 1);
    for (const vector of [...this.#held, ...promises.map((promise) => promise.vector)])
      this.#promised.addVector(vector, NOTHING);
  }
}

const isSame = (a: Uint8Array, b: Uint8Array): boolean => a.every((value, index) => value === b[index]);

/** The payload of a decoder that only counts. */
const NOTHING = new Uint8Array(1);
