/**
 * `npm run bench -- gpu`: the GPU coder and the CPU coder of this machine. It builds the C++ program in lab/bench/gpu
 * and runs it, and then tries the GPU in the proxy's coder service (service.ts). Where there is no GPU, the program
 * says so and measures the CPU alone. A machine without Node runs the same program:
 *
 *     sh lab/bench/gpu/build.sh gpu-bench && ./gpu-bench --json gpu.json
 *
 * `--report` prints the published run of lab/bench/data, and `--picture FILE` draws it.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import path from "node:path";
import { drawTo } from "@tributary/lab-sim";
import { repoRoot } from "@tributary/lab-stack";
import { fileOf, FLAG, optionsOf, runBench, TEXT, UsageError } from "../kit/command";
import { pictureOf } from "./picture";
import { publishedRun } from "./published";
import { measureService } from "./service";

const USAGE = "npm run bench -- gpu [--small] [--out FILE] | --report [--picture FILE]";
const BUILD = path.join(repoRoot, "lab/bench/build");

function run(program: string, args: readonly string[]): number {
  const { status, error } = spawnSync(program, args, { stdio: "inherit" });
  if (error) throw error;
  return status ?? 1;
}

/** Prints the published run, or draws it. */
function report(picture: string | undefined): number {
  const { facts, rows } = publishedRun();
  if (picture !== undefined) {
    drawTo(picture, pictureOf(rows));
    return 0;
  }
  for (const [name, value] of Object.entries(facts)) console.log(`${name}: ${value}`);
  console.table(rows);
  return 0;
}

async function main(): Promise<number> {
  const options = optionsOf({ small: FLAG, out: TEXT, report: FLAG, picture: TEXT });
  const { small, out } = options;
  if (options.report) return report(options.picture);
  if (options.picture !== undefined) throw new UsageError("--picture needs --report");
  const file = out === undefined ? path.join(BUILD, "gpu.json") : fileOf(out);
  const program = path.join(BUILD, "gpu-bench");
  mkdirSync(BUILD, { recursive: true });
  const built = run("sh", [path.join(repoRoot, "lab/bench/gpu/build.sh"), program]);
  if (built !== 0) return built;
  const status = run(program, [...(small ? ["--small"] : []), "--json", file]);
  if (status !== 0) return status;
  console.log(`written to ${file}`);
  return measureService(small);
}

runBench(USAGE, main);
