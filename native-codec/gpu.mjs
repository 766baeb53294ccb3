/**
 * Builds src/gpu/modules.bin, the GPU's machine code, from src/gpu/kernels.cu. It needs no GPU and no CUDA. The
 * compiler is NVRTC from a pinned PyPI package (91 MB), which it fetches into .cache/ and checks by its SHA-256.
 *
 *   node native-codec/gpu.mjs            builds the file
 *   node native-codec/gpu.mjs --check    builds it and compares it with the committed one byte for byte
 *
 * Exit status: 0 built or equal, 1 failed or different, 3 nothing was checked, because the compiler is not to be had.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inflateRawSync } from "node:zlib";
import { compile, PACKAGE_DIR } from "./toolchain.mjs";

const COMPILER = "nvidia-cuda-nvrtc-cu12";
const COMPILER_VERSION = "12.9.86";
const COMPILER_SHA256 = "210cf05005a447e29214e9ce50851e83fc5f4358df8b453155d5e1918094dcb4";
const CACHE_DIR = join(PACKAGE_DIR, ".cache", "nvrtc");
const LIBRARY_PREFIX = "nvidia/cuda_nvrtc/lib/";
const LIBRARY_DIR = join(CACHE_DIR, "lib");
const LIBRARY = join(LIBRARY_DIR, "libnvrtc.so.12");
const DOWNLOAD_MS_MAX = 120_000;
const SOURCE_DIR = join(PACKAGE_DIR, "src", "gpu");
const OUTPUT = join(SOURCE_DIR, "modules.bin");
/** Machine code for these chips. A chip runs code for an earlier minor number. PTX is for all later chips. */
const ARCHITECTURES = ["sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120", "compute_80"];

function run(program, args, options = {}) {
  const { status, error, stderr } = spawnSync(program, args, { encoding: "utf8", ...options });
  if (status === 0) return;
  const reason = error?.message ?? stderr.trim().split("\n").at(-1);
  throw new Error(`${program} ${args.slice(0, 3).join(" ")} failed: ${reason}`);
}

/** The compiler cannot be had here: a wrong machine or no network. */
class Unavailable extends Error {}

/** Returns the package's bytes, from PyPI. */
async function download() {
  const get = async (url) => {
    const response = await fetch(url, { signal: AbortSignal.timeout(DOWNLOAD_MS_MAX) });
    if (!response.ok) throw new Error(`${url} answers ${response.status}`);
    return response;
  };
  const release = await (await get(`https://pypi.org/pypi/${COMPILER}/${COMPILER_VERSION}/json`)).json();
  const file = release.urls.find(({ digests }) => digests.sha256 === COMPILER_SHA256);
  if (file === undefined) throw new Error(`PyPI has no file of ${COMPILER} with SHA-256 ${COMPILER_SHA256}`);
  return Buffer.from(await (await get(file.url)).arrayBuffer());
}

/** Fetches the package by pip, which knows this machine's registry, or else from PyPI. */
async function fetchPackage() {
  const requirements = join(CACHE_DIR, "requirements.txt");
  writeFileSync(requirements, `${COMPILER}==${COMPILER_VERSION} --hash=sha256:${COMPILER_SHA256}\n`);
  const options = [
    "--no-deps",
    "--only-binary=:all:",
    "--platform",
    "manylinux2014_x86_64",
    "--require-hashes",
    "--retries",
    "1",
  ];
  try {
    run("python3", ["-m", "pip", "download", "-q", "-d", CACHE_DIR, ...options, "-r", requirements]);
    return readFileSync(
      join(
        CACHE_DIR,
        readdirSync(CACHE_DIR).find((name) => name.endsWith(".whl")),
      ),
    );
  } catch (pipError) {
    try {
      return await download();
    } catch (error) {
      throw new Unavailable(`${pipError.message.trim()}; ${error.message}`);
    }
  }
}

async function fetchCompiler() {
  if (existsSync(LIBRARY)) return;
  if (process.platform !== "linux" || process.arch !== "x64") throw new Unavailable("it runs on Linux on x86-64 alone");
  mkdirSync(CACHE_DIR, { recursive: true });
  const bytes = await fetchPackage();
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  if (sha256 !== COMPILER_SHA256) throw new Error(`${COMPILER} has SHA-256 ${sha256}, not ${COMPILER_SHA256}`);
  for (const { name, content } of filesOf(bytes)) {
    if (!name.startsWith(LIBRARY_PREFIX)) continue;
    mkdirSync(LIBRARY_DIR, { recursive: true });
    writeFileSync(join(LIBRARY_DIR, name.slice(LIBRARY_PREFIX.length)), content);
  }
}

/** The files of a ZIP archive, by its central directory. */
function filesOf(archive) {
  const files = [];
  const end = archive.lastIndexOf("PK\x05\x06", undefined, "latin1");
  let entry = archive.readUInt32LE(end + 16);
  for (let left = archive.readUInt16LE(end + 10); left > 0; left--) {
    const [nameBytes, extraBytes, commentBytes] = [28, 30, 32].map((at) => archive.readUInt16LE(entry + at));
    const name = archive.toString("utf8", entry + 46, entry + 46 + nameBytes);
    const local = archive.readUInt32LE(entry + 42);
    const start = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28);
    const packed = archive.subarray(start, start + archive.readUInt32LE(entry + 20));
    files.push({ name, content: archive.readUInt16LE(entry + 10) === 0 ? packed : inflateRawSync(packed) });
    entry += 46 + nameBytes + extraBytes + commentBytes;
  }
  return files;
}

/** Compiles the kernels for each architecture. */
async function images() {
  const program = join(CACHE_DIR, "compile_kernels");
  await compile(["-std=c++20", "-O1", "src/gpu/compile_kernels.cc", "-ldl", "-o", program]);
  return ARCHITECTURES.map((architecture) => {
    const file = join(CACHE_DIR, `kernels-${architecture}`);
    const env = { ...process.env, LD_LIBRARY_PATH: LIBRARY_DIR };
    run(program, [LIBRARY, SOURCE_DIR, architecture, file], { env });
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
  if (!(error instanceof Unavailable)) {
    console.error(error.message);
    process.exit(1);
  }
  console.log(`gpu: NOT CHECKED: the compiler ${COMPILER} ${COMPILER_VERSION} is not to be had: ${error.message}`);
  process.exit(3);
});

await fetchCompiler();
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
