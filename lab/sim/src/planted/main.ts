/**
 * `npm run sim -- planted`: plants each bug of bugs.ts into a copy of the protocol and replays the seed that finds it.
 * The unchanged protocol must pass the same seed. A bug fails if its text does not stand exactly once in the source.
 *
 *   npm run sim -- planted [--only TEXT] [--search]
 *
 * A stored seed grows stale when the protocol's choices change. The seeds after it are then tried, and the one that
 * finds the bug is printed. --search tries 10,000 seeds from 1 on instead. Exit status: 0 all found, 1 some not found,
 * 2 wrong option.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { Helper } from "../processes";
import type { Batch, Report } from "../swarm/main";
import { PLANTED, type PlantedBug } from "./bugs";

export const USAGE = "usage: npm run sim -- planted [--only TEXT] [--search]";
const SEARCH_SEEDS = 10_000;
/** Seeds to try after a stored seed that does not find its bug. */
const STALE_SEEDS = 500;
const BATCH = 20;
/** A batch that takes longer hangs. That counts as found. */
const HANG_MS = 30_000;

const protocol = path.dirname(require.resolve("@tributary/protocol/package.json"));
const OTHER_PACKAGES = ["contract", "native-codec", "native-transport", "wasm-codec"];

/** Copies the simulator and the protocol, with the bug in it if one is given. */
async function makeCopy(folder: string, bug?: PlantedBug): Promise<void> {
  const scope = path.join(folder, "node_modules/@tributary");
  mkdirSync(scope, { recursive: true });
  for (const name of OTHER_PACKAGES) symlinkSync(path.join(path.dirname(protocol), name), path.join(scope, name));
  cpSync(path.join(__dirname, ".."), path.join(folder, "sim"), { recursive: true });
  cpSync(path.join(protocol, "dist"), path.join(scope, "protocol/dist"), { recursive: true });
  cpSync(path.join(protocol, "package.json"), path.join(scope, "protocol/package.json"));
  if (!bug) return;
  const { ModuleKind, ScriptTarget, transpileModule } = await import("typescript");
  const { outputText } = transpileModule(withBug(bug), {
    compilerOptions: { module: ModuleKind.CommonJS, target: ScriptTarget.ES2022 },
  });
  writeFileSync(path.join(scope, "protocol/dist", bug.file.replace(/\.ts$/, ".js")), outputText);
}

function withBug({ file, find, replace }: PlantedBug): string {
  const source = readFileSync(path.join(protocol, "src", file), "utf8");
  const times = source.split(find).length - 1;
  if (times !== 1) throw new Error(`protocol/src/${file} has the text to replace ${times} times, wanted once: ${find}`);
  return source.replace(find, () => replace);
}

interface Found {
  seed: number;
  wrong: string;
}

/** Finds the first of `count` seeds that goes wrong in this copy. */
async function findIn(folder: string, firstSeed: number, count: number): Promise<Found | undefined> {
  const helper = new Helper<Batch, Report>(path.join(folder, "sim/swarm/main.js"));
  let from = firstSeed;
  try {
    for (let runs = 1; from < firstSeed + count; from += runs) {
      runs = Math.min(from === firstSeed ? 1 : BATCH, firstSeed + count - from);
      const { failures } = await helper.ask({ firstSeed: from, runs }, HANG_MS);
      const first = failures[0];
      if (first) return { seed: first.seed, wrong: first.wrongs[0]! };
    }
    return undefined;
  } catch (error) {
    return { seed: from, wrong: (error as Error).message };
  } finally {
    helper.end();
  }
}

/** Returns why the bug was not found properly, or undefined. */
async function check(bug: PlantedBug, folder: string, clean: string, search: boolean): Promise<string | undefined> {
  try {
    await makeCopy(folder, bug);
  } catch (error) {
    return (error as Error).message;
  }
  const found = search
    ? await findIn(folder, 1, SEARCH_SEEDS)
    : ((await findIn(folder, bug.seed, 1)) ?? (await findIn(folder, bug.seed + 1, STALE_SEEDS)));
  if (!found)
    return search
      ? `not found in ${SEARCH_SEEDS} seeds`
      : `seed ${bug.seed} and the ${STALE_SEEDS} after it do not find it; ` +
          `to find another: npm run sim -- planted --search --only "${bug.name}"`;
  const stale = found.seed === bug.seed ? "" : ` (the stored seed is ${bug.seed})`;
  console.log(`${bug.name}: found by seed ${found.seed}${stale}: ${found.wrong.slice(0, 160)}`);
  const without = await findIn(clean, found.seed, 1);
  return without && `seed ${found.seed} goes wrong without the bug too: ${without.wrong}`;
}

export async function findPlanted(words: string[]): Promise<number> {
  let values;
  try {
    ({ values } = parseArgs({
      args: words,
      options: { only: { type: "string" }, search: { type: "boolean", default: false } },
    }));
  } catch (error) {
    console.error(`${(error as Error).message}\n${USAGE}`);
    return 2;
  }
  const { only = "", search } = values;
  const bugs = PLANTED.filter(({ name }) => name.includes(only));
  const folder = mkdtempSync(path.join(os.tmpdir(), "tributary-planted-"));
  let failed = 0;
  try {
    const clean = path.join(folder, "clean");
    await makeCopy(clean);
    for (const [index, bug] of bugs.entries()) {
      const wrong = await check(bug, path.join(folder, String(index)), clean, search);
      if (!wrong) continue;
      failed++;
      console.log(`${bug.name}: FAILED: ${wrong}`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  console.log(`${bugs.length - failed} passed, ${failed} failed`);
  return failed > 0 || bugs.length === 0 ? 1 : 0;
}
