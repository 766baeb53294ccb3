/**
 * `npm run bench -- gpu`: the GPU coder and the CPU coder of this machine. It builds the C++ program in lab/bench/gpu
 * and runs it. Where there is no GPU, the program says so and measures the CPU alone. A machine without Node runs the
 * same program:
 *
 *     sh lab/bench/gpu/build.sh gpu-bench && ./gpu-bench --json gpu.json
 *
 * `--report` prints the published run of lab/bench/data, and `--picture FILE` draws it.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { drawTo } from "@tributary/lab-sim";
import { repoRoot } from "@tributary/lab-stack";
import { fileOf, FLAG, optionsOf, runBench, TEXT, UsageError } from "../kit/command";
import { pictureOf, type Row } from "./picture";

const USAGE = "npm run bench -- gpu [--small] [--out FILE] | --report [--picture FILE]";
const PUBLISHED = path.join(repoRoot, "lab/bench/data/gpu.json");
const BUILD = path.join(repoRoot, "lab/bench/build");

function run(program: string, args: readonly string[]): number {
  const { status, error } = spawnSync(program, args, { stdio: "inherit" });
  if (error) throw error;
  return status ?? 1;
}

/** Prints the published run, or draws it. */
function report(picture: string | undefined): number {
  const { facts, rows } = JSON.parse(readFileSync(PUBLISHED, "utf8")) as { facts: object; rows: Row[] };
  if (picture !== undefined) {
    drawTo(picture, pictureOf(rows));
    return 0;
  }
  for (const [name, value] of Object.entries(facts)) console.log(`${name}: ${value}`);
  console.table(rows);
  return 0;
}

function main(): number {
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
  if (status === 0) console.log(`written to ${file}`);
  return status;
}

runBench(USAGE, () => Promise.resolve().then(main));
