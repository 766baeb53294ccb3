/**
 * Builds test/codec_test.cc with AddressSanitizer and UBSan and runs it. g++ only.
 *
 *   node native-codec/test.mjs                 3,000 cases; prints `N passed, N failed`
 *   node native-codec/test.mjs SEED            replays one case
 *   node native-codec/test.mjs SEED CASES      that many cases from SEED on
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { compile, compileAll, CORE_SOURCES, PACKAGE_DIR } from "./toolchain.mjs";

const TEST_DIR = join(PACKAGE_DIR, "build", "test");
const PROGRAM = join(TEST_DIR, "codec_test");
const SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
const FLAGS = ["-O1", "-g", "-fno-omit-frame-pointer", ...SANITIZERS];

try {
  const sources = [...CORE_SOURCES, { file: join("test", "codec_test.cc"), flags: [] }];
  const objects = await compileAll(sources, FLAGS, TEST_DIR);
  await compile([...SANITIZERS, "-Wl,--wrap=calloc,--wrap=malloc", ...objects, "-o", PROGRAM]);
} catch (error) {
  console.error(`native-codec: tests do not build: ${error.message}`);
  process.exit(1);
}
const run = spawnSync(PROGRAM, process.argv.slice(2), { stdio: "inherit" });
process.exit(run.status ?? 1);
