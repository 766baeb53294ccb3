/**
 * `npm run bench -- codec`: starts the runners, measures every group of the plan, judges the figures. Files are written
 * by lab/bench/main.mjs, which also gets the contenders ready.
 */
import { readFileSync, readdirSync, statSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { repoRoot } from "@tributary/lab-stack";
import { planGroups, type Engines, type RunnerName } from "./cases";
import { enginesOf, measureGroup, type Absences, type Pace, type Runners } from "./driver";
import { figuresOf } from "./figures";
import type { Machine, Run } from "./report";
import { rowsOf } from "./rows";
import { startChromium, startNodeAddon, startNodeWasm, startProgram } from "./runners";
import type { GroupSamples } from "./samples";

/** A contender's file, or why there is none: lab/bench/codec/setup.mjs. */
export type Tool =
  { readonly file: string; readonly note: string; readonly absent?: undefined } | { readonly absent: string };

export interface Tools {
  readonly native: Tool;
  readonly isaL: Tool;
  readonly rust: Tool;
  readonly bundle: Tool;
  readonly compiler: string;
}

export interface BenchOptions {
  readonly tools: Tools;
  readonly quick: boolean;
  /** Only the groups of cases whose name contains this, and the figures that they give. */
  readonly row: string;
  readonly command: string;
  readonly print: (line: string) => void;
}

const PACE: Pace = { rounds: 21, sliceMs: 20 };
const QUICK_PACE: Pace = { rounds: 11, sliceMs: 15 };
/** Grid points have no ratio to hold, and there are many. */
const GRID_ROUNDS = 7;

/** Starts what can be started; the rest is told in one line each. */
async function startRunners({ tools, print }: BenchOptions): Promise<{ runners: Runners; chromium: string }> {
  const runners: Runners = {};
  let chromium = "no Chromium";
  const isaL = tools.isaL.absent === undefined ? tools.isaL.file : "-";
  if (tools.native.absent === undefined) runners.native = startProgram(tools.native.file, [isaL]);
  if (tools.rust.absent === undefined) runners.rust = startProgram(tools.rust.file);
  runners.node = startNodeWasm();
  runners.addon = startNodeAddon();
  if (tools.bundle.absent === undefined) {
    try {
      const started = await startChromium(tools.bundle.file);
      runners.chromium = started.runner;
      chromium = started.version.replace("/", " ");
    } catch (error) {
      print(`bench: Chromium absent: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return { runners, chromium };
}

async function allEngines(runners: Runners): Promise<Engines> {
  const names: RunnerName[] = ["native", "rust", "node", "chromium", "addon"];
  const entries = await Promise.all(
    names.map(async (name) => [name, name === "rust" ? [] : await enginesOf(runners[name])] as const),
  );
  return Object.fromEntries(entries) as unknown as Engines;
}

function describeMachine(compiler: string, chromium: string): Machine {
  const cpuinfo = process.platform === "linux" ? readFileSync("/proc/cpuinfo", "utf8") : "";
  const flags = new Set((/^flags\s*: (.*)$/m.exec(cpuinfo)?.[1] ?? "").split(" "));
  const told = ["ssse3", "avx2", "gfni", "avx512f", "avx512bw", "avx512vbmi"].filter((flag) => flags.has(flag));
  return {
    processor: os.cpus()[0]?.model.trim() ?? os.arch(),
    cores: os.availableParallelism(),
    features: told.length > 0 ? told : [os.arch()],
    system:
      /^PRETTY_NAME="(.*)"$/m.exec(process.platform === "linux" ? readFileSync("/etc/os-release", "utf8") : "")?.[1] ??
      `${os.type()} ${os.release()}`,
    compiler,
    node: process.versions.node,
    chromium,
  };
}

function rivalNotes({ isaL, rust }: Tools): string[] {
  const isaLNote = isaL.absent === undefined ? `ISA-L ${isaL.note}` : `ISA-L absent (${isaL.absent})`;
  return [isaLNote, rust.absent === undefined ? rust.note : `Rust crates absent (${rust.absent})`];
}

function wasmModules(): { name: string; bytes: number }[] {
  const folder = path.join(repoRoot, "wasm-codec/module");
  return readdirSync(folder)
    .filter((name) => name.endsWith(".wasm"))
    .map((name) => ({ name, bytes: statSync(path.join(folder, name)).size }));
}

/** One line for each contender and request that could not be measured, however many shapes it has. */
function reportAbsences(absences: Absences, print: (line: string) => void): void {
  const lines = [...absences].map(([key, why]) => `bench: absent: ${key.split(" ").slice(0, 4).join(" ")} (${why})`);
  for (const line of new Set(lines)) print(line);
}

/** Measures everything; throws when a contender computes something wrong. */
export async function runCodecBench(options: BenchOptions): Promise<Run> {
  const { quick, row, print, tools } = options;
  const { runners, chromium } = await startRunners(options);
  const absences: Absences = new Map();
  const measured: GroupSamples[] = [];
  const pace = quick ? QUICK_PACE : PACE;
  try {
    const engines = await allEngines(runners);
    print(
      `bench: engines: ${Object.entries(engines)
        .filter(([, names]) => names.length > 0)
        .map(([name, names]) => `${name} ${names.join(" ")}`)
        .join("; ")}`,
    );
    const groups = planGroups(engines, quick).filter(({ name }) => name.includes(row));
    if (groups.length === 0) throw new Error(`no group of cases has a name that contains "${row}"`);
    for (const group of groups) {
      const startedMs = Date.now();
      const rounds = group.name.startsWith("grid ") ? GRID_ROUNDS : pace.rounds;
      measured.push(await measureGroup(group, runners, { ...pace, rounds }, absences));
      print(
        `bench: ${group.name} (${group.cases.length} contenders, ${((Date.now() - startedMs) / 1000).toFixed(1)} s)`,
      );
    }
  } finally {
    await Promise.all(Object.values(runners).map((runner) => runner.close()));
  }
  reportAbsences(absences, print);
  return {
    date: new Date().toISOString().slice(0, 10),
    command: options.command,
    rounds: pace.rounds,
    machine: describeMachine(tools.compiler, chromium),
    rivals: rivalNotes(tools),
    wasmModules: wasmModules(),
    figures: figuresOf(measured).filter(({ value }) => row === "" || value !== undefined),
    rows: rowsOf(measured),
  };
}
