/**
 * Assembly: the chunk as it fills, from each generation's first packet to its bytes in order. It knows no clock, no
 * frame order, and only the number of a proxy. A generation takes memory with its first packet and frees it once its
 * bytes are known.
 */
import type { Codec, Decoder } from "../codec";
import { generationBytes, symbolsIn, type Geometry } from "../geometry";
import { LIMITS } from "../limits";
import type { Coding, FeedbackFrame, MutpMode } from "../types";
import { OpenGeneration, type Packet, type Solver } from "./verification";

/** Tells whether a generation's bytes may be delivered. */
export interface ByteCheck {
  /** Whether `isTrue` can tell yet. */
  isKnown(index: number): boolean;
  /** `bytes` are those of generation `index` from `offset` on. */
  isTrue(index: number, bytes: Uint8Array, offset?: number): boolean;
  /** So many bytes of a generation can be checked alone. Undefined: only whole generations can. */
  readonly partBytes?: number;
}

/**
 * Once this many bytes of an incomplete generation can be read, they are delivered. The chunk's first bytes are
 * delivered at once. Players measure the rate of a link by them, and some begin with the first byte.
 */
const READABLE_BYTES_MIN = 32 * 1024;

/** A false packet, and the true bytes of its generation. */
export interface FalsePacket extends Packet {
  generationIndex: number;
  bytes: Uint8Array;
}

class UncodedSolver implements Solver {
  rank = 0;
  readonly #symbols: Uint8Array;
  readonly #have: Uint8Array;

  readonly #symbolBytes: number;

  constructor(symbolCount: number, symbolBytes: number) {
    this.#symbolBytes = symbolBytes;

    this.#symbols = new Uint8Array(symbolCount * symbolBytes);
    this.#have = new Uint8Array(symbolCount);
  }

  add(coding: Coding, payload: Uint8Array): boolean {
    if (coding.kind !== "systematic" || this.#have[coding.symbolIndex]) return false;
    this.#symbols.set(payload, coding.symbolIndex * this.#symbolBytes);
    this.#have[coding.symbolIndex] = 1;
    this.rank++;
    return true;
  }
  has(symbolIndex: number): boolean {
    return this.#have[symbolIndex] === 1;
  }
  read(firstIndex: number, count: number): Uint8Array {
    return this.#symbols.slice(firstIndex * this.#symbolBytes, (firstIndex + count) * this.#symbolBytes);
  }
  free(): void {}
}

class CodedSolver implements Solver {
  readonly #decoder: Decoder;

  constructor(codec: Codec, symbolCount: number, symbolBytes: number) {
    this.#decoder = codec.createDecoder(symbolCount, symbolBytes);
  }

  get rank(): number {
    return this.#decoder.rank;
  }
  add(coding: Coding, payload: Uint8Array): boolean {
    if (coding.kind === "systematic") return this.#decoder.addSystematic(coding.symbolIndex, payload);
    if (coding.kind === "seed") return this.#decoder.addSeeded(coding.seed, payload);
    return this.#decoder.addVector(coding.coefficients, payload);
  }
  has(symbolIndex: number): boolean {
    return this.#decoder.isDecoded(symbolIndex);
  }
  read(firstIndex: number, count: number): Uint8Array {
    const symbols = new Uint8Array(count * this.#decoder.symbolBytes);
    this.#decoder.read(firstIndex, count, symbols);
    return symbols;
  }
  free(): void {
    this.#decoder.free();
  }
}

export class Assembly {
  /** Degrees of freedom of the whole chunk, 0..symbolCount. */
  rank = 0;
  deliveredBytes = 0;
  /** Grows whenever something reported stops being true: protocol.md §9.5. */
  epoch = 0;
  /** Proxies that are proven to have sent false packets, each with the generation that proved it, until `exclude`. */
  readonly liars = new Map<number, number>();
  /** One of each proxy that sent one, until someone takes it. */
  readonly falsePackets: FalsePacket[] = [];
  readonly #shown = new Set<number>();
  /** Generations whose bytes turned out false. Each proxy must send every packet of them alone. */
  readonly disputed = new Set<number>();
  readonly #generations = new Map<number, OpenGeneration>();
  /** Bytes still to deliver of complete generations that wait for earlier ones. */
  readonly #complete = new Map<number, Uint8Array>();
  readonly #degrees: Uint8Array;
  #nextGeneration = 0;
  #firstOpen = 0;
  /** The highest symbol (uncoded) or generation (coded) seen. */
  #highest = -1;

  readonly #geometry: Geometry;
  readonly #mode: MutpMode;
  readonly #codec: Codec;
  readonly #check: ByteCheck | undefined;

  constructor(geometry: Geometry, mode: MutpMode, codec: Codec, check?: ByteCheck) {
    this.#geometry = geometry;
    this.#mode = mode;
    this.#codec = codec;
    this.#check = check;

    this.#degrees = new Uint8Array(geometry.generationCount);
  }

  get isComplete(): boolean {
    return this.#firstOpen === this.#geometry.generationCount;
  }

  /** True when a packet like this can be part of the chunk in this mode. */
  accepts(generationIndex: number, coding: Coding, payloadBytes: number): boolean {
    const geometry = this.#geometry;
    if (generationIndex >= geometry.generationCount || payloadBytes !== geometry.symbolBytes) return false;
    const symbolCount = symbolsIn(geometry, generationIndex);
    if (coding.kind === "systematic") return coding.symbolIndex < symbolCount;
    if (this.#mode === "uncoded-mutp") return false;
    return coding.kind === "seed" || coding.coefficients.length === symbolCount;
  }

  /** Adds an accepted packet. Returns true when it was innovative. */
  add(proxyIndex: number, generationIndex: number, coding: Coding, payload: Uint8Array): boolean {
    if (this.missing(generationIndex) === 0 && !this.isDisputed(generationIndex)) return false;
    const generation = this.#generationOf(generationIndex);
    if (!generation.add(proxyIndex, coding, payload)) return false;
    const symbol = coding.kind === "systematic" ? coding.symbolIndex : 0;
    this.#highest = Math.max(
      this.#highest,
      this.#mode === "uncoded-mutp" ? generationIndex * this.#geometry.generationSize + symbol : generationIndex,
    );
    this.#note(generationIndex, generation);
    return true;
  }

  /** Forgets this proxy's packets that are not verified. Returns how many innovative packets those were. */
  exclude(proxyIndex: number): number {
    let dropped = 0;
    for (const [index, generation] of this.#generations) {
      dropped += generation.exclude(proxyIndex);
      this.#note(index, generation);
    }
    this.liars.delete(proxyIndex);
    return dropped;
  }

  /** The digest of generation `index` has become known. */
  recheck(index: number): void {
    const generation = this.#generations.get(index);
    if (!generation) return;
    generation.recheck();
    this.#note(index, generation);
  }

  /** All symbols of generation `index` are known, or can be computed. */
  isSolved(index: number): boolean {
    return index < this.#geometry.generationCount && this.#degrees[index] === symbolsIn(this.#geometry, index);
  }

  /** All generations below it are complete. */
  get base(): number {
    return this.#firstOpen;
  }

  /** Degrees of freedom that generation `index` still needs from any proxy; 0 while it is disputed. */
  missing(index: number): number {
    return this.isDisputed(index) ? 0 : symbolsIn(this.#geometry, index) - this.#degrees[index]!;
  }

  isDisputed(index: number): boolean {
    return this.disputed.size > 0 && this.disputed.has(index);
  }

  /**
   * Degrees of freedom that generation `index` needs from this proxy. `alone`: if the generation is disputed, only this
   * proxy's own packets count.
   */
  missingFrom(proxyIndex: number, index: number, alone = true): number {
    const generation = this.#generations.get(index);
    if (!generation?.disputed) return this.missing(index);
    return alone
      ? symbolsIn(this.#geometry, index) - generation.rankFor(proxyIndex)
      : generation.neededFrom(proxyIndex);
  }

  /** The next bytes in order: the rest of a complete generation, or readable symbols of an incomplete one. */
  takeBytes(): { offset: number; bytes: Uint8Array } | undefined {
    const bytes = this.#takeRest() ?? this.#takeReadable();
    if (!bytes) return undefined;
    const offset = this.deliveredBytes;
    this.deliveredBytes += bytes.length;
    return { offset, bytes };
  }

  /** The content of a cumulative feedback to this proxy: protocol.md §4.7 and §9.5. */
  report(proxyIndex: number): Pick<FeedbackFrame, "base" | "received"> {
    return this.#mode === "uncoded-mutp" ? this.#reportSymbols(proxyIndex) : this.#reportDegrees(proxyIndex);
  }

  free(): void {
    for (const generation of this.#generations.values()) generation.free();
    this.#generations.clear();
    this.#complete.clear();
  }

  #takeRest(): Uint8Array | undefined {
    const bytes = this.#complete.get(this.#nextGeneration);
    if (bytes) this.#complete.delete(this.#nextGeneration++);
    return bytes;
  }

  #takeReadable(): Uint8Array | undefined {
    const leastCount = this.deliveredBytes === 0 ? 1 : Math.ceil(READABLE_BYTES_MIN / this.#geometry.symbolBytes);
    return this.#generations.get(this.#nextGeneration)?.takeReadable(leastCount);
  }

  #reportDegrees(proxyIndex: number): Pick<FeedbackFrame, "base" | "received"> {
    const base = this.#firstOpen;
    const count = Math.max(0, Math.min(this.#highest + 1 - base, LIMITS.feedbackEntriesMax));
    const counts = this.#degrees.slice(base, base + count);
    for (const index of this.disputed) {
      if (index - base < count) counts[index - base] = this.#generations.get(index)!.rankFor(proxyIndex);
    }
    return { base, received: { kind: "degreesOfFreedom", counts } };
  }

  #reportSymbols(proxyIndex: number): Pick<FeedbackFrame, "base" | "received"> {
    let base = Math.min(this.#firstOpen * this.#geometry.generationSize, this.#geometry.symbolCount);
    while (base < this.#geometry.symbolCount && this.#hasFor(proxyIndex, base)) base++;
    const count = Math.max(0, Math.min(this.#highest + 1 - base, LIMITS.feedbackEntriesMax));
    const bitmap = new Uint8Array(Math.ceil(count / 8));
    for (let i = 0; i < count; i++) {
      if (this.#hasFor(proxyIndex, base + i)) bitmap[i >> 3]! |= 1 << (i & 7);
    }
    return { base, received: { kind: "symbols", count, bitmap } };
  }

  #hasFor(proxyIndex: number, symbol: number): boolean {
    const { generationSize } = this.#geometry;
    const index = Math.floor(symbol / generationSize);
    const generation = this.#generations.get(index);
    return generation ? generation.hasFor(proxyIndex, symbol % generationSize) : this.#degrees[index]! > 0;
  }

  #generationOf(index: number): OpenGeneration {
    const known = this.#generations.get(index);
    if (known) return known;
    const geometry = this.#geometry;
    const codec = this.#codec;
    const check = this.#check;
    const { symbolBytes } = geometry;
    const symbolCount = symbolsIn(geometry, index);
    const uncoded = this.#mode === "uncoded-mutp";
    const made = new OpenGeneration({
      codec,
      symbolCount,
      symbolBytes,
      byteCount: generationBytes(geometry, index),
      makeSolver: () =>
        uncoded ? new UncodedSolver(symbolCount, symbolBytes) : new CodedSolver(codec, symbolCount, symbolBytes),
      isTrue: check && ((bytes, offset) => check.isTrue(index, bytes, offset)),
      partBytes: check?.partBytes,
      ...(check && { isKnown: () => check.isKnown(index) }),
    });
    this.#generations.set(index, made);
    return made;
  }

  #note(index: number, generation: OpenGeneration): void {
    const geometry = this.#geometry;
    const degrees = generation.bytes ? symbolsIn(geometry, index) : generation.rank;
    this.rank += degrees - this.#degrees[index]!;
    this.#degrees[index] = degrees;
    this.epoch += generation.takenBack;
    generation.takenBack = 0;
    for (const proxyIndex of generation.liars) this.liars.set(proxyIndex, index);
    if (generation.disputed && !generation.bytes) this.disputed.add(index);
    else this.disputed.delete(index);
    if (!generation.bytes) return;
    for (const packet of generation.falsePackets) this.#show(packet, index, generation.checkedBytes!);
    generation.free();
    this.#generations.delete(index);
    this.#complete.set(index, generation.bytes);
    while (this.#firstOpen < geometry.generationCount && this.#isClosed(this.#firstOpen)) this.#firstOpen++;
  }

  #show(packet: Packet, generationIndex: number, bytes: Uint8Array): void {
    if (this.#shown.has(packet.proxyIndex)) return;
    this.#shown.add(packet.proxyIndex);
    this.falsePackets.push({ ...packet, generationIndex, bytes });
  }

  #isClosed(index: number): boolean {
    return this.#degrees[index] === symbolsIn(this.#geometry, index) && !this.#generations.has(index);
  }
}
