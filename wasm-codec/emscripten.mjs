/**
 * Checks that emscripten can build the core too: builds the SIMD128 and the scalar module with em++ into
 * .cache/emscripten/ and runs the conformance suite on each. These modules are not committed and not shipped
 * (docs/adr/0001-wasm-toolchain.md).
 *
 *   node wasm-codec/emscripten.mjs              uses the em++ of this machine
 *   node wasm-codec/emscripten.mjs --install    installs em++ by apt if it is missing, as root on Debian
 *
 * The last line is `N passed, N failed`, which counts tests and builds. Without em++ it is `0 passed, 0 failed`, after
 * a line that says that nothing was checked. The exit status is 1 if anything failed.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CORE_DIR, coreText, ENGINE_FLAGS, engineText, LANGUAGE_FLAGS, MODULES, PACKAGE_DIR } from "./sources.mjs";

const ROOT = join(PACKAGE_DIR, "..");
const OUT_DIR = join(PACKAGE_DIR, ".cache", "emscripten");
/** Debian's emscripten builds relaxed SIMD of an earlier draft, which no runtime accepts. */
const BUILT = MODULES.filter(({ flags }) => !flags.includes("-mrelaxed-simd"));
const LINK_FLAGS = [
  "-O2",
  "-sSTANDALONE_WASM",
  "-sALLOW_MEMORY_GROWTH",
  "-sMAXIMUM_MEMORY=4GB",
  "-sTOTAL_STACK=65536",
  "-sINITIAL_MEMORY=131072",
  "--no-entry",
];

class CommandError extends Error {}

/** Runs a command and returns what it printed on stdout. */
function run(command, args, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd: ROOT,
    encoding: "utf8",
    maxBuffer: 1 << 28,
    ...options,
  });
  if (error) throw new CommandError(`${command}: ${error.code}`);
  if (status === 0) return stdout;
  const lastLines = (stderr || stdout).trim().split("\n").slice(-20).join("\n");
  throw new CommandError(`${command} ended with ${status}: ${lastLines}`);
}

const versionOf = () => run("em++", ["--version"]).split("\n")[0];

function install() {
  if (process.getuid?.() !== 0) throw new CommandError("only root can install it by apt");
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const once = () => run("apt-get", ["install", "--yes", "--no-install-recommends", "emscripten"], { env });
  try {
    once();
  } catch {
    run("apt-get", ["update"], { env });
    once();
  }
}

/** Returns the version of em++. If it is missing, prints why and returns undefined. */
function emscripten() {
  try {
    return versionOf();
  } catch (missing) {
    try {
      if (!process.argv.includes("--install")) throw missing;
      install();
      return versionOf();
    } catch (error) {
      console.error(`emscripten: SKIPPED, nothing was checked, because em++ is missing (${error.message})`);
      return undefined;
    }
  }
}

function build(module) {
  const include = ["-I", join(CORE_DIR, "include"), "-I", join(CORE_DIR, "src")];
  const object = (name, text, flags) => {
    const base = join(OUT_DIR, `${module.file}-${name}`);
    writeFileSync(`${base}.cc`, text);
    run("em++", [...LANGUAGE_FLAGS, ...module.flags, ...flags, ...include, "-c", `${base}.cc`, "-o", `${base}.o`]);
    return `${base}.o`;
  };
  const file = join(OUT_DIR, module.file);
  const objects = [
    object("core", coreText(`${CORE_DIR}/`, join(PACKAGE_DIR, "src/")), ["-Os"]),
    object("engine", engineText(module, `${CORE_DIR}/`), ENGINE_FLAGS),
  ];
  run("em++", [...objects, ...module.flags, ...LINK_FLAGS, "-o", file]);
  return file;
}

/** Runs the conformance suite on this module alone. Returns how many tests passed and failed. */
function conformance(file) {
  const report = `${file}.json`;
  const args = [
    join(ROOT, "node_modules/jest/bin/jest.js"),
    "native-codec/src/conformance",
    "--verbose=false",
    "--json",
    "--outputFile",
    report,
  ];
  const { stderr } = spawnSync(process.execPath, args, {
    cwd: ROOT,
    encoding: "utf8",
    maxBuffer: 1 << 28,
    env: { ...process.env, TRIBUTARY_WASM_MODULE: file },
  });
  const { numPassedTests, numFailedTests, numRuntimeErrorTestSuites } = JSON.parse(readFileSync(report, "utf8"));
  if (numFailedTests + numRuntimeErrorTestSuites > 0) console.error(stderr);
  return { passed: numPassedTests, failed: numFailedTests + numRuntimeErrorTestSuites };
}

function check(module) {
  const startedMs = Date.now();
  try {
    const file = build(module);
    const counts = conformance(file);
    const seconds = ((Date.now() - startedMs) / 1000).toFixed(1);
    const size = `${readFileSync(file).length} bytes`;
    const result = `${counts.passed} tests passed, ${counts.failed} failed`;
    console.log(`${module.file} by emscripten: ${size}, ${result} (${seconds} s)`);
    return counts;
  } catch (error) {
    console.error(`${module.file} by emscripten: ${error.message}`);
    return { passed: 0, failed: 1 };
  }
}

const sum = { passed: 0, failed: 0 };
const version = emscripten();
if (version !== undefined) {
  console.log(version);
  rmSync(OUT_DIR, { recursive: true, force: true });
  mkdirSync(OUT_DIR, { recursive: true });
  for (const module of BUILT) {
    const { passed, failed } = check(module);
    sum.passed += passed;
    sum.failed += failed;
  }
}
console.log(`${sum.passed} passed, ${sum.failed} failed`);
process.exitCode = sum.failed === 0 ? 0 : 1;
