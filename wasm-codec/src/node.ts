/** The WebAssembly codec in Node: reads the module from this package's folder. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Codec } from "@tributary/protocol";
import { chooseWasmModule, instantiateCodec, type WasmModuleName } from "./index";

/** The path of the module on disk. It holds for src/ and for dist/. */
export function wasmModulePath(name: WasmModuleName): string {
  return join(__dirname, "..", "module", name);
}

/** Makes a codec from the module of that name. The default is the fastest module that this runtime can run. */
export function loadWasmCodec(name: WasmModuleName = chooseWasmModule()): Codec {
  return instantiateCodec(readFileSync(wasmModulePath(name)));
}
