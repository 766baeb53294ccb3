/**
 * Builds module/codec.wasm (SIMD128), codec-relaxed.wasm and codec-scalar.wasm from the C++ core in native-codec and
 * src/binding.cc. The compiler is the npm package @yowasp/clang, itself WebAssembly, at one pinned version: the same
 * bytes come out wherever npm runs. It is installed into .cache/ on first use (101 MB) and is no dependency of the
 * project.
 *
 *   node wasm-codec/build.mjs            builds, writes module/
 *   node wasm-codec/build.mjs --check    builds, compares with module/ byte for byte, writes nothing there
 */
/* global WebAssembly */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { setFlagsFromString } from "node:v8";
import { CORE_DIR, coreText, ENGINE_FLAGS, engineText, LANGUAGE_FLAGS, MODULES, PACKAGE_DIR } from "./sources.mjs";

const TOOLCHAIN_DIR = join(PACKAGE_DIR, ".cache", "toolchain");
const TOOLCHAIN_VERSION = "22.0.0-git20542-10";

const COMPILE_FLAGS = [
  "--target=wasm32-wasip1",
  ...LANGUAGE_FLAGS,
  "-ffunction-sections",
  "-Icore/include",
  "-Icore/src",
];
const LINK_FLAGS = [
  "--target=wasm32-wasip1",
  "-mexec-model=reactor",
  "-nostartfiles",
  "-Wl,--no-entry",
  "-Wl,--strip-all",
  "-Wl,--gc-sections",
  "-Wl,-z,stack-size=65536",
  "-Wl,--stack-first",
];

async function loadToolchain() {
  const entry = join(TOOLCHAIN_DIR, "node_modules", "@yowasp", "clang");
  const manifest = join(entry, "package.json");
  if (!existsSync(manifest) || JSON.parse(readFileSync(manifest, "utf8")).version !== TOOLCHAIN_VERSION) {
    mkdirSync(TOOLCHAIN_DIR, { recursive: true });
    writeFileSync(join(TOOLCHAIN_DIR, "package.json"), '{"private":true}\n');
    console.log(`installing @yowasp/clang ${TOOLCHAIN_VERSION} into ${TOOLCHAIN_DIR}`);
    execFileSync(
      "npm",
      ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--save-exact", `@yowasp/clang@${TOOLCHAIN_VERSION}`],
      { cwd: TOOLCHAIN_DIR, stdio: "inherit" },
    );
  }
  return import(pathToFileURL(join(entry, "gen", "bundle.js")).href);
}

/** The file tree the compiler sees: relative names only, so that no path of this machine reaches the module. */
function sourceTree(module) {
  const texts = (dir, pattern) =>
    Object.fromEntries(
      readdirSync(dir)
        .filter((name) => pattern.test(name))
        .map((name) => [name, readFileSync(join(dir, name), "utf8")]),
    );
  return {
    core: {
      include: { tributary: texts(join(CORE_DIR, "include", "tributary"), /\.h$/) },
      src: texts(join(CORE_DIR, "src"), /\.(h|cc)$/),
    },
    ...texts(join(PACKAGE_DIR, "src"), /\.cc$/),
    "core.cc": coreText("core/", ""),
    "engine.cc": engineText(module, "core/"),
  };
}

/** Engines for speed, all else for size. */
async function compile(toolchain, module) {
  const clang = async (args, tree, output) =>
    (await toolchain.runClang(["clang++", ...args, "-o", output], tree, { fetchProgress: () => {} }))[output];
  const object = (flags, name) =>
    clang([...COMPILE_FLAGS, ...module.flags, ...flags, "-c", `${name}.cc`], sourceTree(module), `${name}.o`);
  try {
    const objects = { "core.o": await object(["-Os"], "core"), "engine.o": await object(ENGINE_FLAGS, "engine") };
    return await clang([...LINK_FLAGS, ...Object.keys(objects)], objects, module.file);
  } catch (error) {
    // The toolchain's own error prints the whole file tree; what the compiler had to say stands above already.
    throw new Error(`${module.file} does not build: ${error.message}`, { cause: error });
  }
}

const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

/** Names, as a person should read them, of what in module/ is not what the sources give. */
function differences(built) {
  const committed = (name) =>
    existsSync(join(PACKAGE_DIR, "module", name)) ? readFileSync(join(PACKAGE_DIR, "module", name)) : Buffer.alloc(0);
  return built
    .filter(({ file, bytes }) => !committed(file).equals(bytes))
    .map(({ file, bytes }) => `${file} (module/ has ${sha256(committed(file))}, the sources give ${sha256(bytes)})`);
}

// Only the message: the causes are long, see compile().
process.on("uncaughtException", (error) => {
  console.error(error.message);
  process.exit(1);
});

setFlagsFromString("--experimental-wasm-relaxed-simd"); // Node 20 has it behind this flag; later ones ignore it
const toolchain = await loadToolchain();
const built = [];
for (const module of MODULES) {
  const startedMs = Date.now();
  const bytes = Buffer.from(await compile(toolchain, module));
  if (!WebAssembly.validate(bytes)) throw new Error(`${module.file} does not validate`);
  built.push({ file: module.file, bytes });
  console.log(`${module.file}: ${bytes.length} bytes, ${((Date.now() - startedMs) / 1000).toFixed(1)} s`);
}
built.push({
  file: "SHA256SUMS",
  bytes: Buffer.from(built.map(({ file, bytes }) => `${sha256(bytes)}  ${file}\n`).join("")),
});

if (process.argv.includes("--check")) {
  const different = differences(built);
  if (different.length > 0) {
    console.error(
      `wasm-codec/module is not what the sources build: ${different.join("; ")}. Run \`node wasm-codec/build.mjs\` and commit module/.`,
    );
    process.exit(1);
  }
  console.log("wasm-codec/module is what the sources build.");
} else {
  mkdirSync(join(PACKAGE_DIR, "module"), { recursive: true });
  for (const { file, bytes } of built) writeFileSync(join(PACKAGE_DIR, "module", file), bytes);
}
