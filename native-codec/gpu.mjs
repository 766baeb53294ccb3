/**
 * Builds src/gpu/modules.bin, the GPU's machine code, from src/gpu/kernels.cu. It needs no GPU and no CUDA. The
 * compiler is NVRTC from a pinned PyPI package (91 MB), which pip fetches into .cache/ and checks by its SHA-256.
 *
 *   node native-codec/gpu.mjs            builds the file
 *   node native-codec/gpu.mjs --check    builds it and compares it with the committed one byte for byte
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compile, PACKAGE_DIR } from "./toolchain.mjs";

const COMPILER = "nvidia-cuda-nvrtc-cu12==12.9.86";
const COMPILER_SHA256 = "210cf05005a447e29214e9ce50851e83fc5f4358df8b453155d5e1918094dcb4";
const CACHE_DIR = join(PACKAGE_DIR, ".cache", "nvrtc");
const LIBRARY_DIR = join(CACHE_DIR, "nvidia", "cuda_nvrtc", "lib");
const SOURCE_DIR = join(PACKAGE_DIR, "src", "gpu");
const OUTPUT = join(SOURCE_DIR, "modules.bin");
/** Machine code for these chips. A chip runs code for an earlier minor number. PTX is for all later chips. */
const ARCHITECTURES = ["sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120", "compute_80"];

function run(program, args, options = {}) {
  const { status, error, stderr } = spawnSync(program, args, { encoding: "utf8", ...options });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")} failed: ${error?.message ?? stderr}`);
}

function fetchCompiler() {
  if (existsSync(LIBRARY_DIR)) return;
  mkdirSync(CACHE_DIR, { recursive: true });
  const requirements = join(CACHE_DIR, "requirements.txt");
  writeFileSync(requirements, `${COMPILER} --hash=sha256:${COMPILER_SHA256}\n`);
  const fetchOptions = ["--no-deps", "--only-binary=:all:", "--platform", "manylinux2014_x86_64", "--require-hashes"];
  run("python3", ["-m", "pip", "download", "-q", "-d", CACHE_DIR, ...fetchOptions, "-r", requirements]);
  const wheel = readdirSync(CACHE_DIR).find((name) => name.endsWith(".whl"));
  run("python3", ["-m", "zipfile", "-e", join(CACHE_DIR, wheel), CACHE_DIR]);
}

/** Compiles the kernels for each architecture. */
async function images() {
  const program = join(CACHE_DIR, "compile_kernels");
  await compile(["-std=c++20", "-O1", "src/gpu/compile_kernels.cc", "-ldl", "-o", program]);
  return ARCHITECTURES.map((architecture) => {
    const file = join(CACHE_DIR, `kernels-${architecture}`);
    const env = { ...process.env, LD_LIBRARY_PATH: LIBRARY_DIR };
    run(program, [join(LIBRARY_DIR, "libnvrtc.so.12"), SOURCE_DIR, architecture, file], { env });
    const image = readFileSync(file);
    console.log(`${architecture}: ${image.length} bytes`);
    return { architecture, image };
  });
}

/** The format of modules.bin: src/gpu/modules.cc. */
function pack(entries) {
  const align = (bytes) => Math.ceil(bytes / 16) * 16;
  const headerBytes = align(4 + 16 * entries.length);
  const total = entries.reduce((sum, { image }) => sum + align(image.length), headerBytes);
  const packed = Buffer.alloc(total);
  packed.writeUInt32LE(entries.length, 0);
  let offset = headerBytes;
  entries.forEach(({ architecture, image }, index) => {
    const [kind, capability] = architecture.split("_");
    const numbers = [Number(capability), kind === "compute" ? 1 : 0, offset, image.length];
    numbers.forEach((number, field) => packed.writeUInt32LE(number, 4 + 16 * index + 4 * field));
    image.copy(packed, offset);
    offset += align(image.length);
  });
  return packed;
}

process.on("uncaughtException", (error) => {
  console.error(error.message);
  process.exit(1);
});

fetchCompiler();
const built = pack(await images());
if (!process.argv.includes("--check")) {
  writeFileSync(OUTPUT, built);
} else if (!existsSync(OUTPUT) || !readFileSync(OUTPUT).equals(built)) {
  console.error(
    "native-codec/src/gpu/modules.bin differs from what kernels.cu gives. " +
      "Run `node native-codec/gpu.mjs` and commit the file.",
  );
  process.exit(1);
} else {
  console.log("native-codec/src/gpu/modules.bin is what kernels.cu gives.");
}
