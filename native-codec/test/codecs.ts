/** The codecs that the conformance suite tests: every native engine of this processor and every WebAssembly module. */
import { readFileSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import type { Codec } from "@tributary/protocol";
import { instantiateCodec } from "@tributary/wasm-codec";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { loadNativeCodec, nativeEngineNames } from "../src/index";

/** Node 20 runs relaxed SIMD only with this flag. */
setFlagsFromString("--experimental-wasm-relaxed-simd");

/** A module built elsewhere. If it is set, the suite tests that module alone (wasm-codec/emscripten.mjs). */
export const moduleFile = process.env["TRIBUTARY_WASM_MODULE"];

export function nativeCodec(engine?: string): Codec {
  const { codec } = loadNativeCodec(engine);
  if (codec === undefined) throw new Error(`The native engine ${engine} did not load.`);
  return codec;
}

function allCodecs(): Codec[] {
  return [
    ...nativeEngineNames().map(nativeCodec),
    loadWasmCodec("codec-relaxed.wasm"),
    loadWasmCodec("codec.wasm"),
    loadWasmCodec("codec-scalar.wasm"),
  ];
}

const tested = moduleFile === undefined ? allCodecs() : [instantiateCodec(readFileSync(moduleFile))];

/** Rows for `describe.each`: the engine's name, then the codec. */
export const CODECS = tested.map((codec) => [codec.engine, codec] as const);
