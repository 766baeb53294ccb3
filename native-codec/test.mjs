/**
 * Tests the C++ core: test/codec_test.cc, then 10^6 operations of test/codec_fuzz.cc, both with AddressSanitizer and
 * UBSan; then codec_test.cc once more for AArch64 under qemu, where a cross compiler and qemu-user are there (Debian:
 * g++-aarch64-linux-gnu, qemu-user) or root can install them. g++ only.
 *
 *   node native-codec/test.mjs                 all of that; prints `N passed, N failed`
 *   node native-codec/test.mjs SEED            replays one case of codec_test.cc
 *   node native-codec/test.mjs SEED CASES      that many cases from SEED on
 */
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { buildSanitized, COMMON_FLAGS, CORE_SOURCES, PACKAGE_DIR, WRAP_ALLOCATIONS } from "./toolchain.mjs";

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
    console.log(`native-codec: NEON engine not tested: needs ${ARM_PACKAGES.join(" and ")}`);
    return true;
  }
  mkdirSync(ARM_DIR, { recursive: true });
  const program = join(ARM_DIR, "codec_test");
  const sources = CORE_SOURCES.map(({ file }) => file).filter((file) => !/engine_(ssse3|avx2|gfni\d+)\.cc$/.test(file));
  const files = [...new Set([...sources, join("src", "engine_neon.cc"), join("test", "codec_test.cc")])];
  const builds = shows(ARM_COMPILER, [...COMMON_FLAGS, "-O1", "-static", WRAP_ALLOCATIONS, ...files, "-o", program]);
  console.log("native-codec: AArch64 under qemu");
  return builds && shows(ARM_EMULATOR, [program, "1", ARM_CASES]);
}

const args = process.argv.slice(2);
const test = await buildSanitized("codec_test");
if (args.length > 0) process.exit(shows(test, args) ? 0 : 1);
const fuzz = await buildSanitized("codec_fuzz");
const passed = [shows(test, []), shows(fuzz, ["1", FUZZ_OPERATIONS]), testsArm()];
process.exit(passed.every(Boolean) ? 0 : 1);
