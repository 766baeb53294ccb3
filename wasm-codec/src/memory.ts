/**
 * The module's memory seen from JavaScript: views that survive growth, one staging area for arguments and results,
 * the status record turned into a CodecError, and the handles by which the module's objects are owned.
 */
import { CodecError } from "@tributary/protocol";
import type { CodecModule } from "./module";

/** What one call may carry in each direction: the longest coefficient vector and the longest symbol. */
const VECTOR_BYTES = 256;
export const STAGE_BYTES = 65_536;

const STATUS_GOT = 0;
const STATUS_LIMIT = 8;
const STATUS_WHAT = 16;
const STATUS_OUT_OF_MEMORY = 20;

export class ModuleMemory {
  /** Staging area for up to VECTOR_BYTES of coefficients or seeds. */
  readonly vector: number;
  /** Staging area for up to STAGE_BYTES of payload. */
  readonly stage: number;
  #view: Uint8Array;

  /** `poolBytes`: what objects may take together before the memory has to grow. */
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
   * All of the memory. To be taken anew after each call into the module, which may have grown it: that leaves views
   * without a length, which is quicker to see than whether `memory.buffer` is another one.
   */
  bytes(): Uint8Array {
    if (this.#view.length === 0) this.#view = new Uint8Array(this.module.memory.buffer);
    return this.#view;
  }

  /** Copies `source` to the payload stage (at most STAGE_BYTES) and says where it is. */
  stageIn(source: Uint8Array): number {
    this.bytes().set(source, this.stage);
    return this.stage;
  }

  /** Copies `source` to the vector stage (at most VECTOR_BYTES) and says where it is. */
  vectorIn(source: Uint8Array): number {
    this.bytes().set(source, this.vector);
    return this.vector;
  }

  /** Copies seeds to the vector stage and says where they are. */
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

  /** The result of a call: a negative one throws what the status record says. */
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
  return new CodecError("memoryBytes", bytes, 0, `out of memory: ${bytes} more bytes were not to be had`);
}

/** Owns one object of the module until `free()`, or until it is garbage. */
export class Handle {
  #address: number;
  static readonly #registry = new FinalizationRegistry<() => void>((destroy) => destroy());

  readonly #destroy: (address: number) => void;

  /** `address`: what a `*New` export returned; 0 throws what the status record says. */
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

  /** A second call does nothing. */
  free(): void {
    if (this.#address === 0) return;
    Handle.#registry.unregister(this);
    this.#destroy(this.#address);
    this.#address = 0;
  }
}
