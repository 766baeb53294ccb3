/**
 * WebAssembly codecs by engine name (`relaxed-simd`, `simd128`, `scalar`), of those modules that this runtime can run.
 */
import type { Codec } from "@tributary/protocol";
import { instantiateCodec } from "@tributary/wasm-codec";

/** Fastest first, as far as they are known. */
const ORDER = ["relaxed-simd", "simd128", "scalar"];

export function wasmCodecs(modules: readonly Uint8Array[]): Map<string, Codec> {
  const found: [string, Codec][] = [];
  for (const bytes of modules) {
    try {
      const codec = instantiateCodec(bytes as Uint8Array<ArrayBuffer>);
      found.push([codec.engine.replace("wasm/", ""), codec]);
    } catch {
      // A module with instructions that this runtime does not have: it has no such engine.
    }
  }
  const place = ([name]: [string, Codec]): number => ORDER.findIndex((known) => known === name);
  return new Map(found.sort((a, b) => place(a) - place(b)));
}
