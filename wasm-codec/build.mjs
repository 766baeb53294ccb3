/**
 * Builds module/codec.wasm (SIMD128), codec-relaxed.wasm and codec-scalar.wasm from native-codec's C++ core and
 * src/binding.cc. The compiler is one pinned version of the npm package @yowasp/clang. It is WebAssembly itself, so the
 * same bytes come out on every machine. The first build installs it into .cache/ (101 MB). The project does not depend
 * on it.
 *
 *   node wasm-codec/build.mjs            builds the modules and writes them to module/
 *   node wasm-codec/build.mjs --check    builds the modules and compares them with module/ byte for byte
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

/** The file tree that the compiler sees. Its names are relative, so that no local path gets into a module. */
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

/** Compiles a module: the engine for speed, all the rest for size. */
async function compile(toolchain, module) {
  const clang = async (args, tree, output) =>
    (await toolchain.runClang(["clang++", ...args, "-o", output], tree, { fetchProgress: () => {} }))[output];
  const object = (flags, name) =>
    clang([...COMPILE_FLAGS, ...module.flags, ...flags, "-c", `${name}.cc`], sourceTree(module), `${name}.o`);
  try {
    const objects = { "core.o": await object(["-Os"], "core"), "engine.o": await object(ENGINE_FLAGS, "engine") };
    return await clang([...LINK_FLAGS, ...Object.keys(objects)], objects, module.file);
  } catch (error) {
    // The toolchain's error prints the whole file tree. The compiler has already printed its messages.
    throw new Error(`${module.file} does not build: ${error.message}`, { cause: error });
  }
}

const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

/** Describes each file of module/ that differs from what the sources give. */
function differences(built) {
  const committed = (name) =>
    existsSync(join(PACKAGE_DIR, "module", name)) ? readFileSync(join(PACKAGE_DIR, "module", name)) : Buffer.alloc(0);
  return built
    .filter(({ file, bytes }) => !committed(file).equals(bytes))
    .map(({ file, bytes }) => `${file} (module/ has ${sha256(committed(file))}, the sources give ${sha256(bytes)})`);
}

// The causes of an error are long (see compile()), so only its message is printed.
process.on("uncaughtException", (error) => {
  console.error(error.message);
  process.exit(1);
});

// Node 20 runs relaxed SIMD only with this flag. Later versions ignore it.
setFlagsFromString("--experimental-wasm-relaxed-simd");
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
      `wasm-codec/module differs from what the sources build: ${different.join("; ")}. ` +
        "Run `node wasm-codec/build.mjs` and commit module/.",
    );
    process.exit(1);
  }
  console.log("wasm-codec/module is what the sources build.");
} else {
  mkdirSync(join(PACKAGE_DIR, "module"), { recursive: true });
  for (const { file, bytes } of built) writeFileSync(join(PACKAGE_DIR, "module", file), bytes);
}
