/**
 * `npm run bench -- campaign`: downloads over emulated links, beside HTTP and aria2, in Node and Chromium. Prints the
 * figures to reach, where coding loses, and a row a box. Exit status 0 measured, 1 could not measure, 2 bad option,
 * 130 stopped.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { drawTo } from "@tributary/lab-sim";
import { findChromium, repoRoot } from "@tributary/lab-stack";
import { fileOf, FLAG, INTERRUPTED, optionsOf, runBench, TEXT, UsageError, watchInterrupt } from "../kit/command";
import { packSamples, readSamples } from "../kit/samples";
import { newSitting, sittingsText, type Sitting } from "../kit/sitting";
import { figureTable } from "../kit/verdict";
import { boxesOf, type Box } from "./boxes";
import { picturesOf } from "./pictures";
import { figuresToReach, lossesOf, rowTable } from "./report";
import { calmSamples, rowsOf, visitsByBox, type Sample } from "./rows";
import { expectedSeconds, runCampaign, visitsDone, type Progress } from "./run";

const USAGE = `npm run bench -- campaign [--quick] [--row TEXT] [--resume DIR] [--report] [--list] [--json FILE]
                             [--pictures]
  --quick       a few boxes of each set, ten minutes (fifteen on slow processors); without it many hours
  --row TEXT    measures only the boxes whose name (--list) has TEXT, such as "6x896 KB/s, RTT 50 ms, loss 0 %"
  --resume DIR  continues a campaign that was stopped, on any machine; without it a new folder is made
  --report      measures nothing and reports DIR, or the published campaign in lab/bench/data
  --json FILE   one row a box (rows.ts), as an array
  --pictures    draws the paper's figures into out/campaign
  --list        prints the boxes and how long each takes, and ends`;
const PUBLISHED = path.join(repoRoot, "lab/bench/data");
const PICTURES = path.join(repoRoot, "out/campaign");
/**
 * The links of the whole campaign come up again for each of these shares of the visits, so that a campaign that is
 * stopped early has all boxes. Programs that have just started keep the machine busy, so it is not done more often.
 */
const passesOf = (quick: boolean): number[] => (quick ? [1] : [0.1, 0.8, 1]);

/** What campaign.json keeps. */
interface Begun {
  quick: boolean;
  /** `visits`: those done before the sitting. */
  sittings: (Sitting & { visits: number })[];
}

const minutes = (seconds: number): string =>
  seconds < 5400
    ? `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`
    : `${(seconds / 3600).toFixed(1)} h`;

/** One line on a terminal. Elsewhere a line is printed when other links come up. */
function makeProgress(): (progress: Progress) => void {
  let last = "";
  return ({ visitsDone: done, visitsTotal, secondsLeft, links: up }) => {
    const links = up.join(" + ");
    const line = `${done}/${visitsTotal} visits, ${minutes(secondsLeft)} left, ${links}`;
    if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${line.slice(0, process.stdout.columns - 1)}`);
    else if (links !== last) console.log(line);
    last = links;
  };
}

function readBegun(folder: string, quick: boolean): Begun {
  const file = path.join(folder, "campaign.json");
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Begun) : { quick, sittings: [] };
}

/** Adds a sitting. One without visits is replaced. */
function beginSitting(folder: string, begun: Begun, visits: number): void {
  while (begun.sittings.at(-1)?.visits === visits) begun.sittings.pop();
  begun.sittings.push({ ...newSitting(), visits });
  writeFileSync(path.join(folder, "campaign.json"), `${JSON.stringify(begun, null, 1)}\n`);
}

function report(
  boxes: readonly Box[],
  samples: readonly Sample[],
  { sittings }: Begun,
  options: { json: string | undefined; pictures: boolean },
): void {
  const done = visitsDone(boxes, visitsByBox(samples));
  const counted = calmSamples(samples);
  const rows = rowsOf(boxes, counted);
  const visits = sittings.map((sitting, index) => (sittings[index + 1]?.visits ?? done) - sitting.visits);
  const madeBy = sittingsText(sittings, visits);
  const planned = boxes.reduce((sum, box) => sum + box.visits, 0);
  console.log(`
${done} of ${planned} visits; ${counted.length} of ${samples.length} downloads count; ${madeBy}

Figures to reach (ratios are of medians over the same links; wire: the best value that the links allow):

${figureTable(figuresToReach(rows))}

Where coding loses:

${lossesOf(rows)}

Boxes:

${rowTable(rows)}
`);
  if (options.json !== undefined) writeFileSync(fileOf(options.json), `${JSON.stringify(rows, null, 1)}\n`);
  if (!options.pictures) return;
  for (const { name, specification } of picturesOf(boxes, counted, madeBy))
    drawTo(path.join(PICTURES, `${name}.png`), specification);
  console.log(`pictures: ${PICTURES}`);
}

function list(boxes: readonly Box[], seconds: number): void {
  for (const { id, figures, visits, expectedSec } of boxes)
    console.log(`${id}: ${visits} visits of ${expectedSec.toFixed(1)} s, set ${figures.join(", ")}`);
  console.log(`${boxes.length} boxes, ${minutes(seconds)} with one set of links at a time on an idle machine`);
}

/** Chromium and aria2 are clients to compare with. Without one, its boxes are left out. */
function availableOf(boxes: readonly Box[]): Box[] {
  const has: Record<Box["runner"], boolean> = {
    node: true,
    chromium: findChromium() !== undefined,
    aria2: spawnSync("aria2c", ["--version"]).status === 0,
  };
  for (const [name, isThere] of Object.entries(has)) if (!isThere) console.log(`${name} was not found: no boxes of it`);
  return boxes.filter(({ runner }) => has[runner]);
}

async function main(): Promise<number> {
  const options = optionsOf({
    quick: FLAG,
    list: FLAG,
    report: FLAG,
    pictures: FLAG,
    row: { ...TEXT, default: "" },
    json: TEXT,
    resume: TEXT,
  });
  const wanted = (boxes: readonly Box[]): Box[] => boxes.filter(({ id }) => id.includes(options.row));
  const named = wanted(boxesOf(options.quick));
  if (named.length === 0) throw new UsageError(`--row: got ${options.row}, which no box of --list has`);
  if (options.list) {
    list(named, expectedSeconds(named, passesOf(options.quick)));
    return 0;
  }
  const folder = options.resume
    ? fileOf(options.resume)
    : options.report
      ? PUBLISHED
      : mkdtempSync(path.join(os.tmpdir(), "tributary-campaign-"));
  const file = path.join(folder, "downloads.jsonl");
  const begun = readBegun(folder, options.quick);
  const samples = readSamples<Sample>(file);
  const outputs = { json: options.json, pictures: options.pictures };
  if (options.report) {
    if (samples.length === 0) throw new UsageError(`--report: ${folder} has no downloads`);
    report(boxesOf(begun.quick), samples, begun, outputs);
    return 0;
  }
  mkdirSync(folder, { recursive: true });
  beginSitting(folder, begun, visitsDone(boxesOf(begun.quick), visitsByBox(samples)));
  const all = availableOf(boxesOf(begun.quick));
  const boxes = wanted(all);
  const passes = passesOf(begun.quick);
  const stopped = watchInterrupt("stopping after this download");
  console.log(`${boxes.length} boxes, about ${minutes(expectedSeconds(boxes, passes))}; downloads go to ${folder}`);
  const failures = await runCampaign({ boxes, file, samples, passes, stopped, onProgress: makeProgress() });
  packSamples(file, samples);
  report(all, samples, begun, outputs);
  for (const failure of failures) console.error(`could not be measured: ${failure}`);
  if (!stopped()) return failures.length > 0 ? 1 : 0;
  console.log(`stopped; to continue: npm run bench -- campaign --resume ${folder}`);
  return INTERRUPTED;
}

runBench(USAGE, main);
