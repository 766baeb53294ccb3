/** How the C++ of this package is compiled: sources, flags for each, objects in parallel. Used by build.mjs, test.mjs and fuzz.mjs. */
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const PACKAGE_DIR = dirname(fileURLToPath(import.meta.url));
export const COMPILER = process.env.CXX ?? "g++";

const X86_ENGINES = { "engine_ssse3.cc": ["-mssse3"], "engine_avx2.cc": ["-mavx2"], "engine_gfni256.cc": ["-mavx2", "-mgfni"], "engine_gfni512.cc": ["-mgfni", "-mavx512f", "-mavx512bw"] };
const IS_X86 = process.arch === "x64";
const IS_ARM = process.arch === "arm64";

/** The core's source files, each with the flags that it alone is compiled with. */
export const CORE_SOURCES = [
  ...["coefficients", "collector", "decoder", "elimination", "encoder", "engine_reference", "engine_scalar", "engines", "gf256", "recoder", "repair", "rows", "solver"].map(
    (name) => ({ file: join("src", `${name}.cc`), flags: [] }),
  ),
  ...(IS_X86 ? Object.entries(X86_ENGINES).map(([name, flags]) => ({ file: join("src", name), flags })) : []),
  ...(IS_ARM ? [{ file: join("src", "engine_neon.cc"), flags: [] }] : []),
];

export const COMMON_FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-Iinclude", "-Isrc"];

/** Runs the compiler; rejects with what it printed. */
export function compile(args) {
  return new Promise((resolve, reject) => {
    const child = spawn(COMPILER, args, { cwd: PACKAGE_DIR, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout.on("data", (text) => (output += text));
    child.stderr.on("data", (text) => (output += text));
    child.on("error", (error) => reject(new Error(`cannot run the C++ compiler ${COMPILER} (${error.code}); set CXX or install g++`)));
    child.on("close", (code) => (code === 0 ? resolve(output) : reject(new Error(output || `${COMPILER} exited with ${code}`))));
  });
}

/** clang mis-assembles what engine_gfni512.cc needs, so only GCC builds it: docs in that file. */
async function engineFlags() {
  if (!IS_X86) return [];
  const macros = await compile(["-dM", "-E", "-x", "c++", "/dev/null"]);
  return macros.includes("__clang__") ? [] : ["-DTRIBUTARY_HAS_GFNI512"];
}

/** Compiles `sources` into `objectDir`, as many at once as there are cores, and returns the objects' paths. */
export async function compileAll(sources, flags, objectDir) {
  mkdirSync(objectDir, { recursive: true });
  const shared = [...COMMON_FLAGS, ...(await engineFlags()), ...flags];
  const queue = sources.map(({ file, flags: own }) => ({ file, own, object: join(objectDir, `${basename(file, ".cc")}.o`) }));
  const objects = queue.map(({ object }) => object);
  const work = async () => {
    for (let job = queue.shift(); job !== undefined; job = queue.shift()) {
      await compile([...shared, ...job.own, "-c", job.file, "-o", job.object]);
    }
  };
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), sources.length) }, work));
  return objects;
}

/** The linker's flag that lets a test make allocations of the core fail. */
export const WRAP_ALLOCATIONS = "-Wl,--wrap=calloc,--wrap=malloc";

/** Builds test/NAME.cc with the core, AddressSanitizer and UBSan, and returns the program's path; ends the process when it cannot. */
export async function buildSanitized(name) {
  const sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
  const dir = join(PACKAGE_DIR, "build", "test");
  const program = join(dir, name);
  try {
    const sources = [...CORE_SOURCES, { file: join("test", `${name}.cc`), flags: [] }];
    const objects = await compileAll(sources, ["-O1", "-g", "-fno-omit-frame-pointer", ...sanitizers], dir);
    await compile([...sanitizers, WRAP_ALLOCATIONS, ...objects, "-o", program]);
  } catch (error) {
    console.error(`native-codec: ${name} does not build: ${error.message}`);
    process.exit(1);
  }
  return program;
}
