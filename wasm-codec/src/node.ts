/** Reads the module from this package's folder: for Node. The path is the same from src/ and from dist/. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Codec } from "@tributary/protocol";
import { chooseWasmModule, instantiateCodec, type WasmModuleName } from "./index";

/** Where the module lies on disk. */
export function wasmModulePath(name: WasmModuleName): string {
  return join(__dirname, "..", "module", name);
}

/** A codec from the module of that name, by default the one that suits this runtime. */
export function loadWasmCodec(name: WasmModuleName = chooseWasmModule()): Codec {
  return instantiateCodec(readFileSync(wasmModulePath(name)));
}
