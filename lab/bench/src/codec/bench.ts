/**
 * `npm run bench -- codec`: the codec beside its rivals, in native code, Node and Chromium. lab/bench/main.mjs gets the
 * contenders ready. Exit status 0 measured (a figure below its floor is a result), 1 could not measure, 2 bad option.
 */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { repoRoot } from "@tributary/lab-stack";
import { fileOf, FLAG, optionsOf, runBench, TEXT } from "../kit/command";
import { machineText } from "../kit/machine";
import { figureTable } from "../kit/verdict";
import { planGroups, type Engines, type RunnerName } from "./cases";
import { enginesOf, measureGroup, type Absences, type Pace, type Runners } from "./driver";
import { figuresOf } from "./figures";
import { rateTables } from "./report";
import { rowsOf } from "./rows";
import { startChromium, startNodeAddon, startNodeWasm, startProgram } from "./runners";
import type { GroupSamples } from "./samples";

const USAGE = `npm run bench -- codec [--quick] [--row TEXT] [--json FILE]
  --quick      the figures and few other shapes, about three minutes on two cores
  --row TEXT   only the groups of cases whose name contains TEXT, such as "through the addon"
  --json FILE  every row, as an array (rows.ts)`;

/** lab/bench/main.mjs writes `Tools` into this file. */
const TOOLS = path.join(repoRoot, "lab/bench/build/tools.json");

/** A contender's file, or why there is none: lab/bench/codec/setup.mjs. */
type Tool = { readonly file: string; readonly note: string; readonly absent?: undefined } | { readonly absent: string };

interface Tools {
  readonly native: Tool;
  readonly isaL: Tool;
  readonly rust: Tool;
  readonly bundle: Tool;
}

const PACE: Pace = { rounds: 21, sliceMs: 20 };
const QUICK_PACE: Pace = { rounds: 11, sliceMs: 15 };
/** Grid points are many, and no ratio depends on them. */
const GRID_ROUNDS = 7;

/** Starts the runners that can be started and prints one line for each other one. */
async function startRunners(tools: Tools): Promise<Runners> {
  const runners: Runners = {};
  const isaL = tools.isaL.absent === undefined ? tools.isaL.file : "-";
  if (tools.native.absent === undefined) runners.native = startProgram(tools.native.file, [isaL]);
  if (tools.rust.absent === undefined) runners.rust = startProgram(tools.rust.file);
  runners.node = startNodeWasm();
  runners.addon = startNodeAddon();
  if (tools.bundle.absent === undefined) {
    try {
      runners.chromium = await startChromium(tools.bundle.file);
    } catch (error) {
      console.log(`bench: Chromium absent: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return runners;
}

async function allEngines(runners: Runners): Promise<Engines> {
  const names: RunnerName[] = ["native", "rust", "node", "chromium", "addon"];
  const entries = await Promise.all(
    names.map(async (name) => [name, name === "rust" ? [] : await enginesOf(runners[name])] as const),
  );
  return Object.fromEntries(entries) as unknown as Engines;
}

/** One line for each contender and request that could not be measured, however many shapes it has. */
function reportAbsences(absences: Absences): void {
  const lines = [...absences].map(([key, why]) => `bench: absent: ${key.split(" ").slice(0, 4).join(" ")} (${why})`);
  for (const line of new Set(lines)) console.log(line);
}

/** Throws when a contender computes something wrong. */
async function measureAll(tools: Tools, quick: boolean, row: string): Promise<GroupSamples[]> {
  const runners = await startRunners(tools);
  const absences: Absences = new Map();
  const measured: GroupSamples[] = [];
  const pace = quick ? QUICK_PACE : PACE;
  try {
    const engines = await allEngines(runners);
    const found = Object.entries(engines).filter(([, names]) => names.length > 0);
    console.log(`bench: engines: ${found.map(([name, names]) => `${name} ${names.join(" ")}`).join("; ")}`);
    const groups = planGroups(engines, quick).filter(({ name }) => name.includes(row));
    if (groups.length === 0) throw new Error(`no group of cases has a name that contains "${row}"`);
    for (const group of groups) {
      const startedMs = Date.now();
      const rounds = group.name.startsWith("grid ") ? GRID_ROUNDS : pace.rounds;
      measured.push(await measureGroup(group, runners, { ...pace, rounds }, absences));
      const seconds = ((Date.now() - startedMs) / 1000).toFixed(1);
      console.log(`bench: ${group.name} (${group.cases.length} contenders, ${seconds} s)`);
    }
  } finally {
    await Promise.all(Object.values(runners).map((runner) => runner.close()));
  }
  reportAbsences(absences);
  return measured;
}

async function main(): Promise<number> {
  const { quick, row, json } = optionsOf({ quick: FLAG, row: { ...TEXT, default: "" }, json: TEXT });
  const measured = await measureAll(JSON.parse(readFileSync(TOOLS, "utf8")) as Tools, quick, row);
  const figures = figuresOf(measured).filter(({ got }) => row === "" || Number.isFinite(got));
  const rows = rowsOf(measured);
  console.log(`\n${machineText()}\n\n${rateTables(rows)}\n\nFigures to reach:\n\n${figureTable(figures)}\n`);
  if (json !== undefined) writeFileSync(fileOf(json), `${JSON.stringify(rows, null, 1)}\n`);
  return 0;
}

runBench(USAGE, main);
