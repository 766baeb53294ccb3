/**
 * The codec in WebAssembly: native-codec's C++ core in a module without imports, behind protocol's Codec interface.
 * It works in a page, a Worker and Node. The caller brings the module's bytes; in Node, `./node` reads them from disk.
 */
import type { Codec } from "@tributary/protocol";
import { range, u32 } from "./check";
import { WasmDecoder, WasmEncoder, WasmRecoder, WasmRepairDecoder, WasmRepairEncoder } from "./coders";
import { ModuleMemory } from "./memory";
import type { CodecModule } from "./module";

export type WasmModuleName = "codec-relaxed.wasm" | "codec.wasm" | "codec-scalar.wasm";

const bytesOf = (hex: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(hex.match(/../g)!, (byte) => parseInt(byte, 16));

/** The smallest module with a relaxed SIMD instruction: it drops an i8x16.relaxed_swizzle of two splats. */
const RELAXED_PROBE = bytesOf("0061736d01000000010401600000030201000a10010e004100fd0f4100fd0ffd80021a0b");

/** The smallest module with a SIMD128 instruction: it drops an i8x16.splat. */
const SIMD_PROBE = bytesOf("0061736d01000000010401600000030201000a090107004100fd0f1a0b");

const SYMBOL_COUNT_MAX = 256;

/** Room for 140 decoders of 24 x 1,100 bytes at once, which is a window of 3,360 packets. */
const POOL_BYTES = 8 * 1024 * 1024;

/** Names the fastest module that this runtime can run. It fetches no module to find out. */
export function chooseWasmModule(): WasmModuleName {
  if (WebAssembly.validate(RELAXED_PROBE)) return "codec-relaxed.wasm";
  return WebAssembly.validate(SIMD_PROBE) ? "codec.wasm" : "codec-scalar.wasm";
}

/**
 * Makes a codec from the bytes of one of the modules. This is synchronous, because the modules are far smaller than the
 * size that browsers compile only in a Worker. Each codec has its own memory. The memory starts with POOL_BYTES for
 * coders, grows when the coders need more, and never shrinks.
 * Throws WebAssembly.CompileError if this runtime cannot run the bytes as a module.
 */
export function instantiateCodec(bytes: BufferSource): Codec {
  const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes), {});
  const memory = new ModuleMemory(instance.exports as unknown as CodecModule, POOL_BYTES);
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
