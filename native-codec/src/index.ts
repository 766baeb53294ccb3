/**
 * The door to the native codec: it loads the addon, chooses between it and a fallback, and makes coder pools.
 * The environment variable TRIBUTARY_ENGINE names the native engine to use. The default is the fastest engine that
 * this processor runs.
 */
import { availableParallelism } from "node:os";
import { setImmediate } from "node:timers";
import { CodecError, type Codec } from "@tributary/protocol";
import { loadAddon, type Addon, type AddonPool } from "./addon";
import { withTypedErrors } from "./errors";
import { InlineBackend } from "./inline";
import { CoderPool, type CoderPoolOptions } from "./pool";
import { gpuCoder, type Coder } from "./service/coder";

export type { CoderPool } from "./pool";
export {
  CoderLostError,
  CoderService,
  cpuCoder,
  only,
  slowedCoder,
  type Coder,
  type CoderStage,
  type Piece,
} from "./service/index";
export { SharedBuffers } from "./shared-buffers";

/** A codec, or the reason why it does not load. */
type NativeCodecResult = { readonly codec: Codec } | { readonly codec: undefined; readonly reason: string };

function engineIndexOf(addon: Addon, name: string | undefined): number {
  if (name === undefined || name === "") return 0;
  const index = addon.engineNames.indexOf(name);
  if (index >= 0) return index;
  const names = addon.engineNames.join(", ");
  const message = `TRIBUTARY_ENGINE: no engine "${name}" on this processor; there are ${names}`;
  throw new CodecError("engine", index, addon.engineNames.length - 1, message);
}

interface NativeParts {
  addon: Addon;
  engineIndex: number;
}

/** The addon and the engine behind each native codec. A codec that is not in this map is not native. */
const nativeParts = new WeakMap<Codec, NativeParts>();

function codecOf(addon: Addon, engineIndex: number): Codec {
  const codec: Codec = {
    engine: `native/${addon.engineNames[engineIndex]}`,
    createEncoder: (symbolCount, symbolBytes) =>
      withTypedErrors(() => new addon.Encoder(engineIndex, symbolCount, symbolBytes)),
    createDecoder: (symbolCount, symbolBytes) =>
      withTypedErrors(() => new addon.Decoder(engineIndex, symbolCount, symbolBytes)),
    createRecoder: (symbolCount, symbolBytes) =>
      withTypedErrors(() => new addon.Recoder(engineIndex, symbolCount, symbolBytes)),
    createRepairEncoder: (symbolCount, symbolBytes) =>
      withTypedErrors(() => new addon.RepairEncoder(engineIndex, symbolCount, symbolBytes)),
    createRepairDecoder: (symbolCount, symbolBytes) =>
      withTypedErrors(() => new addon.RepairDecoder(engineIndex, symbolCount, symbolBytes)),
    coefficients: (seed, symbolCount) => addon.coefficients(seed, symbolCount),
  };
  nativeParts.set(codec, { addon, engineIndex });
  return codec;
}

/** The native engines of this processor, fastest first. Empty if the addon does not load. */
export function nativeEngineNames(): readonly string[] {
  const addon = loadAddon();
  return typeof addon === "string" ? [] : addon.engineNames;
}

/**
 * Returns the native codec on `engine`, or the reason why it does not load.
 * Throws a CodecError that lists the engines if `engine` is not one of them.
 */
export function loadNativeCodec(engine: string | undefined = process.env["TRIBUTARY_ENGINE"]): NativeCodecResult {
  const addon = loadAddon();
  if (typeof addon === "string") return { codec: undefined, reason: addon };
  return { codec: codecOf(addon, engineIndexOf(addon, engine)) };
}

/**
 * Chooses the codec of a Node process: the native one or, if that does not load, the one that `loadFallback` makes.
 * Callers pass the WebAssembly codec as the fallback. `onWarning` receives the reason for the fallback.
 * Throws as `loadNativeCodec` does for a TRIBUTARY_ENGINE that does not exist.
 */
export function loadCodec(loadFallback: () => Codec, onWarning: (message: string) => void = console.warn): Codec {
  const native = loadNativeCodec();
  if (native.codec !== undefined) return native.codec;
  const codec = loadFallback();
  onWarning(`native codec not in use: ${native.reason}. Using ${codec.engine}, which is slower.`);
  return codec;
}

function optionOf(name: string, value: number, limit: number): number {
  if (!Number.isInteger(value) || value < 1) throw new CodecError(name, value, 1);
  if (value > limit) throw new CodecError(name, value, limit);
  return value;
}

/**
 * Makes a pool for batches of `codec`'s coders. A native codec gets threads, which all pools of the process share. Any
 * other codec gets turns of the event loop. The garbage collector cleans up a pool that is dropped without `close`.
 */
export function createCoderPool(codec: Codec, options: CoderPoolOptions = {}): CoderPool {
  const threads = optionOf("threads", options.threads ?? Math.min(256, availableParallelism()), 256);
  const batchesMax = optionOf("batchesMax", options.batchesMax ?? Math.max(64, 2 * threads), 65_536);
  const native = nativeParts.get(codec);
  if (!native) return new CoderPool(codec.engine, 1, batchesMax, new InlineBackend(codec, batchesMax));
  return new CoderPool(codec.engine, threads, batchesMax, addonPool(native, threads, batchesMax, options.ownThreads));
}

function addonPool(native: NativeParts, threads: number, batchesMax: number, where?: string | boolean): AddonPool {
  // Batches settle in a turn of their own, so that timers and sockets get turns in between.
  const wake = (): void => void setImmediate(() => backend.deref()?.settle());
  const { addon, engineIndex } = native;
  const pool = withTypedErrors(() => new addon.Pool(engineIndex, threads, batchesMax, wake, where));
  const backend = new WeakRef(pool);
  return pool;
}

/** Batches that a GPU has at once: some that it computes, and some that wait for their copies. */
const GPU_BATCHES_MAX = 64;
/** Memory that a GPU writes to directly. */
const GPU_MEMORY_BYTES = 64 * 1024 * 1024;
const PAGE_BYTES = 4096;

/** Undefined if the system pins no memory. Copies then go through a CPU thread. */
function pinnedMemory(backend: AddonPool): Uint8Array | undefined {
  const memory = new Uint8Array(new SharedArrayBuffer(GPU_MEMORY_BYTES + PAGE_BYTES));
  try {
    const before = backend.pin(memory);
    return memory.subarray(before, before + GPU_MEMORY_BYTES);
  } catch (error) {
    if (error instanceof CodecError && error.what === "gpu") return undefined;
    throw error;
  }
}

/**
 * Opens the first GPU of this machine by its driver library, as a coder of the service for `codec`'s encoders. Returns
 * the reason if there is no usable one.
 */
export function openGpuCoder(codec: Codec, library = "libcuda.so.1"): { coder: Coder } | { reason: string } {
  const native = nativeParts.get(codec);
  if (!native) return { reason: `the codec ${codec.engine} has no GPU coder` };
  try {
    const backend = addonPool(native, 0, GPU_BATCHES_MAX, library);
    const pool = new CoderPool(codec.engine, 1, GPU_BATCHES_MAX, backend);
    return { coder: gpuCoder(pool, () => backend.device(), pinnedMemory(backend)) };
  } catch (error) {
    if (error instanceof CodecError && error.what === "gpu") return { reason: error.message };
    throw error;
  }
}
