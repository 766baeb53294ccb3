/**
 * Builds build/codec.node with a plain C++ compiler (g++, or what CXX names): no node-gyp, no headers to download, as
 * the npm packages node-api-headers and node-addon-api bring them. Does nothing when no input has changed.
 *
 *   node native-codec/build.mjs              exits 1 when it cannot be built
 *   node native-codec/build.mjs --optional   warns and exits 0 then: the codec falls back to WebAssembly
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { compile, compileAll, CORE_SOURCES, PACKAGE_DIR } from "./toolchain.mjs";

const BUILD_DIR = join(PACKAGE_DIR, "build");
const ADDON = join(BUILD_DIR, "codec.node");
const STAMP = join(BUILD_DIR, "codec.stamp");
const FLAGS = [
  "-O3", "-fPIC", "-fvisibility=hidden", "-pthread", "-DNAPI_VERSION=8", "-DNODE_ADDON_API_CPP_EXCEPTIONS",
  "-DNODE_ADDON_API_DISABLE_DEPRECATED",
  "-DNODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS", // a worker that is terminated takes none any more
];

/** The C++ runtime inside, so that the file runs on systems with an older one. */
const PORTABLE = process.platform === "linux" ? ["-static-libstdc++", "-static-libgcc"] : [];
const ADDON_SOURCES = ["addon.cc", "addon_coders.cc", "addon_executor.cc", "addon_pool.cc"];

const require = createRequire(import.meta.url);
const headerDirs = () => [require("node-api-headers").include_dir, dirname(require.resolve("node-addon-api/napi.h"))];

/** One hash over everything that the addon is made from. */
function inputHash(compilerVersion) {
  const hash = createHash("sha256").update([process.arch, process.platform, compilerVersion, ...FLAGS].join("\n"));
  for (const dir of ["src", join("include", "tributary")]) {
    for (const name of readdirSync(join(PACKAGE_DIR, dir)).filter((name) => /\.(cc|h)$/.test(name)).sort()) {
      hash.update(`\n${name}\n`).update(readFileSync(join(PACKAGE_DIR, dir, name)));
    }
  }
  for (const name of ["build.mjs", "toolchain.mjs"]) hash.update(readFileSync(join(PACKAGE_DIR, name)));
  for (const name of ["node-api-headers", "node-addon-api"]) hash.update(readFileSync(require.resolve(`${name}/package.json`)));
  return hash.digest("hex");
}

async function build() {
  const hash = inputHash(await compile(["--version"]));
  if (existsSync(ADDON) && existsSync(STAMP) && readFileSync(STAMP, "utf8") === hash) {
    console.log("native-codec: build/codec.node is up to date");
    return;
  }
  mkdirSync(BUILD_DIR, { recursive: true });
  const nodeFlags = headerDirs().flatMap((dir) => ["-isystem", dir]);
  const sources = [...ADDON_SOURCES.map((name) => ({ file: join("src", name), flags: nodeFlags })), ...CORE_SOURCES];
  const objects = await compileAll(sources, FLAGS, join(BUILD_DIR, "objects"));
  const fresh = `${ADDON}.${process.pid}`;
  await compile(["-shared", "-s", "-pthread", ...PORTABLE, ...objects, "-o", fresh]);
  renameSync(fresh, ADDON); // a process that has the old file loaded keeps it
  writeFileSync(STAMP, hash);
  console.log("native-codec: built build/codec.node");
}

try {
  await build();
} catch (error) {
  console.error(`native-codec: not built: ${error.message}`);
  process.exitCode = process.argv.includes("--optional") ? 0 : 1;
}
