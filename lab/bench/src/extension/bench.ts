/**
 * `npm run bench -- extension`: what the extension costs and changes in real Chromium, with four proxies on the same
 * machine. Exit status 0 measured, 1 could not measure, 2 bad option.
 */
import { writeFileSync } from "node:fs";
import { fileOf, FLAG, optionsOf, runBench, TEXT } from "../kit/command";
import { machineText, watchIdleShare } from "../kit/machine";
import { figureTable, type Figure } from "../kit/verdict";
import { PARTS, type Part } from "./parts";

const USAGE = `npm run bench -- extension [--quick] [--row PART] [--json FILE]
  --quick      one run of each, about two minutes; without it about five
  --row PART   only the parts whose name contains PART: path, memory, tabs, scripts, and idle and estimates, which
               do not run without it
  --json FILE  the rows as an array`;

async function measure(quick: boolean, row: string, failures: string[]): Promise<Figure[]> {
  const rows: Figure[] = [];
  const isWanted = (part: Part): boolean => (row === "" ? part.isUsual : part.name.includes(row));
  for (const { name, run } of PARTS.filter(isWanted)) {
    const idleShare = watchIdleShare();
    console.log(name);
    const measured = await run(quick).catch((error: unknown) => {
      failures.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
      console.error(`  could not be measured: ${failures.at(-1)}`);
      return [];
    });
    const busy = `processors busy ${Math.round(100 * (1 - idleShare()))} %`;
    rows.push(...measured.map((each) => ({ ...each, note: `${each.note ?? ""}; ${busy}` })));
  }
  return rows;
}

async function main(): Promise<number> {
  const { quick, row, json } = optionsOf({ quick: FLAG, row: { ...TEXT, default: "" }, json: TEXT });
  const failures: string[] = [];
  const rows = await measure(quick, row, failures);
  console.log(`\n${machineText()}\n\n${figureTable(rows)}`);
  if (json !== undefined) writeFileSync(fileOf(json), `${JSON.stringify(rows, null, 1)}\n`);
  return failures.length > 0 ? 1 : 0;
}

runBench(USAGE, main);
