/**
 * The codec in WebAssembly: the C++ core of native-codec in a module without imports, behind the protocol's Codec.
 * Works in a Worker, a page and Node alike; who calls brings the module's bytes. Reading them from disk: `./node`.
 */
import type { Codec } from "@tributary/protocol";
import { range, u32 } from "./check";
import { WasmDecoder, WasmEncoder, WasmRecoder, WasmRepairDecoder, WasmRepairEncoder } from "./coders";
import { ModuleMemory } from "./memory";
import type { CodecModule } from "./module";

export type WasmModuleName = "codec-relaxed.wasm" | "codec.wasm" | "codec-scalar.wasm";

/** The smallest module with a relaxed SIMD instruction in it: i8x16.relaxed_swizzle of two splats, dropped. */
const RELAXED_PROBE = Uint8Array.of(
  0,
  97,
  115,
  109,
  1,
  0,
  0,
  0,
  1,
  4,
  1,
  96,
  0,
  0,
  3,
  2,
  1,
  0,
  10,
  16,
  1,
  14,
  0,
  65,
  0,
  253,
  15,
  65,
  0,
  253,
  15,
  253,
  128,
  2,
  26,
  11,
);

/** The smallest module with a SIMD128 instruction in it: i8x16.splat, dropped. */
const SIMD_PROBE = Uint8Array.of(
  0,
  97,
  115,
  109,
  1,
  0,
  0,
  0,
  1,
  4,
  1,
  96,
  0,
  0,
  3,
  2,
  1,
  0,
  10,
  9,
  1,
  7,
  0,
  65,
  0,
  253,
  15,
  26,
  11,
);

const SYMBOL_COUNT_MAX = 256;

/** Decoders of 140 generations of 24 x 1,100 bytes at once: a window of 3,360 packets. */
const POOL_BYTES = 8 * 1024 * 1024;

/** The fastest module that this runtime can run, decided without fetching any. */
export function chooseWasmModule(): WasmModuleName {
  if (WebAssembly.validate(RELAXED_PROBE)) return "codec-relaxed.wasm";
  return WebAssembly.validate(SIMD_PROBE) ? "codec.wasm" : "codec-scalar.wasm";
}

/**
 * A codec from the bytes of one of the modules, synchronously (the modules are far below the size from
 * which browsers want that done in a Worker). Each codec has a memory of its own. It is `poolBytes` large for the
 * objects alive together, grows when they need more, and never shrinks: with a pool that is large enough nothing grows
 * during a download. Throws WebAssembly.CompileError when the bytes are no module that this runtime can run.
 */
export function instantiateCodec(bytes: BufferSource, poolBytes = POOL_BYTES): Codec {
  const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes), {});
  const memory = new ModuleMemory(instance.exports as unknown as CodecModule, poolBytes);
  const { module } = memory;
  return {
    engine: `wasm/${memory.text(module.engineNameAddress())}`,
    createEncoder: (symbolCount, symbolBytes) => new WasmEncoder(memory, symbolCount, symbolBytes),
    createDecoder: (symbolCount, symbolBytes) => new WasmDecoder(memory, symbolCount, symbolBytes),
    createRecoder: (symbolCount, symbolBytes) => new WasmRecoder(memory, symbolCount, symbolBytes),
    createRepairEncoder: (symbolCount, symbolBytes) => new WasmRepairEncoder(memory, symbolCount, symbolBytes),
    createRepairDecoder: (symbolCount, symbolBytes) => new WasmRepairDecoder(memory, symbolCount, symbolBytes),
    coefficients: (seed, symbolCount) => {
      u32("seed", seed);
      range("symbolCount", u32("symbolCount", symbolCount), 1, SYMBOL_COUNT_MAX);
      module.coefficients(seed, memory.vector, symbolCount);
      return memory.bytes().slice(memory.vector, memory.vector + symbolCount);
    },
  };
}
