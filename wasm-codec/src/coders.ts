/**
 * The coders over the module's flat exports. Arguments are copied through the staging area, long ones
 * in several calls of whole symbols. The core checks ranges; what is checked here is what must hold before copying.
 */
import { CodecError, type Decoder, type Encoder, type Recoder, type RepairDecoder, type RepairEncoder } from "@tributary/protocol";
import { bytesArgument, exactly, range, seedsArgument, u32, U32_MAX } from "./check";
import { Handle, STAGE_BYTES, type ModuleMemory } from "./memory";

/** Seeds to a call: as many as the core codes in one pass; they and their bytes fit into the staging areas. */
const SEEDS_PER_CALL = 16;

/** The exports of an encoder of either kind. */
interface EncoderExports {
  setSymbols(encoder: number, firstIndex: number, bytes: number, byteCount: number): number;
  encodeSeeds(encoder: number, seeds: number, seedCount: number, out: number, outBytes: number): number;
}

/** What encoders of generations and of blocks have in common. */
abstract class SymbolEncoder {
  protected constructor(
    protected readonly memory: ModuleMemory,
    readonly symbolCount: number,
    readonly symbolBytes: number,
    protected readonly handle: Handle,
    private readonly exports: EncoderExports,
  ) {}

  setSymbols(firstIndex: number, bytes: Uint8Array): void {
    const encoder = this.handle.get();
    range("firstIndex", u32("firstIndex", firstIndex), 0, this.symbolCount - 1);
    const total = bytesArgument("bytes", bytes).length;
    range("bytes", total, 1, (this.symbolCount - firstIndex) * this.symbolBytes);
    const symbolsPerCall = Math.floor(STAGE_BYTES / this.symbolBytes);
    const bytesPerCall = symbolsPerCall * this.symbolBytes;
    for (let start = 0, index = firstIndex; start < total; start += bytesPerCall, index += symbolsPerCall) {
      const part = bytes.subarray(start, start + bytesPerCall);
      this.memory.checked(this.exports.setSymbols(encoder, index, this.memory.stageIn(part), part.length));
    }
  }

  encodeSeeds(seeds: Uint32Array, out: Uint8Array): void {
    const encoder = this.handle.get();
    range("seeds", seedsArgument("seeds", seeds).length, 1, U32_MAX);
    exactly("out", bytesArgument("out", out).length, seeds.length * this.symbolBytes);
    const perCall = Math.min(SEEDS_PER_CALL, Math.floor(STAGE_BYTES / this.symbolBytes));
    for (let first = 0; first < seeds.length; first += perCall) {
      const part = seeds.subarray(first, first + perCall);
      this.encodeSome(encoder, part, out.subarray(first * this.symbolBytes, (first + part.length) * this.symbolBytes));
    }
  }

  private encodeSome(encoder: number, seeds: Uint32Array, out: Uint8Array): void {
    const { memory } = this;
    new Uint32Array(memory.module.memory.buffer, memory.vector, seeds.length).set(seeds);
    memory.checked(this.exports.encodeSeeds(encoder, memory.vector, seeds.length, memory.stage, out.length));
    memory.copyOut(memory.stage, out);
  }

  free(): void {
    this.handle.free();
  }
}

export class WasmEncoder extends SymbolEncoder implements Encoder {
  constructor(memory: ModuleMemory, symbolCount: number, symbolBytes: number) {
    const { module } = memory;
    const address = module.encoderNew(u32("symbolCount", symbolCount), u32("symbolBytes", symbolBytes));
    super(memory, symbolCount, symbolBytes, new Handle(memory, address, module.encoderFree), {
      setSymbols: module.encoderSetSymbols,
      encodeSeeds: module.encoderEncodeSeeds,
    });
  }

  encodeVector(coefficients: Uint8Array, out: Uint8Array): void {
    const encoder = this.handle.get();
    const { memory } = this;
    exactly("coefficients", bytesArgument("coefficients", coefficients).length, this.symbolCount);
    exactly("out", bytesArgument("out", out).length, this.symbolBytes);
    const vector = memory.vectorIn(coefficients);
    memory.checked(memory.module.encoderEncodeVector(encoder, vector, coefficients.length, memory.stage, out.length));
    memory.copyOut(memory.stage, out);
  }
}

export class WasmRepairEncoder extends SymbolEncoder implements RepairEncoder {
  constructor(memory: ModuleMemory, symbolCount: number, symbolBytes: number) {
    const { module } = memory;
    const address = module.repairEncoderNew(u32("symbolCount", symbolCount), u32("symbolBytes", symbolBytes));
    super(memory, symbolCount, symbolBytes, new Handle(memory, address, module.repairEncoderFree), {
      setSymbols: module.repairEncoderSetSymbols,
      encodeSeeds: module.repairEncoderEncodeSeeds,
    });
  }
}

/** The exports that take symbols in: a decoder's or a recoder's. */
interface CollectorExports {
  rank(coder: number): number;
  addSystematic(coder: number, index: number, payload: number, payloadBytes: number): number;
  addSeeded(coder: number, seed: number, payload: number, payloadBytes: number): number;
  addVector(coder: number, coefficients: number, coefficientCount: number, payload: number, payloadBytes: number): number;
}

/** What decoder and recoder have in common: they take symbols in and count degrees of freedom. */
abstract class Collector {
  protected constructor(
    protected readonly memory: ModuleMemory,
    readonly symbolCount: number,
    readonly symbolBytes: number,
    protected readonly handle: Handle,
    private readonly exports: CollectorExports,
  ) {}

  get rank(): number {
    return this.exports.rank(this.handle.get());
  }

  addSystematic(index: number, payload: Uint8Array): boolean {
    const coder = this.handle.get();
    range("index", u32("index", index), 0, this.symbolCount - 1);
    return this.memory.checked(this.exports.addSystematic(coder, index, this.payloadIn(payload), this.symbolBytes)) === 1;
  }

  addSeeded(seed: number, payload: Uint8Array): boolean {
    const coder = this.handle.get();
    u32("seed", seed);
    return this.memory.checked(this.exports.addSeeded(coder, seed, this.payloadIn(payload), this.symbolBytes)) === 1;
  }

  addVector(coefficients: Uint8Array, payload: Uint8Array): boolean {
    const coder = this.handle.get();
    exactly("coefficients", bytesArgument("coefficients", coefficients).length, this.symbolCount);
    const stage = this.payloadIn(payload);
    const vector = this.memory.vectorIn(coefficients);
    return this.memory.checked(this.exports.addVector(coder, vector, this.symbolCount, stage, this.symbolBytes)) === 1;
  }

  free(): void {
    this.handle.free();
  }

  private payloadIn(payload: Uint8Array): number {
    exactly("payload", bytesArgument("payload", payload).length, this.symbolBytes);
    return this.memory.stageIn(payload);
  }
}

export class WasmDecoder extends Collector implements Decoder {
  constructor(memory: ModuleMemory, symbolCount: number, symbolBytes: number) {
    const { module } = memory;
    const address = module.decoderNew(u32("symbolCount", symbolCount), u32("symbolBytes", symbolBytes));
    super(memory, symbolCount, symbolBytes, new Handle(memory, address, module.decoderFree), {
      rank: module.decoderRank,
      addSystematic: module.decoderAddSystematic,
      addSeeded: module.decoderAddSeeded,
      addVector: module.decoderAddVector,
    });
  }

  isDecoded(index: number): boolean {
    const decoder = this.handle.get();
    return this.memory.checked(this.memory.module.decoderIsDecoded(decoder, u32("index", index))) === 1;
  }

  read(firstIndex: number, count: number, out: Uint8Array): void {
    const decoder = this.handle.get();
    const { memory, symbolBytes } = this;
    range("firstIndex", u32("firstIndex", firstIndex), 0, this.symbolCount - 1);
    range("count", u32("count", count), 1, this.symbolCount - firstIndex);
    exactly("out", bytesArgument("out", out).length, count * symbolBytes);
    // All or nothing: reading computes what is missing, so what is determined is asked first.
    for (let index = firstIndex; index < firstIndex + count; index++) {
      if (memory.module.decoderIsDecoded(decoder, index) !== 1) throw new CodecError("notDecoded", index, this.rank);
    }
    for (let i = 0; i < count; i++) {
      const address = memory.module.decoderSymbol(decoder, firstIndex + i);
      memory.copyOut(address, out.subarray(i * symbolBytes, (i + 1) * symbolBytes));
    }
  }
}

export class WasmRecoder extends Collector implements Recoder {
  constructor(memory: ModuleMemory, symbolCount: number, symbolBytes: number) {
    const { module } = memory;
    const address = module.recoderNew(u32("symbolCount", symbolCount), u32("symbolBytes", symbolBytes));
    super(memory, symbolCount, symbolBytes, new Handle(memory, address, module.recoderFree), {
      rank: module.recoderRank,
      addSystematic: module.recoderAddSystematic,
      addSeeded: module.recoderAddSeeded,
      addVector: module.recoderAddVector,
    });
  }

  recode(seed: number, outCoefficients: Uint8Array, outPayload: Uint8Array): void {
    const recoder = this.handle.get();
    const { memory } = this;
    u32("seed", seed);
    range("rank", this.rank, 1, this.symbolCount);
    exactly("outCoefficients", bytesArgument("outCoefficients", outCoefficients).length, this.symbolCount);
    exactly("outPayload", bytesArgument("outPayload", outPayload).length, this.symbolBytes);
    memory.checked(
      memory.module.recoderRecode(recoder, seed, memory.vector, this.symbolCount, memory.stage, this.symbolBytes),
    );
    memory.copyOut(memory.vector, outCoefficients);
    memory.copyOut(memory.stage, outPayload);
  }
}

export class WasmRepairDecoder implements RepairDecoder {
  readonly symbolCount: number;
  readonly symbolBytes: number;
  private readonly handle: Handle;

  constructor(
    private readonly memory: ModuleMemory,
    symbolCount: number,
    symbolBytes: number,
  ) {
    const { module } = memory;
    const address = module.repairDecoderNew(u32("symbolCount", symbolCount), u32("symbolBytes", symbolBytes));
    this.handle = new Handle(memory, address, module.repairDecoderFree);
    this.symbolCount = symbolCount;
    this.symbolBytes = symbolBytes;
  }

  get missingCount(): number {
    return this.memory.module.repairDecoderMissingCount(this.handle.get());
  }

  addSource(index: number, payload: Uint8Array): boolean {
    const decoder = this.handle.get();
    range("index", u32("index", index), 0, this.symbolCount - 1);
    const { module } = this.memory;
    return this.memory.checked(module.repairDecoderAddSource(decoder, index, this.payloadIn(payload), this.symbolBytes)) === 1;
  }

  addSeeded(seed: number, payload: Uint8Array): boolean {
    const decoder = this.handle.get();
    u32("seed", seed);
    const { module } = this.memory;
    return this.memory.checked(module.repairDecoderAddSeeded(decoder, seed, this.payloadIn(payload), this.symbolBytes)) === 1;
  }

  isDecoded(index: number): boolean {
    const decoder = this.handle.get();
    return this.memory.checked(this.memory.module.repairDecoderIsDecoded(decoder, u32("index", index))) === 1;
  }

  read(firstIndex: number, count: number, out: Uint8Array): void {
    const decoder = this.handle.get();
    const { memory, symbolBytes } = this;
    range("firstIndex", u32("firstIndex", firstIndex), 0, this.symbolCount - 1);
    range("count", u32("count", count), 1, this.symbolCount - firstIndex);
    exactly("out", bytesArgument("out", out).length, count * symbolBytes);
    const known = this.symbolCount - this.missingCount;
    for (let index = firstIndex; index < firstIndex + count; index++) {
      if (!this.isDecoded(index)) throw new CodecError("notDecoded", index, known);
    }
    for (let i = 0; i < count; i++) {
      const address = memory.module.repairDecoderSymbol(decoder, firstIndex + i);
      memory.copyOut(address, out.subarray(i * symbolBytes, (i + 1) * symbolBytes));
    }
  }

  free(): void {
    this.handle.free();
  }

  private payloadIn(payload: Uint8Array): number {
    exactly("payload", bytesArgument("payload", payload).length, this.symbolBytes);
    return this.memory.stageIn(payload);
  }
}
