/** Compiles the C++ of this package, for build.mjs, test.mjs and fuzz.mjs: sources, flags, parallel compilation. */
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const PACKAGE_DIR = dirname(fileURLToPath(import.meta.url));
export const COMPILER = process.env.CXX ?? "g++";

const X86_ENGINES = {
  "engine_ssse3.cc": ["-mssse3"],
  "engine_avx2.cc": ["-mavx2"],
  "engine_gfni256.cc": ["-mavx2", "-mgfni"],
  "engine_gfni512.cc": ["-mgfni", "-mavx512f", "-mavx512bw"],
};
const IS_X86 = process.arch === "x64";
const IS_ARM = process.arch === "arm64";

/** The core's source files, each with the compiler flags of that file alone. */
export const CORE_SOURCES = [
  ...[
    "coefficients",
    "collector",
    "decoder",
    "elimination",
    "encoder",
    "engine_reference",
    "engine_scalar",
    "engines",
    "gf256",
    "recoder",
    "repair",
    "rows",
    "solver",
  ].map((name) => ({ file: join("src", `${name}.cc`), flags: [] })),
  ...(IS_X86 ? Object.entries(X86_ENGINES).map(([name, flags]) => ({ file: join("src", name), flags })) : []),
  ...(IS_ARM ? [{ file: join("src", "engine_neon.cc"), flags: [] }] : []),
];

export const COMMON_FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-Iinclude", "-Isrc"];

export const ADDON_FLAGS = [
  "-fPIC",
  "-fvisibility=hidden",
  "-pthread",
  "-DNAPI_VERSION=8",
  "-DNODE_ADDON_API_CPP_EXCEPTIONS_ALL",
  "-DNODE_ADDON_API_DISABLE_DEPRECATED",
  // A worker that is being terminated accepts no exception.
  "-DNODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS",
];
const ADDON_SOURCES = [
  ...["addon.cc", "addon_coders.cc", "addon_executor.cc", "addon_gpu.cc", "addon_pool.cc"],
  ...["check.cc", "context.cc", "device.cc", "driver.cc", "modules.cc", "residents.cc"].map((name) =>
    join("gpu", name),
  ),
].map((name) => join("src", name));

/** Runs the compiler. Resolves to its output, or rejects with it. */
export function compile(args) {
  return new Promise((resolve, reject) => {
    const child = spawn(COMPILER, args, { cwd: PACKAGE_DIR, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout.on("data", (text) => (output += text));
    child.stderr.on("data", (text) => (output += text));
    child.on("error", (error) =>
      reject(new Error(`cannot run the C++ compiler ${COMPILER} (${error.code}); set CXX or install g++`)),
    );
    child.on("close", (code) =>
      code === 0 ? resolve(output) : reject(new Error(output || `${COMPILER} exited with ${code}`)),
    );
  });
}

/** Only GCC builds engine_gfni512.cc; that file says why. */
async function engineFlags() {
  if (!IS_X86) return [];
  const macros = await compile(["-dM", "-E", "-x", "c++", "/dev/null"]);
  return macros.includes("__clang__") ? [] : ["-DTRIBUTARY_HAS_GFNI512"];
}

/** Compiles `sources` into `objectDir`, one on each core, and returns the objects' paths. */
export async function compileAll(sources, flags, objectDir) {
  mkdirSync(objectDir, { recursive: true });
  const shared = [...COMMON_FLAGS, ...(await engineFlags()), ...flags];
  const queue = sources.map(({ file, flags: own }) => ({
    file,
    own,
    object: join(objectDir, `${basename(file, ".cc")}.o`),
  }));
  const objects = queue.map(({ object }) => object);
  const work = async () => {
    for (let job = queue.shift(); job !== undefined; job = queue.shift()) {
      await compile([...shared, ...job.own, "-c", job.file, "-o", job.object]);
    }
  };
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), sources.length) }, work));
  return objects;
}

/** Builds the addon from its own sources, extra `sources`, and the core. `core` names the core's objects, if built. */
export async function buildAddon({ file, objectDir, flags, linkFlags, sources = [], core }) {
  const require = createRequire(import.meta.url);
  const headerDirs = [require("node-api-headers").include_dir, dirname(require.resolve("node-addon-api/napi.h"))];
  const nodeFlags = headerDirs.flatMap((dir) => ["-isystem", dir]);
  const own = [...ADDON_SOURCES, ...sources].map((source) => ({ file: source, flags: nodeFlags }));
  const compiled = [...ADDON_FLAGS, ...flags];
  const objects = [
    ...(await compileAll(own, compiled, objectDir)),
    ...(core ?? (await compileAll(CORE_SOURCES, compiled, objectDir))),
  ];
  await compile(["-shared", "-pthread", ...linkFlags, ...objects, "-ldl", "-o", file]);
}

/** With this linker flag a test can make the core's allocations fail. */
export const WRAP_ALLOCATIONS = "-Wl,--wrap=calloc,--wrap=malloc";

const SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
const SANITIZED_FLAGS = ["-O1", "-g", "-fno-omit-frame-pointer", ...SANITIZERS];

const SANITIZED_DIR = join(PACKAGE_DIR, "build", "sanitized");
let sanitizedCore;

/** Compiles the core with AddressSanitizer and UBSan, once in this process, and returns its objects. */
function buildSanitizedCore() {
  sanitizedCore ??= compileAll(CORE_SOURCES, [...ADDON_FLAGS, ...SANITIZED_FLAGS], SANITIZED_DIR);
  return sanitizedCore;
}

const inTest = (...names) => names.map((name) => join("test", `${name}.cc`));

const inGpu = (...names) => names.map((name) => join("src", "gpu", `${name}.cc`));

/** The source files of each test program. */
export const TEST_SOURCES = {
  codec_test: inTest("codec_test", "coder_properties", "engine_properties", "misuse_properties", "support"),
  codec_fuzz: inTest("codec_fuzz", "support"),
  gpu_kernels_test: [...inTest("gpu_kernels_test", "support"), ...inGpu("kernels_host", "host_simt")],
  gpu_device_test: [
    ...inTest("gpu_device_test", "support"),
    ...inGpu("check", "context", "device", "driver", "modules", "residents"),
  ],
};

let driverDouble;

/** Builds the stand-in for the GPU's driver (test/gpu_driver_double.cc), sanitized, once, and returns its file. */
export function buildDriverDouble() {
  driverDouble ??= makeDriverDouble();
  return driverDouble;
}

async function makeDriverDouble() {
  const objectDir = join(SANITIZED_DIR, "double");
  const file = join(objectDir, "driver.so");
  const sources = [...inTest("gpu_driver_double"), ...inGpu("kernels_host", "host_simt")];
  const entries = sources.map((source) => ({ file: source, flags: [] }));
  const objects = await compileAll(entries, ["-fPIC", "-fvisibility=hidden", ...SANITIZED_FLAGS], objectDir);
  await compile(["-shared", ...SANITIZERS, ...objects, "-o", file]);
  return file;
}

/** Builds a test program with the sanitized core and returns its path. Ends the process if that fails. */
export async function buildSanitized(name) {
  const program = join(SANITIZED_DIR, name);
  try {
    const core = await buildSanitizedCore();
    const sources = TEST_SOURCES[name].map((file) => ({ file, flags: [] }));
    const own = await compileAll(sources, SANITIZED_FLAGS, SANITIZED_DIR);
    await compile([...SANITIZERS, WRAP_ALLOCATIONS, ...own, ...core, "-ldl", "-o", program]);
  } catch (error) {
    console.error(`native-codec: ${name} does not build: ${error.message}`);
    process.exit(1);
  }
  return program;
}

/**
 * Builds the sanitized addon, whose allocations fail when test/addon_faults.cc says so. Returns its file and the
 * environment variables that a process needs to load it.
 */
export async function buildSanitizedAddon() {
  const file = join(SANITIZED_DIR, "codec.node");
  const wraps = ["malloc", "calloc", "_Znwm", "_Znam", "_ZnwmRKSt9nothrow_t"].map((name) => `--wrap=${name}`);
  await buildAddon({
    file,
    objectDir: SANITIZED_DIR,
    core: await buildSanitizedCore(),
    flags: [...SANITIZED_FLAGS, "-DTRIBUTARY_FAULTS"],
    linkFlags: [...SANITIZERS, `-Wl,${wraps.join(",")}`],
    sources: [join("test", "addon_faults.cc")],
  });
  const libraries = await Promise.all(
    ["libasan.so", "libubsan.so", "libstdc++.so.6"].map((name) => compile([`-print-file-name=${name}`])),
  );
  const env = {
    TRIBUTARY_ADDON: file,
    TRIBUTARY_GPU_DOUBLE: await buildDriverDouble(),
    LD_PRELOAD: libraries.map((name) => name.trim()).join(" "),
    ASAN_OPTIONS: "detect_leaks=0:quarantine_size_mb=8",
    UBSAN_OPTIONS: "print_stacktrace=1",
  };
  return { file, env };
}
