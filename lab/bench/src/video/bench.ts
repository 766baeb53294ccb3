/**
 * `npm run bench -- video`: hls.js in real Chromium with the extension, over emulated links: start-up, stalls, bitrate.
 * Exit status 0 measured, 1 could not measure, 2 bad option, 130 stopped.
 *
 * npm run bench -- video [--quick] [--plays N] [--seconds N] [--row TEXT] [--keep FILE] [--report] [--json FILE]
 * [--docs] [--list]
 *
 * --quick      3 plays of 45 s each, a quarter of an hour on four cores; without it 20 of 60 s, about two and a half
 * hours
 *     --plays N    so many of each box
 *     --seconds N  of the video
 *     --row TEXT   only the boxes whose name contains TEXT
 * --keep FILE  a line a play; those that are in it already count, on whatever machine and of whatever code: the report
 * says
 *     --report     plays nothing more: what is in FILE of --keep
 *     --json FILE  a row a box (rows.ts), as an array
 * --docs       writes the section `video` of docs/measurements.md, its picture, and the plays to
 * docs/video/plays.jsonl, from
 *                  where --keep docs/video/plays.jsonl goes on
 *     --list       the boxes and how long each is expected to take, and nothing else
 */
import { execFileSync, spawnSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { repoRoot, writeSection } from "@tributary/lab-stack";
import { machineText } from "../machine";
import { videoBoxes } from "./boxes";
import type { VideoBox, VideoLinks } from "./boxes";
import { specificationOf } from "./picture";
import { startStage } from "./play";
import type { Play, Sitting } from "./play";
import { besideTable, markdownSection, reachedOf, reachedTable, rowTable } from "./report";
import { videoRows } from "./rows";

const USAGE =
  "usage: npm run bench -- video [--quick] [--plays N] [--seconds N] [--row TEXT] [--keep FILE] [--report] [--json FILE] [--docs] [--list]";
const INTERRUPTED = 130;
const SECONDS_MAX = 9999;
const PICTURE = "images/video.png";
const PUBLISHED = path.join(repoRoot, "docs/video/plays.jsonl");
/** A play keeps one core busy, of the browser, its proxies and the emulator together, and more while it starts. */
const SETS_AT_ONCE = Math.max(1, Math.floor(os.cpus().length / 2));

interface Options {
  quick: boolean;
  docs: boolean;
  list: boolean;
  report: boolean;
  row: string;
  plays?: number;
  seconds?: number;
  keep?: string;
  json?: string;
}

function optionsOf(words: string[]): Options | string {
  try {
    const flag = { type: "boolean", default: false } as const;
    const text = { type: "string" } as const;
    const { values } = parseArgs({
      args: words,
      options: {
        quick: flag,
        docs: flag,
        list: flag,
        report: flag,
        plays: text,
        seconds: text,
        row: { type: "string", default: "" },
        keep: text,
        json: text,
      },
    });
    const { quick, docs, list, report: isReport, row } = values;
    const numbers = (["plays", "seconds"] as const).flatMap((name) =>
      values[name] === undefined ? [] : [[name, Number(values[name])] as const],
    );
    const wrong = numbers.find(([, value]) => !(Number.isInteger(value) && value > 0 && value <= SECONDS_MAX));
    if (wrong) return `--${wrong[0]} must be a whole number from 1 to ${SECONDS_MAX}, got ${values[wrong[0]]}`;
    const files = (["keep", "json"] as const).flatMap((name) =>
      values[name] === undefined
        ? []
        : [[name, path.resolve(process.env["INIT_CWD"] ?? process.cwd(), values[name])] as const],
    );
    return { quick, docs, list, report: isReport, row, ...Object.fromEntries(numbers), ...Object.fromEntries(files) };
  } catch (error) {
    return (error as Error).message;
  }
}

const clock = (seconds: number): string =>
  `${Math.floor(seconds / 3600)}:${String(Math.floor((seconds % 3600) / 60)).padStart(2, "0")} h`;
const readPlays = (file: string | undefined): Play[] =>
  file !== undefined && existsSync(file)
    ? readFileSync(file, "utf8")
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Play)
    : [];
const doneOf = (plays: readonly Play[], { id }: VideoBox): number => plays.filter(({ box }) => box === id).length;

function describePlay({ startUpMs, stalls, stalledMs, bitsPerSec, segments, problems, idleShare }: Play): string {
  const start = startUpMs === null ? "never started" : `start-up ${(startUpMs / 1000).toFixed(2)} s`;
  return `${start}, ${stalls} stalls (${(stalledMs / 1000).toFixed(1)} s), ${(bitsPerSec / 1e6).toFixed(1)} Mbit/s, ${segments.carried} of ${segments.got} segments carried, idle ${Math.round(100 * idleShare)} %${problems.map((problem) => `; ${problem}`).join("")}`;
}

/**
 * After so many plays of each of their boxes other links come up: stopped early, the bench has all boxes about as
 * often.
 */
const PLAYS_IN_TURN = 5;

async function playAll(
  boxes: readonly VideoBox[],
  plays: Play[],
  options: Options,
  stopped: () => boolean,
): Promise<void> {
  const most = Math.max(...boxes.map((box) => box.plays));
  const sitting = { date: today(), commit: commitOf(), machine: machineText() };
  for (let upTo = PLAYS_IN_TURN; upTo < most + PLAYS_IN_TURN && !stopped(); upTo += PLAYS_IN_TURN)
    await playUpTo(upTo, boxes, plays, sitting, options, stopped);
}

/**
 * Boxes of the same links take turns while these are up; several sets of links are, the longest first. Adds to `plays`.
 */
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
        if (keep !== undefined) appendFileSync(keep, `${JSON.stringify(play)}\n`);
        console.log(`${box.id}, play ${doneOf(plays, box)} of ${box.plays}: ${describePlay(play)}`);
        console.log(`  ${clock(wallSec(boxes, plays))} left`);
      }
    } finally {
      await stage.close();
    }
  }
}

function setsOf(boxes: readonly VideoBox[]): VideoBox[][] {
  const sets = new Map<VideoLinks, VideoBox[]>();
  for (const box of boxes) sets.set(box.links, [...(sets.get(box.links) ?? []), box]);
  return [...sets.values()];
}

const leftSec = (boxes: readonly VideoBox[], plays: readonly Play[]): number =>
  boxes.reduce((sum, box) => sum + Math.max(0, box.plays - doneOf(plays, box)) * box.expectedSec, 0);

/** With the longest set beginning first, and the others beside it. */
const wallSec = (boxes: readonly VideoBox[], plays: readonly Play[]): number =>
  Math.max(leftSec(boxes, plays) / SETS_AT_ONCE, ...setsOf(boxes).map((set) => leftSec(set, plays)));

const today = (): string => new Date().toISOString().slice(0, 10);

function commitOf(): string {
  const git = (...words: string[]): string => execFileSync("git", words, { cwd: repoRoot, encoding: "utf8" }).trim();
  return existsSync(path.join(repoRoot, ".git"))
    ? git("rev-parse", "--short", "HEAD") + (git("status", "--porcelain", "--", ":!docs") ? " with local changes" : "")
    : "unknown";
}

function report(boxes: readonly VideoBox[], plays: readonly Play[], options: Options): void {
  const rows = videoRows(boxes, plays);
  console.log(`\n${reachedTable(reachedOf(rows))}\n\n${besideTable(rows)}\n\n${rowTable(rows)}\n`);
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(rows, null, 1)}\n`);
  if (!options.docs) return;
  const command = [
    "npm run bench -- video",
    options.quick && "--quick",
    options.plays !== undefined && `--plays ${options.plays}`,
    options.seconds !== undefined && `--seconds ${options.seconds}`,
    options.row && `--row "${options.row}"`,
  ]
    .filter(Boolean)
    .join(" ");
  const own = plays.filter(({ box }) => boxes.some(({ id }) => id === box));
  const about = {
    command,
    plays: {
      done: rows.reduce((sum, { n, failed }) => sum + n + failed, 0),
      planned: boxes.reduce((sum, box) => sum + box.plays, 0),
    },
  };
  const specification = specificationOf(boxes, plays, `${command}, ${today()}`);
  const drawn = spawnSync(
    process.execPath,
    [path.join(repoRoot, "lab/sim/draw.mjs"), path.join(repoRoot, "docs", PICTURE)],
    { input: JSON.stringify(specification), stdio: ["pipe", "inherit", "inherit"] },
  );
  if (drawn.status !== 0) throw new Error("the picture could not be drawn");
  mkdirSync(path.dirname(PUBLISHED), { recursive: true });
  writeFileSync(PUBLISHED, own.map((play) => `${JSON.stringify(play)}\n`).join(""));
  writeSection("video", `${command} --docs`, markdownSection(about, rows, own, PICTURE));
}

async function main(): Promise<number> {
  const options = optionsOf(process.argv.slice(2));
  if (typeof options === "string") {
    console.error(`${USAGE}; ${options}`);
    return 2;
  }
  const boxes = videoBoxes(options.quick, options).filter(({ id }) => id.includes(options.row));
  if (options.list)
    for (const { id, plays, expectedSec: each, seconds } of boxes)
      console.log(`${id}: ${plays} plays of ${seconds} s, about ${each} s each`);
  console.log(`${boxes.length} boxes, ${clock(wallSec(boxes, []))}`);
  if (options.list) return 0;
  let stopped = false;
  process.once("SIGINT", () => {
    stopped = true;
    console.log("stopping after the plays that have begun; Ctrl-C again stops at once");
    process.once("SIGINT", () => process.exit(INTERRUPTED));
  });
  const plays = readPlays(options.keep);
  if (!options.report) await playAll(boxes, plays, options, () => stopped);
  report(boxes, plays, options);
  return stopped ? INTERRUPTED : 0;
}

void main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
