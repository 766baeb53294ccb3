/**
 * Builds build/codec.node with a plain C++ compiler: g++, or the one that CXX names. It needs no node-gyp, because the
 * npm packages node-api-headers and node-addon-api bring the headers. It does nothing if no input has changed.
 *
 *   node native-codec/build.mjs              builds the addon; exits with 1 if that fails
 *   node native-codec/build.mjs --optional   warns and exits with 0 if that fails: the codec falls back to WebAssembly
 *   node native-codec/build.mjs --package    also makes build/package/, the npm package for this platform, which
 *                                            `npm pack` packs. A machine that installs it needs no compiler.
 */
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { ADDON_FLAGS, buildAddon, compile, PACKAGE_DIR } from "./toolchain.mjs";

const BUILD_DIR = join(PACKAGE_DIR, "build");
const ADDON = join(BUILD_DIR, "codec.node");
const STAMP = join(BUILD_DIR, "codec.stamp");
const require = createRequire(import.meta.url);
/** Links the C++ runtime into the file, so that it runs on systems with an older runtime. */
const PORTABLE = process.platform === "linux" ? ["-static-libstdc++", "-static-libgcc"] : [];

/** Returns one hash of all inputs of the build. */
function inputHash(compilerVersion) {
  const hash = createHash("sha256").update(
    [process.arch, process.platform, compilerVersion, ...ADDON_FLAGS].join("\n"),
  );
  for (const dir of ["src", join("src", "gpu"), join("include", "tributary")]) {
    for (const name of readdirSync(join(PACKAGE_DIR, dir))
      .filter((name) => /\.(cc|h|bin)$/.test(name))
      .sort()) {
      hash.update(`\n${name}\n`).update(readFileSync(join(PACKAGE_DIR, dir, name)));
    }
  }
  for (const name of ["build.mjs", "toolchain.mjs"]) hash.update(readFileSync(join(PACKAGE_DIR, name)));
  for (const name of ["node-api-headers", "node-addon-api"])
    hash.update(readFileSync(require.resolve(`${name}/package.json`)));
  return hash.digest("hex");
}

async function build() {
  const hash = inputHash(await compile(["--version"]));
  if (existsSync(ADDON) && existsSync(STAMP) && readFileSync(STAMP, "utf8") === hash) {
    console.log("native-codec: build/codec.node is up to date");
    return;
  }
  mkdirSync(BUILD_DIR, { recursive: true });
  const fresh = `${ADDON}.${process.pid}`;
  await buildAddon({
    file: fresh,
    objectDir: join(BUILD_DIR, "objects"),
    flags: ["-O3"],
    linkFlags: ["-s", ...PORTABLE],
  });
  renameSync(fresh, ADDON); // a process that has the old file loaded keeps it
  writeFileSync(STAMP, hash);
  console.log("native-codec: built build/codec.node");
}

/** Makes the package that src/addon.ts loads if nothing is built. It has all engines of the architecture. */
function makePackage() {
  const { version, license } = JSON.parse(readFileSync(join(PACKAGE_DIR, "package.json"), "utf8"));
  const { platform, arch } = process;
  const libc = platform === "linux" ? { libc: ["glibc"] } : {};
  const manifest = {
    name: `@tributary/native-codec-${platform}-${arch}`,
    version,
    license,
    main: "codec.node",
    files: ["codec.node"],
    description: `Tributary's native codec, built for ${platform}-${arch}`,
    os: [platform],
    cpu: [arch],
    ...libc,
  };
  const dir = join(BUILD_DIR, "package");
  mkdirSync(dir, { recursive: true });
  copyFileSync(ADDON, join(dir, "codec.node"));
  copyFileSync(join(PACKAGE_DIR, "..", "LICENSE"), join(dir, "LICENSE"));
  writeFileSync(join(dir, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  console.log(`native-codec: made build/package, ${manifest.name} ${version}`);
}

try {
  await build();
  if (process.argv.includes("--package")) makePackage();
} catch (error) {
  console.error(`native-codec: not built: ${error.message}`);
  process.exitCode = process.argv.includes("--optional") ? 0 : 1;
}
