/**
 * SymbolRings: coded symbols that all senders share. A symbol of a generation is coded once and goes to every viewer
 * that asks for one and has not had it, so coding grows with the content in demand and not with the viewers. A batch is
 * made on the event loop or by the coder service, whichever costs the loop less (costs.ts). Memory is bounded: the
 * least recently used generations leave first. Rule: protocol.md §5.3; ADR 0007.
 */
import { SharedBuffers, type CoderService } from "@tributary/native-codec";
import { generationBytes, generationStart, symbolsIn } from "@tributary/protocol";
import type { ChunkSource, Codec, CodedSymbol, Encoder, Geometry, Rng, SymbolSupply } from "@tributary/protocol";
import type { Costs } from "./costs";
import { CURSOR_BYTES, Ring, type Cursor } from "./ring";

/** Coding on the loop has no queue, so it has only these stages. */
export type RingStage = "input" | "coding" | "sending";

export interface SymbolRingsOptions {
  codec: Codec;
  rng: Rng;
  costs: Costs;
  bytesMax: number;
  nowMs?: () => number;
  onStage?: (stage: RingStage, ms: number) => void;
}

/** The encoder makes so many symbols in one pass. */
const PASS_SYMBOLS = 16;
/** The most symbols of one task. */
const TASK_SYMBOLS_MAX = 128;
/** When fewer symbols than this are ready for a viewer that will ask for more, they are ordered. */
const READY_MIN = 16;
/** A batch that nobody waits for yet may take this long. */
const AHEAD_MS = 100;
/** Unused buffers that are kept. */
const KEPT_BYTES_MAX = 4 * 1024 * 1024;
/** What a generation takes in memory besides its bytes: 5.5 KB were measured. */
const GENERATION_BYTES = 6 * 1024;

/** A generation with its encoder and its ring. */
interface Generation {
  readonly key: string;
  readonly encoder: Encoder;
  readonly ring: Ring;
  /** What it counts in `bytes`. */
  bytes: number;
  /** The batch at the service; aborting it gives the batch up. */
  task: AbortController | undefined;
  /** Called when a batch is there. */
  readonly waiting: Set<() => void>;
  isGone: boolean;
  /** The service refused the last batch. */
  wasRefused: boolean;
}

export class SymbolRings {
  /** Symbols that were coded on the loop and by the service, and those that went to viewers. */
  readonly counts = { inlineSymbols: 0, serviceSymbols: 0, sentSymbols: 0, evictedGenerations: 0 };
  /** The least recently used one first. */
  readonly #generations = new Map<string, Generation>();
  readonly #names = new WeakMap<ChunkSource, string>();
  #nameCount = 0;
  #bytes = 0;
  /** The bytes of the generations with a batch at the service. They do not leave. */
  #taskBytes = 0;
  #bytesMax: number;
  readonly #buffers = new SharedBuffers(KEPT_BYTES_MAX);
  readonly #nowMs: () => number;
  /** Undefined: everything is made on the event loop. */
  #service: CoderService | undefined;
  readonly #options: SymbolRingsOptions;

  constructor(options: SymbolRingsOptions) {
    this.#options = options;
    this.#bytesMax = options.bytesMax;
    this.#nowMs = options.nowMs ?? (() => performance.now());
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Generations beyond the new limit leave at once, also while they are coded. */
  setLimit(bytesMax: number): void {
    this.#bytesMax = bytesMax;
    this.#shrink(0, true);
  }

  /** From now on, batches may go to the service. */
  setService(service: CoderService): void {
    this.#service = service;
    if (service.memory) this.#buffers.useFirst(service.memory);
  }

  close(): void {
    this.setLimit(0);
  }

  /** Symbols for the viewer. `onReady` is called when a symbol that was being made may be there. */
  supplyFor(viewer: number, geometry: Geometry, source: ChunkSource, onReady: () => void): SymbolSupply {
    let [index, generation, cursor] = [-1, undefined as Generation | undefined, undefined as Cursor | undefined];
    return {
      next: (generationIndex, following) => {
        if (index !== generationIndex || generation!.isGone || cursor!.isGone) {
          index = generationIndex;
          generation = this.#generationOf(source, geometry, index);
          cursor = this.#cursorOf(generation, viewer);
        }
        return this.#next(generation!, cursor!, following, onReady);
      },
    };
  }

  #next(
    generation: Generation,
    cursor: Cursor,
    following: (limit: number) => number,
    onReady: () => void,
  ): CodedSymbol | undefined {
    const { ring } = generation;
    let ready = ring.readyFor(cursor);
    if ((ready === 0 || (this.#service && ready < READY_MIN)) && !generation.task) {
      this.#extend(generation, ready, following);
      ready = ring.readyFor(cursor);
    }
    if (ready === 0) {
      generation.waiting.add(onReady);
      return undefined;
    }
    const sent = ring.noteSent(cursor.position);
    if (sent) this.#options.onStage?.("sending", this.#nowMs() - sent.madeMs);
    this.counts.sentSymbols++;
    return ring.take(cursor);
  }

  /**
   * Makes symbols if there are too few: those that the viewer will ask for, and as many as were made before, so that at
   * most half of all symbols are made for nobody.
   */
  #extend(generation: Generation, ready: number, following: (limit: number) => number): void {
    const { ring, encoder } = generation;
    const wanted = 1 + following(TASK_SYMBOLS_MAX - 1) - ready;
    if (wanted <= 0) return;
    const { symbolCount, symbolBytes } = encoder;
    const batch = Math.min(TASK_SYMBOLS_MAX, Math.max(wanted, ring.head, PASS_SYMBOLS));
    const mayHandOver = !generation.wasRefused && this.#taskBytes + generation.bytes <= this.#bytesMax / 2;
    generation.wasRefused = false;
    if (this.#service && mayHandOver && this.#options.costs.prefersService(batch * symbolCount * symbolBytes))
      void this.#handOver(generation, this.#service, batch, ready === 0);
    else if (ready === 0) this.#makeInline(generation, Math.min(PASS_SYMBOLS, Math.max(wanted, ring.head)));
  }

  #makeInline(generation: Generation, count: number): void {
    const { ring, encoder } = generation;
    const payloads = this.#buffers.take(count * encoder.symbolBytes);
    const startMs = this.#nowMs();
    encoder.encodeSeeds(ring.nextSeeds(count), payloads);
    const endMs = this.#nowMs();
    this.#options.costs.noteInline(payloads.length * encoder.symbolCount, endMs - startMs);
    this.#options.onStage?.("coding", endMs - startMs);
    this.counts.inlineSymbols += count;
    this.#count(generation, payloads.length);
    this.#add(generation, count, payloads);
  }

  async #handOver(generation: Generation, service: CoderService, count: number, isUrgent: boolean): Promise<void> {
    const { ring, encoder } = generation;
    const out = this.#buffers.take(count * encoder.symbolBytes);
    const task = (generation.task = new AbortController());
    const taskBytes = generation.bytes + out.length;
    this.#taskBytes += taskBytes;
    this.#count(generation, out.length);
    const deadlineMs = this.#nowMs() + (isUrgent ? 0 : AHEAD_MS);
    let isMade = false;
    try {
      await service.encode({ encoder, seeds: ring.nextSeeds(count), out, deadlineMs, signal: task.signal });
      isMade = !generation.isGone;
    } catch {
      // The batch was given up or refused. The next one is made on the loop.
      generation.wasRefused = true;
    }
    generation.task = undefined;
    this.#taskBytes -= taskBytes;
    if (isMade) {
      this.counts.serviceSymbols += count;
      this.#add(generation, count, out);
    } else {
      this.#buffers.give(out);
      if (generation.isGone) encoder.free();
      else this.#count(generation, -out.length);
    }
    this.#wake(generation);
  }

  #add(generation: Generation, count: number, payloads: Uint8Array): void {
    for (const block of generation.ring.add(count, payloads, this.#nowMs())) {
      this.#count(generation, -block.payloads.length);
      this.#buffers.give(block.payloads);
    }
    this.#shrink(0, false, generation);
  }

  #wake({ waiting }: Generation): void {
    const woken = [...waiting];
    waiting.clear();
    for (const wake of woken) wake();
  }

  #generationOf(source: ChunkSource, geometry: Geometry, index: number): Generation {
    const { symbolBytes, generationSize } = geometry;
    const key = `${this.#nameOf(source)} ${symbolBytes} ${generationSize} ${index}`;
    const known = this.#generations.get(key);
    if (known) this.#generations.delete(key);
    const generation = known ?? this.#make(key, source, geometry, index);
    this.#generations.set(key, generation);
    return generation;
  }

  #make(key: string, source: ChunkSource, geometry: Geometry, index: number): Generation {
    const symbolCount = symbolsIn(geometry, index);
    const { symbolBytes } = geometry;
    const bytes = symbolCount * symbolBytes + GENERATION_BYTES;
    this.#shrink(bytes, false);
    const startMs = this.#nowMs();
    const encoder = this.#options.codec.createEncoder(symbolCount, symbolBytes);
    const start = generationStart(geometry, index);
    encoder.setSymbols(0, source.view(start, start + generationBytes(geometry, index)));
    this.#options.onStage?.("input", this.#nowMs() - startMs);
    const ring = new Ring(symbolCount, symbolBytes, this.#options.rng());
    this.#bytes += bytes;
    const state = { task: undefined, waiting: new Set<() => void>(), isGone: false, wasRefused: false };
    return { key, encoder, ring, bytes, ...state };
  }

  #cursorOf(generation: Generation, viewer: number): Cursor {
    const before = generation.ring.viewers;
    const cursor = generation.ring.cursorOf(viewer);
    this.#count(generation, (generation.ring.viewers - before) * CURSOR_BYTES);
    return cursor;
  }

  /** A generation that is gone counts nothing. */
  #count(generation: Generation, bytes: number): void {
    if (generation.isGone) return;
    generation.bytes += bytes;
    this.#bytes += bytes;
  }

  /** Makes room for `byteCount` bytes. Generations that are being coded stay, unless it is `forced`. */
  #shrink(byteCount: number, forced: boolean, current?: Generation): void {
    for (const generation of this.#generations.values()) {
      if (this.#bytes + byteCount <= this.#bytesMax) return;
      if (generation !== current && (forced || !generation.task)) this.#evict(generation);
    }
  }

  #evict(generation: Generation): void {
    this.counts.evictedGenerations++;
    this.#generations.delete(generation.key);
    this.#bytes -= generation.bytes;
    generation.isGone = true;
    for (const block of generation.ring.clear()) this.#buffers.give(block.payloads);
    // The encoder of a batch at the service is freed when the batch is back.
    if (generation.task) generation.task.abort();
    else generation.encoder.free();
    this.#wake(generation);
  }

  #nameOf(source: ChunkSource): string {
    const name = source.name ?? this.#names.get(source) ?? `unnamed ${this.#nameCount++}`;
    if (source.name === undefined) this.#names.set(source, name);
    return name;
  }
}
