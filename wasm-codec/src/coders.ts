/**
 * The coders of protocol's Codec, on the module's flat exports. They copy arguments through a staging area; a long
 * argument takes several calls of whole symbols.
 *
 * The coders check what they must know before they copy: types and lengths. They also check the whole range of an
 * operation that takes several calls, so that it happens completely or not at all. The core checks the rest.
 */
import {
  CodecError,
  type Decoder,
  type Encoder,
  type Recoder,
  type RepairDecoder,
  type RepairEncoder,
} from "@tributary/protocol";
import { bytesArgument, range, seedsArgument, u32, U32_MAX } from "./check";
import { Handle, STAGE_BYTES, type ModuleMemory } from "./memory";

/** Seeds in one call. The core codes this many in one pass, and they fit into the staging areas. */
const SEEDS_PER_CALL = 16;

/** The common part of all coders: a shape, and an object in the module. */
abstract class Coder {
  protected readonly handle: Handle;
  /** How many symbols fit into the staging area. */
  protected readonly stagedSymbols: number;

  protected constructor(
    protected readonly memory: ModuleMemory,
    readonly symbolCount: number,
    readonly symbolBytes: number,
    create: (symbolCount: number, symbolBytes: number) => number,
    destroy: (address: number) => void,
  ) {
    this.handle = new Handle(memory, create(u32("symbolCount", symbolCount), u32("symbolBytes", symbolBytes)), destroy);
    this.stagedSymbols = Math.floor(STAGE_BYTES / symbolBytes);
  }

  free(): void {
    this.handle.free();
  }

  /** Copies a symbol into the staging area and returns its address. */
  protected payloadIn(payload: Uint8Array): number {
    return this.memory.stageIn(bytesArgument("payload", payload, this.symbolBytes));
  }

  /** Copies a coefficient vector into the staging area and returns its address. */
  protected vectorIn(coefficients: Uint8Array): number {
    return this.memory.vectorIn(bytesArgument("coefficients", coefficients, this.symbolCount));
  }

  protected outArgument(what: string, out: Uint8Array, symbols: number): Uint8Array {
    return bytesArgument(what, out, symbols * this.symbolBytes);
  }
}

/** The exports of an Encoder or a RepairEncoder. */
interface EncoderExports {
  create(symbolCount: number, symbolBytes: number): number;
  destroy(encoder: number): void;
  setSymbols(encoder: number, firstIndex: number, bytes: number, byteCount: number): number;
  encodeSeeds(encoder: number, seeds: number, seedCount: number, out: number): number;
}

/** The common part of Encoder and RepairEncoder. */
abstract class SymbolEncoder extends Coder {
  readonly #exports: EncoderExports;

  protected constructor(memory: ModuleMemory, symbolCount: number, symbolBytes: number, exports: EncoderExports) {
    super(memory, symbolCount, symbolBytes, exports.create, exports.destroy);
    this.#exports = exports;
  }

  setSymbols(firstIndex: number, bytes: Uint8Array): void {
    const encoder = this.handle.get();
    range("firstIndex", u32("firstIndex", firstIndex), 0, this.symbolCount - 1);
    const total = bytesArgument("bytes", bytes).length;
    range("bytes", total, 1, (this.symbolCount - firstIndex) * this.symbolBytes);
    const bytesPerCall = this.stagedSymbols * this.symbolBytes;
    for (let start = 0, index = firstIndex; start < total; start += bytesPerCall, index += this.stagedSymbols) {
      const part = bytes.subarray(start, start + bytesPerCall);
      this.memory.checked(this.#exports.setSymbols(encoder, index, this.memory.stageIn(part), part.length));
    }
  }

  encodeSeeds(seeds: Uint32Array, out: Uint8Array): void {
    const encoder = this.handle.get();
    const { memory, symbolBytes } = this;
    range("seeds", seedsArgument("seeds", seeds).length, 1, U32_MAX);
    this.outArgument("out", out, seeds.length);
    const perCall = Math.min(SEEDS_PER_CALL, this.stagedSymbols);
    for (let first = 0; first < seeds.length; first += perCall) {
      const part = seeds.subarray(first, first + perCall);
      memory.checked(this.#exports.encodeSeeds(encoder, memory.seedsIn(part), part.length, memory.stage));
      memory.copyOut(memory.stage, out, first * symbolBytes, part.length * symbolBytes);
    }
  }
}

export class WasmEncoder extends SymbolEncoder implements Encoder {
  constructor(memory: ModuleMemory, symbolCount: number, symbolBytes: number) {
    const { module } = memory;
    super(memory, symbolCount, symbolBytes, {
      create: module.encoderNew,
      destroy: module.encoderFree,
      setSymbols: module.encoderSetSymbols,
      encodeSeeds: module.encoderEncodeSeeds,
    });
  }

  encodeVector(coefficients: Uint8Array, out: Uint8Array): void {
    const encoder = this.handle.get();
    const { memory } = this;
    const vector = this.vectorIn(coefficients);
    this.outArgument("out", out, 1);
    memory.checked(memory.module.encoderEncodeVector(encoder, vector, memory.stage));
    memory.copyOut(memory.stage, out, 0, out.length);
  }
}

export class WasmRepairEncoder extends SymbolEncoder implements RepairEncoder {
  constructor(memory: ModuleMemory, symbolCount: number, symbolBytes: number) {
    const { module } = memory;
    super(memory, symbolCount, symbolBytes, {
      create: module.repairEncoderNew,
      destroy: module.repairEncoderFree,
      setSymbols: module.repairEncoderSetSymbols,
      encodeSeeds: module.repairEncoderEncodeSeeds,
    });
  }
}

/** The common part of Decoder and Recoder: it collects symbols and counts degrees of freedom. */
abstract class Collector extends Coder {
  abstract readonly rank: number;

  addSystematic(index: number, payload: Uint8Array): boolean {
    const { memory } = this;
    const coder = this.handle.get();
    return (
      memory.checked(memory.module.collectorAddSystematic(coder, u32("index", index), this.payloadIn(payload))) === 1
    );
  }

  addSeeded(seed: number, payload: Uint8Array): boolean {
    const { memory } = this;
    const coder = this.handle.get();
    return memory.checked(memory.module.collectorAddSeeded(coder, u32("seed", seed), this.payloadIn(payload))) === 1;
  }

  addVector(coefficients: Uint8Array, payload: Uint8Array): boolean {
    const { memory } = this;
    const coder = this.handle.get();
    return (
      memory.checked(memory.module.collectorAddVector(coder, this.vectorIn(coefficients), this.payloadIn(payload))) ===
      1
    );
  }
}

/** The properties of a Decoder or a RepairDecoder that readSymbols needs. */
interface Readable {
  readonly symbolCount: number;
  readonly symbolBytes: number;
  isDecoded(index: number): boolean;
}

/**
 * Reads symbols into `out`. Each call of `some` puts as many into the staging area as fit. If one call is not enough,
 * all symbols are checked first, so that an undetermined symbol leaves `out` unchanged.
 */
function readSymbols(
  memory: ModuleMemory,
  decoder: Readable,
  { firstIndex, count, out, heldCount }: { firstIndex: number; count: number; out: Uint8Array; heldCount: number },
  some: (firstIndex: number, count: number) => number,
): void {
  const { symbolCount, symbolBytes } = decoder;
  range("firstIndex", u32("firstIndex", firstIndex), 0, symbolCount - 1);
  range("count", u32("count", count), 1, symbolCount - firstIndex);
  bytesArgument("out", out, count * symbolBytes);
  const perCall = Math.floor(STAGE_BYTES / symbolBytes);
  for (let index = firstIndex; count > perCall && index < firstIndex + count; index++) {
    if (!decoder.isDecoded(index)) throw new CodecError("notDecoded", index, heldCount);
  }
  for (let done = 0; done < count; done += perCall) {
    const part = Math.min(perCall, count - done);
    memory.checked(some(firstIndex + done, part));
    memory.copyOut(memory.stage, out, done * symbolBytes, part * symbolBytes);
  }
}

export class WasmDecoder extends Collector implements Decoder {
  constructor(memory: ModuleMemory, symbolCount: number, symbolBytes: number) {
    super(memory, symbolCount, symbolBytes, memory.module.decoderNew, memory.module.decoderFree);
  }

  get rank(): number {
    return this.memory.module.decoderRank(this.handle.get());
  }

  isDecoded(index: number): boolean {
    const decoder = this.handle.get();
    return this.memory.checked(this.memory.module.decoderIsDecoded(decoder, u32("index", index))) === 1;
  }

  read(firstIndex: number, count: number, out: Uint8Array): void {
    const { memory, rank } = this;
    const decoder = this.handle.get();
    readSymbols(memory, this, { firstIndex, count, out, heldCount: rank }, (first, part) =>
      memory.module.decoderRead(decoder, first, part, memory.stage),
    );
  }
}

export class WasmRecoder extends Collector implements Recoder {
  constructor(memory: ModuleMemory, symbolCount: number, symbolBytes: number) {
    super(memory, symbolCount, symbolBytes, memory.module.recoderNew, memory.module.recoderFree);
  }

  get rank(): number {
    return this.memory.module.recoderRank(this.handle.get());
  }

  recode(seed: number, outCoefficients: Uint8Array, outPayload: Uint8Array): void {
    const recoder = this.handle.get();
    const { memory } = this;
    bytesArgument("outCoefficients", outCoefficients, this.symbolCount);
    this.outArgument("outPayload", outPayload, 1);
    memory.checked(memory.module.recoderRecode(recoder, u32("seed", seed), memory.vector, memory.stage));
    memory.copyOut(memory.vector, outCoefficients, 0, outCoefficients.length);
    memory.copyOut(memory.stage, outPayload, 0, outPayload.length);
  }
}

export class WasmRepairDecoder extends Coder implements RepairDecoder {
  constructor(memory: ModuleMemory, symbolCount: number, symbolBytes: number) {
    super(memory, symbolCount, symbolBytes, memory.module.repairDecoderNew, memory.module.repairDecoderFree);
  }

  get missingCount(): number {
    return this.memory.module.repairDecoderMissingCount(this.handle.get());
  }

  addSource(index: number, payload: Uint8Array): boolean {
    const { memory } = this;
    const decoder = this.handle.get();
    return (
      memory.checked(memory.module.repairDecoderAddSource(decoder, u32("index", index), this.payloadIn(payload))) === 1
    );
  }

  addSeeded(seed: number, payload: Uint8Array): boolean {
    const { memory } = this;
    const decoder = this.handle.get();
    return (
      memory.checked(memory.module.repairDecoderAddSeeded(decoder, u32("seed", seed), this.payloadIn(payload))) === 1
    );
  }

  isDecoded(index: number): boolean {
    const decoder = this.handle.get();
    return this.memory.checked(this.memory.module.repairDecoderIsDecoded(decoder, u32("index", index))) === 1;
  }

  read(firstIndex: number, count: number, out: Uint8Array): void {
    const { memory } = this;
    const decoder = this.handle.get();
    const heldCount = this.symbolCount - this.missingCount;
    readSymbols(memory, this, { firstIndex, count, out, heldCount }, (first, part) =>
      memory.module.repairDecoderRead(decoder, first, part, memory.stage),
    );
  }
}
