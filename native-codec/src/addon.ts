/**
 * Finds and loads the addon: what was built here, else the package that carries it for this platform. Not the door:
 * that is index.ts, which also knows what to do without one.
 */
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import {
  CodecError,
  type Decoder,
  type Encoder,
  type Recoder,
  type RepairDecoder,
  type RepairEncoder,
} from "@tributary/protocol";
import type { PoolBackend } from "./pool";

type CoderClass<T> = new (engineIndex: number, symbolCount: number, symbolBytes: number) => T;

/** What src/addon.cc exports. */
export interface Addon {
  readonly engineNames: readonly string[];
  readonly Encoder: CoderClass<Encoder>;
  readonly Decoder: CoderClass<Decoder>;
  readonly Recoder: CoderClass<Recoder>;
  readonly RepairEncoder: CoderClass<RepairEncoder>;
  readonly RepairDecoder: CoderClass<RepairDecoder>;
  /** `wake` is called, on the event loop, when there is something to `settle`. */
  readonly Pool: new (
    engineIndex: number,
    threads: number,
    batchesMax: number,
    wake: () => void,
  ) => PoolBackend & { settle(): void };
  coefficients(seed: number, symbolCount: number): Uint8Array;
  setErrorClass(errorClass: typeof CodecError): void;
}

/** The same from src/ and from dist/. */
const PACKAGE_DIR = join(__dirname, "..");
const PLATFORM_PACKAGE = `@tributary/native-codec-${process.platform}-${process.arch}`;

const requireHere = createRequire(__filename);

function load(path: string): Addon {
  const addon = requireHere(path) as Addon;
  addon.setErrorClass(CodecError);
  return addon;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** TRIBUTARY_ADDON names another file, such as the one that the sanitizers watch (native-codec/test.mjs). */
function builtHere(): Addon | string {
  const path = process.env["TRIBUTARY_ADDON"] ?? join(PACKAGE_DIR, "build", "codec.node");
  if (!existsSync(path)) return "native-codec/build/codec.node is not built (node native-codec/build.mjs builds it)";
  try {
    return load(path);
  } catch (error) {
    return `native-codec/build/codec.node does not load: ${messageOf(error)}`;
  }
}

/** A package of another version may hold another interface, so it is not tried. */
function fromPlatformPackage(): Addon | string {
  let manifest: string;
  try {
    manifest = requireHere.resolve(`${PLATFORM_PACKAGE}/package.json`);
  } catch {
    return `${PLATFORM_PACKAGE} is not installed`;
  }
  try {
    const [got, wanted] = [manifest, join(PACKAGE_DIR, "package.json")].map(
      (path) => (JSON.parse(readFileSync(path, "utf8")) as { version: string }).version,
    );
    if (got !== wanted) return `${PLATFORM_PACKAGE} has version ${got}, wanted is ${wanted}`;
    return load(join(manifest, "..", "codec.node"));
  } catch (error) {
    return `${PLATFORM_PACKAGE} does not load: ${messageOf(error)}`;
  }
}

/** The addon, or why there is none. */
export function loadAddon(): Addon | string {
  const built = builtHere();
  if (typeof built !== "string") return built;
  const packaged = fromPlatformPackage();
  return typeof packaged === "string" ? `${built}; ${packaged}` : packaged;
}
