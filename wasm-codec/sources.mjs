/** The sources, engines and flags of the WebAssembly modules. Both compilers use them. */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const PACKAGE_DIR = dirname(fileURLToPath(import.meta.url));
export const CORE_DIR = join(PACKAGE_DIR, "..", "native-codec");

const CORE_SOURCES = [
  "coefficients",
  "collector",
  "decoder",
  "elimination",
  "encoder",
  "engines",
  "gf256",
  "recoder",
  "repair",
  "rows",
  "solver",
];

export const LANGUAGE_FLAGS = [
  "-std=c++20",
  "-Wall",
  "-Wextra",
  "-Werror",
  "-fno-exceptions",
  "-fno-rtti",
  "-fno-threadsafe-statics",
];

/** For engines, whose loops are already written in vector form. */
export const ENGINE_FLAGS = ["-O2", "-fno-vectorize", "-fno-slp-vectorize"];

export const MODULES = [
  { file: "codec-relaxed.wasm", engine: "engine_simd128", flags: ["-msimd128", "-mrelaxed-simd"] },
  { file: "codec.wasm", engine: "engine_simd128", flags: ["-msimd128"] },
  { file: "codec-scalar.wasm", engine: "engine_scalar", flags: ["-mno-simd128"] },
];

/** One text that includes all sources but the engine. It compiles in a third of the time and can inline everything. */
export function coreText(coreDir, ownDir) {
  const files = [
    ...CORE_SOURCES.map((name) => `${coreDir}src/${name}.cc`),
    `${ownDir}binding.cc`,
    `${ownDir}allocator.cc`,
  ];
  return files.map((file) => `#include "${file}"\n`).join("");
}

export const engineText = (module, coreDir) => `#include "${coreDir}src/${module.engine}.cc"\n`;
