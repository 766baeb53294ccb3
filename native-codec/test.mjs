/**
 * Tests the C++ with AddressSanitizer and UBSan, built by g++:
 *
 * - the core, by test/codec_test.cc and by 10^6 operations of test/codec_fuzz.cc;
 * - the GPU's kernels, compiled for the host, by test/gpu_kernels_test.cc, and the GPU coder on a stand-in for the
 *   driver, by test/gpu_device_test.cc;
 * - the addon, by native-codec's Jest tests and with failing allocations (test/addon-faults.mjs). This needs the
 *   compiled TypeScript (`npm run build`);
 * - the core for AArch64 under qemu, by test/codec_test.cc without sanitizers. This needs a cross compiler and qemu
 *   (on Debian: g++-aarch64-linux-gnu, qemu-user). Root installs them; without them this part is skipped.
 *
 *   node native-codec/test.mjs                 runs everything; prints lines `N passed, N failed`
 *   node native-codec/test.mjs SEED            replays one case of codec_test.cc
 *   node native-codec/test.mjs SEED CASES      runs CASES cases of codec_test.cc from SEED on
 *   node native-codec/test.mjs gpu             tests the GPU coder alone; add a seed to run one case of its kernels
 *   node native-codec/test.mjs addon           tests the addon alone; add `faults` or `jest` to run one half of it
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  buildDriverDouble,
  buildSanitized,
  buildSanitizedAddon,
  COMMON_FLAGS,
  CORE_SOURCES,
  PACKAGE_DIR,
  TEST_SOURCES,
  WRAP_ALLOCATIONS,
} from "./toolchain.mjs";

const FUZZ_OPERATIONS = "1e6";
const ARM_DIR = join(PACKAGE_DIR, "build", "arm");
const ARM_COMPILER = "aarch64-linux-gnu-g++";
const ARM_EMULATOR = "qemu-aarch64";
const ARM_PACKAGES = ["g++-aarch64-linux-gnu", "qemu-user"];
const ARM_CASES = "600";

const runs = (program, args) => spawnSync(program, args, { stdio: "ignore" }).status === 0;
const shows = (program, args) => spawnSync(program, args, { stdio: "inherit", cwd: PACKAGE_DIR }).status === 0;

function hasArmTools() {
  const there = () => runs(ARM_COMPILER, ["--version"]) && runs(ARM_EMULATOR, ["--version"]);
  if (there()) return true;
  if (process.getuid?.() !== 0) return false;
  return runs("apt-get", ["install", "-y", "--no-install-recommends", ...ARM_PACKAGES]) && there();
}

function testsArm() {
  if (!hasArmTools()) {
    console.log(`native-codec: the NEON engine is not tested, because that needs ${ARM_PACKAGES.join(" and ")}`);
    return true;
  }
  mkdirSync(ARM_DIR, { recursive: true });
  const program = join(ARM_DIR, "codec_test");
  const sources = CORE_SOURCES.map(({ file }) => file).filter((file) => !/engine_(ssse3|avx2|gfni\d+)\.cc$/.test(file));
  const files = [...new Set([...sources, join("src", "engine_neon.cc"), ...TEST_SOURCES.codec_test])];
  const builds = shows(ARM_COMPILER, [...COMMON_FLAGS, "-O1", "-static", WRAP_ALLOCATIONS, ...files, "-o", program]);
  console.log("native-codec: AArch64 under qemu");
  return builds && shows(ARM_EMULATOR, [program, "1", ARM_CASES]);
}

const ROOT = join(PACKAGE_DIR, "..");
const runsAddon = (args, env, stdio = "inherit") =>
  spawnSync(process.execPath, args, { stdio, cwd: ROOT, env: { ...process.env, ...env } }).status === 0;

/** Runs this package's Jest tests on the sanitized addon. A crash leaves no report and counts as one failure. */
function testsAddonWithJest(env) {
  const folder = mkdtempSync(join(tmpdir(), "tributary-addon-"));
  const report = join(folder, "report.json");
  const passes = runsAddon(
    [
      "node_modules/jest/bin/jest.js",
      "native-codec",
      "--runInBand",
      "--testTimeout",
      "60000",
      "--json",
      "--outputFile",
      report,
    ],
    env,
    ["ignore", "ignore", "inherit"],
  );
  let counts = { numPassedTests: 0, numFailedTests: 0, numRuntimeErrorTestSuites: 1 };
  try {
    counts = JSON.parse(readFileSync(report, "utf8"));
  } catch {
    console.error("native-codec: Jest ended without a report");
  }
  rmSync(folder, { recursive: true });
  console.log(`${counts.numPassedTests} passed, ${counts.numFailedTests + counts.numRuntimeErrorTestSuites} failed`);
  return passes;
}

async function testsAddon(half) {
  const { env } = await buildSanitizedAddon();
  const halves = {
    faults: () => runsAddon(["native-codec/test/addon-faults.mjs"], env),
    jest: () => testsAddonWithJest(env),
  };
  const passed = Object.keys(halves)
    .filter((name) => half === undefined || half === name)
    .map((name) => {
      console.log(`native-codec: sanitized addon, ${name}`);
      if (halves[name]()) return true;
      console.log(`to repeat: node native-codec/test.mjs addon ${name}`);
      return false;
    });
  return passed.every(Boolean);
}

/** Tests the GPU's kernels; without a seed also the GPU coder. */
async function testsGpu(seed) {
  const kernels = shows(await buildSanitized("gpu_kernels_test"), seed);
  if (seed.length > 0) return kernels;
  return shows(await buildSanitized("gpu_device_test"), [await buildDriverDouble()]) && kernels;
}

const args = process.argv.slice(2);
if (args[0] === "addon") process.exit((await testsAddon(args[1])) ? 0 : 1);
if (args[0] === "gpu") process.exit((await testsGpu(args.slice(1))) ? 0 : 1);
const test = await buildSanitized("codec_test");
if (args.length > 0) process.exit(shows(test, args) ? 0 : 1);
const fuzz = await buildSanitized("codec_fuzz");
const passed = [
  shows(test, []),
  shows(fuzz, ["1", FUZZ_OPERATIONS]),
  await testsGpu([]),
  await testsAddon(),
  testsArm(),
];
process.exit(passed.every(Boolean) ? 0 : 1);
