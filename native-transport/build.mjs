/**
 * Builds build/native-transport.node from the crate in this folder, with cargo and the versions in Cargo.lock. Does
 * nothing when no input has changed. Exits with 1 when the build fails.
 *
 *   node native-transport/build.mjs
 *   node native-transport/build.mjs --package
 *
 * With --package it also makes build/package/, the npm package for this platform. `npm pack` packs it. A machine that
 * installs the package needs no Rust.
 */
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BUILD_DIR, cargo, cargoVersion, PACKAGE_DIR, TARGET_DIR } from "./cargo.mjs";

const ADDON = join(BUILD_DIR, "native-transport.node");
const STAMP = join(BUILD_DIR, "native-transport.stamp");
const LIBRARY =
  { darwin: "libtributary_native_transport.dylib", win32: "tributary_native_transport.dll" }[process.platform] ??
  "libtributary_native_transport.so";

/** One hash over all inputs of the build. */
function inputHash(version) {
  const hash = createHash("sha256").update([process.arch, process.platform, version].join("\n"));
  const sources = readdirSync(join(PACKAGE_DIR, "src"), { recursive: true })
    .filter((name) => name.endsWith(".rs"))
    .sort()
    .map((name) => join("src", name));
  for (const name of ["Cargo.toml", "Cargo.lock", "build.rs", "build.mjs", "cargo.mjs", ...sources])
    hash.update(`\n${name}\n`).update(readFileSync(join(PACKAGE_DIR, name)));
  return hash.digest("hex");
}

function build() {
  const hash = inputHash(cargoVersion());
  if (existsSync(ADDON) && existsSync(STAMP) && readFileSync(STAMP, "utf8") === hash) {
    console.log("native-transport: build/native-transport.node is up to date");
    return;
  }
  const done = cargo("build");
  if (done.status !== 0) throw new Error(`cargo build failed:\n${done.stderr.trimEnd()}`);
  // A process that has loaded the old file keeps it, because the rename replaces the file and does not write into it.
  const fresh = `${ADDON}.${process.pid}`;
  copyFileSync(join(TARGET_DIR, "release", LIBRARY), fresh);
  renameSync(fresh, ADDON);
  writeFileSync(STAMP, hash);
  console.log("native-transport: built build/native-transport.node");
}

/** Makes the package that src/addon.ts loads when nothing is built. */
function makePackage() {
  const { version, license } = JSON.parse(readFileSync(join(PACKAGE_DIR, "package.json"), "utf8"));
  const { platform, arch } = process;
  const libc = platform === "linux" ? { libc: ["glibc"] } : {};
  const manifest = {
    name: `@tributary/native-transport-${platform}-${arch}`,
    version,
    license,
    main: "native-transport.node",
    files: ["native-transport.node"],
    description: `Tributary's native transport, built for ${platform}-${arch}`,
    os: [platform],
    cpu: [arch],
    ...libc,
  };
  const dir = join(BUILD_DIR, "package");
  mkdirSync(dir, { recursive: true });
  copyFileSync(ADDON, join(dir, "native-transport.node"));
  copyFileSync(join(PACKAGE_DIR, "..", "LICENSE"), join(dir, "LICENSE"));
  writeFileSync(join(dir, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  console.log(`native-transport: made build/package, ${manifest.name} ${version}`);
}

try {
  build();
  if (process.argv.includes("--package")) makePackage();
} catch (error) {
  console.error(`native-transport: ${error.message}`);
  process.exitCode = 1;
}
