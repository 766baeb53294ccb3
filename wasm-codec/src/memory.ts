/**
 * The module's memory, seen from JavaScript. ModuleMemory has views that survive growth and the staging areas for
 * arguments and results, and turns the status record into a CodecError. Handle owns one object of the module.
 */
import { CodecError } from "@tributary/protocol";
import type { CodecModule } from "./module";

/** The longest coefficient vector. */
const VECTOR_BYTES = 256;
/** The longest symbol. */
export const STAGE_BYTES = 65_536;

/** Offsets in the status record of src/binding.cc. */
const STATUS_GOT = 0;
const STATUS_LIMIT = 8;
const STATUS_WHAT = 16;
const STATUS_OUT_OF_MEMORY = 20;

export class ModuleMemory {
  /** The address of a staging area for up to VECTOR_BYTES of coefficients or seeds. */
  readonly vector: number;
  /** The address of a staging area for up to STAGE_BYTES of payload. */
  readonly stage: number;
  #view: Uint8Array;

  /** The memory has room for `poolBytes` of objects before it grows. */
  constructor(
    readonly module: CodecModule,
    poolBytes = 0,
  ) {
    module.start();
    this.vector = module.allocate(VECTOR_BYTES);
    this.stage = module.allocate(STAGE_BYTES);
    if (poolBytes > 0 && module.reserve(poolBytes) === 0) throw outOfMemory(poolBytes);
    if (this.vector === 0 || this.stage === 0) throw outOfMemory(VECTOR_BYTES + STAGE_BYTES);
    this.#view = new Uint8Array(module.memory.buffer);
  }

  /**
   * A view of the whole memory. Call this again after each call into the module: the call may grow the memory, which
   * leaves old views with no bytes. That check is faster than a comparison of `memory.buffer`.
   */
  bytes(): Uint8Array {
    if (this.#view.length === 0) this.#view = new Uint8Array(this.module.memory.buffer);
    return this.#view;
  }

  /** Copies `source` (at most STAGE_BYTES) to the payload stage and returns its address. */
  stageIn(source: Uint8Array): number {
    this.bytes().set(source, this.stage);
    return this.stage;
  }

  /** Copies `source` (at most VECTOR_BYTES) to the vector stage and returns its address. */
  vectorIn(source: Uint8Array): number {
    this.bytes().set(source, this.vector);
    return this.vector;
  }

  /** Copies seeds to the vector stage and returns their address. */
  seedsIn(seeds: Uint32Array): number {
    new Uint32Array(this.module.memory.buffer, this.vector, seeds.length).set(seeds);
    return this.vector;
  }

  /** Copies `byteCount` bytes at `address` into `out` from `offset` on. */
  copyOut(address: number, out: Uint8Array, offset: number, byteCount: number): void {
    out.set(this.bytes().subarray(address, address + byteCount), offset);
  }

  text(address: number): string {
    const bytes = this.bytes();
    let text = "";
    for (let i = address; bytes[i] !== 0; i++) text += String.fromCharCode(bytes[i] ?? 0);
    return text;
  }

  /** Returns the result of a call. If it is negative, throws the error in the status record. */
  checked(result: number): number {
    if (result >= 0) return result;
    throw this.failure();
  }

  failure(): CodecError {
    const status = new DataView(this.module.memory.buffer, this.module.statusAddress());
    const got = status.getFloat64(STATUS_GOT, true);
    if (status.getUint32(STATUS_OUT_OF_MEMORY, true) !== 0) return outOfMemory(got);
    return new CodecError(this.text(status.getUint32(STATUS_WHAT, true)), got, status.getFloat64(STATUS_LIMIT, true));
  }
}

function outOfMemory(bytes: number): CodecError {
  return new CodecError("memoryBytes", bytes, 0, `out of memory: ${bytes} more bytes were not available`);
}

/** Owns one object of the module until `free()`, or until the garbage collector takes the handle. */
export class Handle {
  #address: number;
  static readonly #registry = new FinalizationRegistry<() => void>((destroy) => destroy());

  readonly #destroy: (address: number) => void;

  /** Takes the address that a `*New` export returned. If it is 0, throws the error in the status record. */
  constructor(memory: ModuleMemory, address: number, destroy: (address: number) => void) {
    this.#destroy = destroy;

    if (address === 0) throw memory.failure();
    this.#address = address;
    Handle.#registry.register(this, () => destroy(address), this);
  }

  get(): number {
    if (this.#address === 0) throw new CodecError("freed", 0, 0, "used after free()");
    return this.#address;
  }

  /** Destroys the object. A second call does nothing. */
  free(): void {
    if (this.#address === 0) return;
    Handle.#registry.unregister(this);
    this.#destroy(this.#address);
    this.#address = 0;
  }
}
