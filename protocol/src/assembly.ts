/**
 * The chunk as it fills: generations from their first packet to their bytes in order. Knows no proxy, clock or
 * frame order. A generation's memory is taken with its first packet and given back once its bytes are handed on.
 */
import type { Codec, Decoder } from "./codec";
import { generationBytes, symbolsIn, type Geometry } from "./geometry";
import { LIMITS } from "./limits";
import type { Coding, FeedbackFrame, MutpMode } from "./types";

interface Generation {
  readonly rank: number;
  add(coding: Coding, payload: Uint8Array): boolean;
  read(out: Uint8Array): void;
  free(): void;
}

class UncodedGeneration implements Generation {
  rank = 0;
  private readonly symbols: Uint8Array;
  private readonly have: Uint8Array;

  constructor(
    symbolCount: number,
    private readonly symbolBytes: number,
  ) {
    this.symbols = new Uint8Array(symbolCount * symbolBytes);
    this.have = new Uint8Array(symbolCount);
  }

  add(coding: Coding, payload: Uint8Array): boolean {
    if (coding.kind !== "systematic" || this.have[coding.symbolIndex]) return false;
    this.symbols.set(payload, coding.symbolIndex * this.symbolBytes);
    this.have[coding.symbolIndex] = 1;
    this.rank++;
    return true;
  }
  read(out: Uint8Array): void {
    out.set(this.symbols.subarray(0, out.length));
  }
  free(): void {}
}

class CodedGeneration implements Generation {
  private readonly decoder: Decoder;

  constructor(codec: Codec, symbolCount: number, symbolBytes: number) {
    this.decoder = codec.createDecoder(symbolCount, symbolBytes);
  }

  get rank(): number {
    return this.decoder.rank;
  }
  add(coding: Coding, payload: Uint8Array): boolean {
    if (coding.kind === "systematic") return this.decoder.addSystematic(coding.symbolIndex, payload);
    if (coding.kind === "seed") return this.decoder.addSeeded(coding.seed, payload);
    return this.decoder.addVector(coding.coefficients, payload);
  }
  read(out: Uint8Array): void {
    const { symbolCount, symbolBytes } = this.decoder;
    const whole = new Uint8Array(symbolCount * symbolBytes);
    this.decoder.read(0, symbolCount, whole);
    out.set(whole.subarray(0, out.length));
  }
  free(): void {
    this.decoder.free();
  }
}

export class Assembly {
  /** Degrees of freedom of the whole chunk, 0..symbolCount. */
  rank = 0;
  deliveredBytes = 0;
  private readonly generations = new Map<number, Generation>();
  /** Complete generations whose turn has not come. */
  private readonly complete = new Map<number, Uint8Array>();
  private readonly degrees: Uint8Array;
  /** Uncoded only: which symbols have come. */
  private readonly have: Uint8Array;
  private nextGeneration = 0;
  private firstMissing = 0;
  private highest = -1;

  constructor(
    private readonly geometry: Geometry,
    private readonly mode: MutpMode,
    private readonly codec: Codec,
  ) {
    this.degrees = new Uint8Array(geometry.generationCount);
    this.have = new Uint8Array(mode === "uncoded-mutp" ? geometry.symbolCount : 0);
  }

  get isComplete(): boolean {
    return this.rank === this.geometry.symbolCount;
  }

  /** True when such a packet can be part of this chunk in this mode. */
  accepts(generationIndex: number, coding: Coding, payloadBytes: number): boolean {
    const { geometry } = this;
    if (generationIndex >= geometry.generationCount || payloadBytes !== geometry.symbolBytes) return false;
    const symbolCount = symbolsIn(geometry, generationIndex);
    if (coding.kind === "systematic") return coding.symbolIndex < symbolCount;
    if (this.mode === "uncoded-mutp") return false;
    return coding.kind === "seed" || coding.coefficients.length === symbolCount;
  }

  /** Adds an accepted packet; true when it was innovative. */
  add(generationIndex: number, coding: Coding, payload: Uint8Array): boolean {
    const symbolCount = symbolsIn(this.geometry, generationIndex);
    if (this.degrees[generationIndex] === symbolCount) return false;
    const generation = this.generationOf(generationIndex, symbolCount);
    if (!generation.add(coding, payload)) return false;
    this.rank++;
    this.degrees[generationIndex] = generation.rank;
    this.noteProgress(generationIndex, coding);
    if (generation.rank === symbolCount) {
      const bytes = new Uint8Array(generationBytes(this.geometry, generationIndex));
      generation.read(bytes);
      generation.free();
      this.generations.delete(generationIndex);
      this.complete.set(generationIndex, bytes);
    }
    return true;
  }

  /** Generations below it are complete. */
  get base(): number {
    return this.firstMissing;
  }

  /** Degrees of freedom that generation `index` still needs. */
  missing(index: number): number {
    return symbolsIn(this.geometry, index) - this.degrees[index]!;
  }

  /** The next bytes in order, a generation at a time. */
  takeBytes(): { offset: number; bytes: Uint8Array } | undefined {
    const bytes = this.complete.get(this.nextGeneration);
    if (!bytes) return undefined;
    this.complete.delete(this.nextGeneration++);
    const offset = this.deliveredBytes;
    this.deliveredBytes += bytes.length;
    return { offset, bytes };
  }

  /** What a cumulative feedback says: protocol.md §4.7. */
  report(): Pick<FeedbackFrame, "base" | "received"> {
    const base = this.firstMissing;
    const count = Math.max(0, Math.min(this.highest + 1 - base, LIMITS.feedbackEntriesMax));
    if (this.mode !== "uncoded-mutp") {
      return { base, received: { kind: "degreesOfFreedom", counts: this.degrees.subarray(base, base + count) } };
    }
    const bitmap = new Uint8Array(Math.ceil(count / 8));
    for (let i = 0; i < count; i++) {
      if (this.have[base + i]) bitmap[i >> 3]! |= 1 << (i & 7);
    }
    return { base, received: { kind: "symbols", count, bitmap } };
  }

  free(): void {
    for (const generation of this.generations.values()) generation.free();
    this.generations.clear();
    this.complete.clear();
  }

  private generationOf(index: number, symbolCount: number): Generation {
    const known = this.generations.get(index);
    if (known) return known;
    const { symbolBytes } = this.geometry;
    const made =
      this.mode !== "uncoded-mutp"
        ? new CodedGeneration(this.codec, symbolCount, symbolBytes)
        : new UncodedGeneration(symbolCount, symbolBytes);
    this.generations.set(index, made);
    return made;
  }

  private noteProgress(generationIndex: number, coding: Coding): void {
    const { geometry } = this;
    if (this.mode !== "uncoded-mutp") {
      this.highest = Math.max(this.highest, generationIndex);
      while (this.firstMissing < geometry.generationCount && this.degrees[this.firstMissing] === symbolsIn(geometry, this.firstMissing)) {
        this.firstMissing++;
      }
      return;
    }
    if (coding.kind !== "systematic") return;
    const symbol = generationIndex * geometry.generationSize + coding.symbolIndex;
    this.have[symbol] = 1;
    this.highest = Math.max(this.highest, symbol);
    while (this.firstMissing < geometry.symbolCount && this.have[this.firstMissing]) this.firstMissing++;
  }
}
