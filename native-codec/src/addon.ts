/**
 * Finds and loads the addon: first build/codec.node, then the npm package for this platform. It does not choose what to
 * use instead; index.ts does.
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

/**
 * `device`: the name of a pool's GPU, or why it was lost. `pin` pins the whole pages of shared memory until the pool is
 * closed and returns how many bytes are before them; it throws a CodecError `gpu` if the system does not pin them.
 */
export type AddonPool = PoolBackend & { settle(): void; device(): string; pin(view: Uint8Array): number };

/** The exports of src/addon.cc. */
export interface Addon {
  readonly engineNames: readonly string[];
  readonly Encoder: CoderClass<Encoder>;
  readonly Decoder: CoderClass<Decoder>;
  readonly Recoder: CoderClass<Recoder>;
  readonly RepairEncoder: CoderClass<RepairEncoder>;
  readonly RepairDecoder: CoderClass<RepairDecoder>;
  /**
   * The addon calls `wake` on the event loop when there are batches to `settle`. `where`: the driver library of a GPU,
   * or `true` for threads that no other pool uses. A GPU that does not open throws a CodecError `gpu` with the reason.
   */
  readonly Pool: new (
    engineIndex: number,
    threads: number,
    batchesMax: number,
    wake: () => void,
    where?: string | boolean,
  ) => AddonPool;
  coefficients(seed: number, symbolCount: number): Uint8Array;
  setErrorClass(errorClass: typeof CodecError): void;
}

/** This path holds for src/ and for dist/. */
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

/** TRIBUTARY_ADDON names another file to load, for example the sanitized addon of native-codec/test.mjs. */
function builtHere(): Addon | string {
  const path = process.env["TRIBUTARY_ADDON"] ?? join(PACKAGE_DIR, "build", "codec.node");
  if (!existsSync(path)) return "native-codec/build/codec.node is not built (node native-codec/build.mjs builds it)";
  try {
    return load(path);
  } catch (error) {
    return `native-codec/build/codec.node does not load: ${messageOf(error)}`;
  }
}

/** Refuses a package of another version, because its interface may differ. */
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
    if (got !== wanted) return `${PLATFORM_PACKAGE} has version ${got}, but this package needs ${wanted}`;
    return load(join(manifest, "..", "codec.node"));
  } catch (error) {
    return `${PLATFORM_PACKAGE} does not load: ${messageOf(error)}`;
  }
}

/** Returns the addon, or the reason why it does not load. */
export function loadAddon(): Addon | string {
  const built = builtHere();
  if (typeof built !== "string") return built;
  const packaged = fromPlatformPackage();
  return typeof packaged === "string" ? `${built}; ${packaged}` : packaged;
}
