/**
 * Builds build/webtransport.node with cargo: the crate in this folder, dependencies as Cargo.lock says, from the registry that
 * cargo is set up with. Does nothing when no input has changed.
 *
 *   node webtransport/build.mjs              exits 1 when it cannot be built
 *   node webtransport/build.mjs --package    also makes build/package/, this platform's npm package: `npm pack` packs it, and
 *                                            where it is installed no Rust is needed
 *   node webtransport/build.mjs --test       also runs the crate's own tests
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const PACKAGE_DIR = dirname(fileURLToPath(import.meta.url));
const BUILD_DIR = join(PACKAGE_DIR, "build");
const TARGET_DIR = join(BUILD_DIR, "target");
const ADDON = join(BUILD_DIR, "webtransport.node");
const STAMP = join(BUILD_DIR, "webtransport.stamp");
const LIBRARY = { darwin: "libtributary_webtransport.dylib", win32: "tributary_webtransport.dll" }[process.platform] ?? "libtributary_webtransport.so";
/** What the dependencies ask for; Cargo.toml says the same. */
const RUST_VERSION_MIN = [1, 88];

function cargoVersion() {
  const found = spawnSync("cargo", ["--version"], { encoding: "utf8" });
  if (found.status !== 0) throw new Error("no cargo on this machine (https://rustup.rs installs it)");
  const version = found.stdout.trim();
  const [major, minor] = /(\d+)\.(\d+)/.exec(version)?.slice(1).map(Number) ?? [0, 0];
  const [majorMin, minorMin] = RUST_VERSION_MIN;
  if (major < majorMin || (major === majorMin && minor < minorMin)) throw new Error(`cargo is too old: got ${version}, needed ${majorMin}.${minorMin}`);
  return version;
}

/** One hash over everything that the addon is made from. */
function inputHash(version) {
  const hash = createHash("sha256").update([process.arch, process.platform, version].join("\n"));
  const sources = readdirSync(join(PACKAGE_DIR, "src")).filter((name) => name.endsWith(".rs")).sort().map((name) => join("src", name));
  for (const name of ["Cargo.toml", "Cargo.lock", "build.rs", "build.mjs", ...sources]) hash.update(`\n${name}\n`).update(readFileSync(join(PACKAGE_DIR, name)));
  return hash.digest("hex");
}

function cargo(...words) {
  const env = { ...process.env, CARGO_TARGET_DIR: TARGET_DIR };
  const done = spawnSync("cargo", [...words, "--release", "--locked"], { cwd: PACKAGE_DIR, env, stdio: "inherit" });
  if (done.status !== 0) throw new Error(`cargo ${words.join(" ")} failed`);
}

function build() {
  const hash = inputHash(cargoVersion());
  if (existsSync(ADDON) && existsSync(STAMP) && readFileSync(STAMP, "utf8") === hash) {
    console.log("webtransport: build/webtransport.node is up to date");
    return;
  }
  cargo("build");
  const fresh = `${ADDON}.${process.pid}`;
  copyFileSync(join(TARGET_DIR, "release", LIBRARY), fresh);
  renameSync(fresh, ADDON); // a process that has the old file loaded keeps it
  writeFileSync(STAMP, hash);
  console.log("webtransport: built build/webtransport.node");
}

/** What src/addon.ts looks for when nothing is built. */
function makePackage() {
  const { version, license } = JSON.parse(readFileSync(join(PACKAGE_DIR, "package.json"), "utf8"));
  const { platform, arch } = process;
  const libc = platform === "linux" ? { libc: ["glibc"] } : {};
  const manifest = {
    name: `@tributary/webtransport-${platform}-${arch}`, version, license, main: "webtransport.node", files: ["webtransport.node"],
    description: `Tributary's WebTransport, built for ${platform}-${arch}`, os: [platform], cpu: [arch], ...libc,
  };
  const dir = join(BUILD_DIR, "package");
  mkdirSync(dir, { recursive: true });
  copyFileSync(ADDON, join(dir, "webtransport.node"));
  copyFileSync(join(PACKAGE_DIR, "..", "LICENSE"), join(dir, "LICENSE"));
  writeFileSync(join(dir, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  console.log(`webtransport: made build/package, ${manifest.name} ${version}`);
}

try {
  build();
  if (process.argv.includes("--package")) makePackage();
  if (process.argv.includes("--test")) cargo("test");
} catch (error) {
  console.error(`webtransport: ${error.message}`);
  process.exitCode = 1;
}
