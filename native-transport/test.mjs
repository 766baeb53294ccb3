/**
 * Runs the crate's own tests with cargo: `node native-transport/test.mjs`. Prints `N passed, N failed`. Without a
 * recent cargo it runs one test instead: the door must say why the native part is missing.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { cargo, cargoVersion, PACKAGE_DIR } from "./cargo.mjs";

/** The reason why cargo cannot run, or undefined. */
function whyNoCargo() {
  try {
    cargoVersion();
    return undefined;
  } catch (error) {
    return error.message;
  }
}

const reason = whyNoCargo();
if (reason === undefined) {
  const done = cargo("test");
  process.stdout.write(done.stdout + done.stderr);
  const [, passed = 0, failed = 0] = /(\d+) passed; (\d+) failed/.exec(done.stdout) ?? [];
  console.log(`${passed} passed, ${done.status === 0 ? failed : Math.max(1, Number(failed))} failed`);
  process.exitCode = done.status === 0 ? 0 : 1;
} else {
  const script = "process.stdout.write(JSON.stringify(require(process.argv[1]).loadNativeTransport().reason ?? null))";
  const door = spawnSync(process.execPath, ["-e", script, join(PACKAGE_DIR, "dist", "index.js")], { encoding: "utf8" });
  const says = /native-transport\.node is not built/.test(door.stdout) || door.stdout === "null";
  console.log(`The tests of the crate do not run: ${reason}`);
  console.log(says ? "1 passed, 0 failed" : "0 passed, 1 failed");
  process.exitCode = says ? 0 : 1;
}
