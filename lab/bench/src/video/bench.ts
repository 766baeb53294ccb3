/**
 * `npm run bench -- video`: hls.js in real Chromium with the extension, over emulated links: start-up, stalls, bitrate.
 * Exit status 0 measured, 1 could not measure, 2 bad option, 130 stopped.
 */
import { writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { drawTo } from "@tributary/lab-sim";
import { repoRoot } from "@tributary/lab-stack";
import { countOf, fileOf, FLAG, INTERRUPTED, optionsOf, runBench, TEXT, watchInterrupt } from "../kit/command";
import { groupBy } from "../kit/figures";
import { appendSamples, readSamples } from "../kit/samples";
import { newSitting, sittingsText, type Sitting } from "../kit/sitting";
import { figureTable } from "../kit/verdict";
import { videoBoxes } from "./boxes";
import type { VideoBox } from "./boxes";
import { specificationOf } from "./picture";
import { startStage } from "./play";
import type { Play } from "./play";
import { besideTable, figuresOf, lossesOf, problemsOf, rowTable } from "./report";
import { videoRows } from "./rows";

const USAGE = `npm run bench -- video [--quick] [--plays N] [--seconds N] [--row TEXT] [--keep FILE] [--report] [--list]
                          [--json FILE] [--picture FILE]
  --quick         3 plays of 45 s each, a quarter of an hour on four cores; without it 20 of 60 s, two and a half hours
  --plays N       plays of each box
  --seconds N     of the video
  --row TEXT      only the boxes whose name contains TEXT
  --keep FILE     one line a play, read also from FILE.gz; the plays in it count, so the bench continues there
  --report        plays nothing and reports FILE, or the published plays in lab/bench/data
  --json FILE     one row a box (rows.ts), as an array
  --picture FILE  start-up, stalls and bitrate, as .svg or .png
  --list          prints the boxes and how long each takes, and ends`;
const PUBLISHED = path.join(repoRoot, "lab/bench/data/plays.jsonl");
/** A play keeps one core busy: the browser, its proxies and the emulator together. It needs more while it starts. */
const SETS_AT_ONCE = Math.max(1, Math.floor(os.cpus().length / 2));

interface Options {
  keep: string | undefined;
  json: string | undefined;
  picture: string | undefined;
}

const clock = (seconds: number): string =>
  `${Math.floor(seconds / 3600)}:${String(Math.floor((seconds % 3600) / 60)).padStart(2, "0")} h`;
const doneOf = (plays: readonly Play[], { id }: VideoBox): number => plays.filter(({ box }) => box === id).length;

function describePlay({ startUpMs, stalls, stalledMs, bitsPerSec, segments, problems, idleShare }: Play): string {
  const start = startUpMs === null ? "never started" : `start-up ${(startUpMs / 1000).toFixed(2)} s`;
  return (
    `${start}, ${stalls} stalls (${(stalledMs / 1000).toFixed(1)} s), ${(bitsPerSec / 1e6).toFixed(1)} ` +
    `Mbit/s, ${segments.carried} of ${segments.got} segments carried, idle ` +
    `${Math.round(100 * idleShare)} %${problems.map((problem) => `; ${problem}`).join("")}`
  );
}

/** Other links come up after this many plays of each box, so that a bench that is stopped early has all boxes. */
const PLAYS_IN_TURN = 5;

async function playAll(
  boxes: readonly VideoBox[],
  plays: Play[],
  options: Options,
  stopped: () => boolean,
): Promise<void> {
  const most = Math.max(...boxes.map((box) => box.plays));
  const sitting = newSitting();
  for (let upTo = PLAYS_IN_TURN; upTo < most + PLAYS_IN_TURN && !stopped(); upTo += PLAYS_IN_TURN)
    await playUpTo(upTo, boxes, plays, sitting, options, stopped);
}

/** Boxes of the same links take turns. Several sets of links are up at once, the longest first. Adds to `plays`. */
async function playUpTo(
  upTo: number,
  boxes: readonly VideoBox[],
  plays: Play[],
  sitting: Sitting,
  { keep }: Options,
  stopped: () => boolean,
): Promise<void> {
  const isOpen = (box: VideoBox): boolean => doneOf(plays, box) < Math.min(upTo, box.plays);
  const longestLast = setsOf(boxes.filter(isOpen)).sort((a, b) => leftSec(a, plays) - leftSec(b, plays));
  const playSets = async (): Promise<void> => {
    for (let set = longestLast.pop(); set && !stopped(); set = longestLast.pop()) await playSet(set);
  };
  await Promise.all(Array.from({ length: SETS_AT_ONCE }, playSets));

  async function playSet(set: readonly VideoBox[]): Promise<void> {
    const stage = await startStage(set[0]!.links);
    try {
      for (let open = set; open.length > 0 && !stopped(); open = set.filter(isOpen)) {
        const box = open.reduce((least, each) => (doneOf(plays, each) < doneOf(plays, least) ? each : least));
        const play = await stage.play(box, doneOf(plays, box), sitting);
        plays.push(play);
        if (keep !== undefined) appendSamples(keep, [play]);
        console.log(`${box.id}, play ${doneOf(plays, box)} of ${box.plays}: ${describePlay(play)}`);
        console.log(`  ${clock(wallSec(boxes, plays))} left`);
      }
    } finally {
      await stage.close();
    }
  }
}

const setsOf = (boxes: readonly VideoBox[]): VideoBox[][] => [...groupBy(boxes, ({ links }) => links).values()];

const leftSec = (boxes: readonly VideoBox[], plays: readonly Play[]): number =>
  boxes.reduce((sum, box) => sum + Math.max(0, box.plays - doneOf(plays, box)) * box.expectedSec, 0);

/** The longest set begins first, and the others run beside it. */
const wallSec = (boxes: readonly VideoBox[], plays: readonly Play[]): number =>
  Math.max(leftSec(boxes, plays) / SETS_AT_ONCE, ...setsOf(boxes).map((set) => leftSec(set, plays)));

function report(boxes: readonly VideoBox[], plays: readonly Play[], { json, picture }: Options): void {
  const rows = videoRows(boxes, plays);
  const own = plays.filter(({ box }) => boxes.some(({ id }) => id === box));
  const madeBy = sittingsText(
    own.map(({ sitting }) => sitting),
    own.map(() => 1),
  );
  const planned = boxes.reduce((sum, box) => sum + box.plays, 0);
  console.log(`
${own.length} of ${planned} plays; ${madeBy}

Figures to reach:

${figureTable(figuresOf(rows))}

Coding beside its rivals (medians, coding first):

${besideTable(rows)}

Where coding loses:

${lossesOf(rows)}

Plays:

${rowTable(rows)}

What went wrong:

${problemsOf(own)}
`);
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(rows, null, 1)}\n`);
  if (picture !== undefined) drawTo(picture, specificationOf(boxes, plays, madeBy));
}

async function main(): Promise<number> {
  const words = optionsOf({
    quick: FLAG,
    list: FLAG,
    report: FLAG,
    plays: TEXT,
    seconds: TEXT,
    row: { ...TEXT, default: "" },
    keep: TEXT,
    json: TEXT,
    picture: TEXT,
  });
  const [plays, seconds] = [countOf("plays", words.plays), countOf("seconds", words.seconds)];
  const times = { ...(plays === undefined ? {} : { plays }), ...(seconds === undefined ? {} : { seconds }) };
  const boxes = videoBoxes(words.quick, times).filter(({ id }) => id.includes(words.row));
  if (words.list)
    for (const { id, plays: count, expectedSec: each, seconds: long } of boxes)
      console.log(`${id}: ${count} plays of ${long} s, about ${each} s each`);
  console.log(`${boxes.length} boxes, ${clock(wallSec(boxes, []))}`);
  if (words.list) return 0;
  const options: Options = {
    keep: words.keep === undefined ? undefined : fileOf(words.keep),
    json: words.json === undefined ? undefined : fileOf(words.json),
    picture: words.picture,
  };
  const stored = options.keep ?? (words.report ? PUBLISHED : undefined);
  const all = stored === undefined ? [] : readSamples<Play>(stored);
  const stopped = watchInterrupt("stopping after the plays that have begun");
  if (!words.report) await playAll(boxes, all, options, stopped);
  report(boxes, all, options);
  return stopped() ? INTERRUPTED : 0;
}

runBench(USAGE, main);
