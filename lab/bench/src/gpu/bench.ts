/**
 * `npm run bench -- gpu`: the GPU coder and the CPU coder of this machine. It builds the C++ program in lab/bench/gpu
 * and runs it. Where there is no GPU, the program says so and measures the CPU alone. A machine without Node runs the
 * same program:
 *
 *     sh lab/bench/gpu/build.sh gpu-bench && ./gpu-bench --json gpu.json
 */
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import path from "node:path";
import { repoRoot } from "@tributary/lab-stack";
import { fileOf, FLAG, optionsOf, runBench, TEXT } from "../kit/command";

const USAGE = "npm run bench -- gpu [--small] [--out FILE]";
const BUILD = path.join(repoRoot, "lab/bench/build");

function run(program: string, args: readonly string[]): number {
  const { status, error } = spawnSync(program, args, { stdio: "inherit" });
  if (error) throw error;
  return status ?? 1;
}

function main(): number {
  const { small, out } = optionsOf({ small: FLAG, out: TEXT });
  const file = out === undefined ? path.join(BUILD, "gpu.json") : fileOf(out);
  const program = path.join(BUILD, "gpu-bench");
  mkdirSync(BUILD, { recursive: true });
  const built = run("sh", [path.join(repoRoot, "lab/bench/gpu/build.sh"), program]);
  if (built !== 0) return built;
  const status = run(program, [...(small ? ["--small"] : []), "--json", file]);
  if (status === 0) console.log(`written to ${file}`);
  return status;
}

runBench(USAGE, () => Promise.resolve().then(main));
