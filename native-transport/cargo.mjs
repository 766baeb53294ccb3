/** Runs cargo on the crate in this folder: release, dependencies as Cargo.lock says, results in build/target. */
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const PACKAGE_DIR = dirname(fileURLToPath(import.meta.url));
export const BUILD_DIR = join(PACKAGE_DIR, "build");
export const TARGET_DIR = join(BUILD_DIR, "target");
/** What the dependencies ask for; Cargo.toml says the same. */
const RUST_VERSION_MIN = [1, 89];

/** Throws a sentence when there is no cargo, or none that is recent enough. */
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

/** The ended process; its output is kept back. */
export function cargo(word) {
  const env = { ...process.env, CARGO_TARGET_DIR: TARGET_DIR };
  return spawnSync("cargo", [word, "--release", "--locked"], {
    cwd: PACKAGE_DIR,
    env,
    encoding: "utf8",
    maxBuffer: 64 << 20,
  });
}
