/**
 * Builds the link emulator lab/links/build/links-core if its sources are newer, and prints its path.
 *
 *   node lab/links/build.mjs
 *
 * It needs Linux and a C++20 compiler (CXX, else g++). If the build fails, it prints one sentence and ends with status
 * 1.
 */
import { existsSync, mkdirSync, readdirSync, renameSync, statSync } from "node:fs";
import { spawnSync } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const sources = path.join(here, "core");
const folder = path.join(here, "build");
const program = path.join(folder, "links-core");
const compiler = process.env.CXX ?? "g++";

function fail(sentence) {
  console.error(sentence);
  process.exit(1);
}

function build() {
  mkdirSync(folder, { recursive: true });
  const files = readdirSync(sources)
    .filter((name) => name.endsWith(".cc"))
    .map((name) => path.join(sources, name));
  // Two builds may run at once. The program is written beside and renamed, so that nobody runs half of it.
  const fresh = `${program}.${process.pid}`;
  const flags = ["-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror"];
  const done = spawnSync(compiler, [...flags, ...files, "-o", fresh], { encoding: "utf8" });
  if (done.error)
    fail(
      `links need a C++ compiler to build their emulator: cannot run ${compiler} (${done.error.code}); ` +
        "install g++ or set CXX",
    );
  if (done.status !== 0) fail(`the link emulator does not build:\n${done.stderr}`);
  renameSync(fresh, program);
}

const newest = Math.max(...readdirSync(sources).map((name) => statSync(path.join(sources, name)).mtimeMs));
if (process.platform !== "linux") fail(`links need Linux (network namespaces and TUN); this is ${process.platform}`);
if (!existsSync(program) || statSync(program).mtimeMs < newest) build();
console.log(program);
