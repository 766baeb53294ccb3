/**
 * The door to the codec on Node: the native addon where it is built and loads, WebAssembly otherwise.
 * The environment variable TRIBUTARY_ENGINE names the native engine to use; by default the fastest that this
 * processor runs.
 */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { CodecError, type Codec, type Decoder, type Encoder, type Recoder } from "@tributary/protocol";
import { loadWasmCodec } from "@tributary/wasm-codec/node";

type CoderClass<T> = new (engineIndex: number, symbolCount: number, symbolBytes: number) => T;

/** What src/addon.cc exports. */
interface Addon {
  readonly engineNames: readonly string[];
  readonly Encoder: CoderClass<Encoder>;
  readonly Decoder: CoderClass<Decoder>;
  readonly Recoder: CoderClass<Recoder>;
  coefficients(seed: number, symbolCount: number): Uint8Array;
  setErrorClass(errorClass: typeof CodecError): void;
}

/** A codec, or why there is none. */
export type NativeCodecResult = { readonly codec: Codec } | { readonly codec: undefined; readonly reason: string };

/** The same from src/ and from dist/. */
const ADDON_PATH = join(__dirname, "..", "build", "codec.node");

function loadAddon(): Addon | string {
  if (!existsSync(ADDON_PATH)) return "native-codec/build/codec.node is not built (node native-codec/build.mjs builds it)";
  try {
    const addon = createRequire(__filename)(ADDON_PATH) as Addon;
    addon.setErrorClass(CodecError);
    return addon;
  } catch (error) {
    return `native-codec/build/codec.node does not load: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function engineIndexOf(addon: Addon, name: string | undefined): number {
  if (name === undefined || name === "") return 0;
  const index = addon.engineNames.indexOf(name);
  if (index >= 0) return index;
  const message = `TRIBUTARY_ENGINE: no engine "${name}" on this processor; there are ${addon.engineNames.join(", ")}`;
  throw new CodecError("engine", index, addon.engineNames.length - 1, message);
}

function codecOf(addon: Addon, engineIndex: number): Codec {
  return {
    engine: `native/${addon.engineNames[engineIndex]}`,
    createEncoder: (symbolCount, symbolBytes) => new addon.Encoder(engineIndex, symbolCount, symbolBytes),
    createDecoder: (symbolCount, symbolBytes) => new addon.Decoder(engineIndex, symbolCount, symbolBytes),
    createRecoder: (symbolCount, symbolBytes) => new addon.Recoder(engineIndex, symbolCount, symbolBytes),
    coefficients: (seed, symbolCount) => addon.coefficients(seed, symbolCount),
  };
}

/** The engines that the native codec can use here, fastest first; none when it does not load. */
export function nativeEngineNames(): readonly string[] {
  const addon = loadAddon();
  return typeof addon === "string" ? [] : addon.engineNames;
}

/**
 * The native codec on `engine`, or the reason why it does not load.
 * Throws a CodecError that names the engines there are when `engine` is not one of them.
 */
export function loadNativeCodec(engine: string | undefined = process.env["TRIBUTARY_ENGINE"]): NativeCodecResult {
  const addon = loadAddon();
  if (typeof addon === "string") return { codec: undefined, reason: addon };
  return { codec: codecOf(addon, engineIndexOf(addon, engine)) };
}

/**
 * The fastest codec there is: native, else WebAssembly after a call of `onWarning` with the reason.
 * Throws as `loadNativeCodec` does for a TRIBUTARY_ENGINE that does not exist.
 */
export function loadCodec(onWarning: (message: string) => void = console.warn): Codec {
  const native = loadNativeCodec();
  if (native.codec !== undefined) return native.codec;
  const codec = loadWasmCodec();
  onWarning(`native codec not in use: ${native.reason}. Using ${codec.engine}, which is slower.`);
  return codec;
}
