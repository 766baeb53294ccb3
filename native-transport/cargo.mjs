/**
 * Runs cargo on the crate in this folder: a release build with the versions in Cargo.lock. Results go to build/target.
 */
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const PACKAGE_DIR = dirname(fileURLToPath(import.meta.url));
export const BUILD_DIR = join(PACKAGE_DIR, "build");
export const TARGET_DIR = join(BUILD_DIR, "target");
/** The dependencies need this version. Cargo.toml states it too. */
const RUST_VERSION_MIN = [1, 89];

/** Cargo's version. Throws an error for the reader when cargo is missing or too old. */
export function cargoVersion() {
  const found = spawnSync("cargo", ["--version"], { encoding: "utf8" });
  if (found.status !== 0) throw new Error("no cargo on this machine (https://rustup.rs installs it)");
  const version = found.stdout.trim();
  const [major, minor] = /(\d+)\.(\d+)/.exec(version)?.slice(1).map(Number) ?? [0, 0];
  const [majorMin, minorMin] = RUST_VERSION_MIN;
  if (major < majorMin || (major === majorMin && minor < minorMin))
    throw new Error(`cargo is too old: got ${version}, needed ${majorMin}.${minorMin}`);
  return version;
}

/** Runs `cargo WORD` to its end. Returns the process with its output, and prints nothing. */
export function cargo(word) {
  const env = { ...process.env, CARGO_TARGET_DIR: TARGET_DIR };
  return spawnSync("cargo", [word, "--release", "--locked"], {
    cwd: PACKAGE_DIR,
    env,
    encoding: "utf8",
    maxBuffer: 64 << 20,
  });
}
