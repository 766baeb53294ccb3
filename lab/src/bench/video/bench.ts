/**
 * `npm run bench -- video`: hls.js in real Chromium with the extension, over emulated links: start-up, stalls, bitrate. Exit
 * status 0 measured, 1 could not measure, 2 bad option, 130 stopped.
 *
 *     npm run bench -- video [--quick] [--plays N] [--seconds N] [--row TEXT] [--keep FILE] [--report] [--json FILE] [--docs] [--list]
 *
 *     --quick      3 plays of 45 s each, under half an hour; without it 20 of 60 s, about five hours
 *     --plays N    so many of each box
 *     --seconds N  of the video
 *     --row TEXT   only the boxes whose name contains TEXT
 *     --keep FILE  a line a play; those that are in it already count
 *     --report     plays nothing more: what is in FILE of --keep
 *     --json FILE  a row a box (rows.ts), as an array
 *     --docs       writes the section `video` of docs/measurements.md and its picture
 *     --list       the boxes and how long each is expected to take, and nothing else
 */
import { execFileSync, spawnSync } from "node:child_process";
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { writeSection } from "../../document";
import { repoRoot } from "../../fleet";
import { machineText } from "../machine";
import { videoBoxes } from "./boxes";
import type { VideoBox, VideoLinks } from "./boxes";
import { specificationOf } from "./picture";
import { startStage } from "./play";
import type { Play } from "./play";
import { besideTable, markdownSection, reachedOf, reachedTable, rowTable } from "./report";
import { videoRows } from "./rows";

const USAGE = "usage: npm run bench -- video [--quick] [--plays N] [--seconds N] [--row TEXT] [--keep FILE] [--report] [--json FILE] [--docs] [--list]";
const INTERRUPTED = 130;
const SECONDS_MAX = 9999;
const PICTURE = "images/video.png";
const BRING_UP_SEC = 6;

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
    const { values } = parseArgs({ args: words, options: { quick: flag, docs: flag, list: flag, report: flag, plays: text, seconds: text, row: { type: "string", default: "" }, keep: text, json: text } });
    const { quick, docs, list, report: isReport, row } = values;
    const numbers = (["plays", "seconds"] as const).flatMap((name) => (values[name] === undefined ? [] : [[name, Number(values[name])] as const]));
    const wrong = numbers.find(([, value]) => !(Number.isInteger(value) && value > 0 && value <= SECONDS_MAX));
    if (wrong) return `--${wrong[0]} must be a whole number from 1 to ${SECONDS_MAX}, got ${values[wrong[0]]}`;
    const files = (["keep", "json"] as const).flatMap((name) => (values[name] === undefined ? [] : [[name, path.resolve(process.env["INIT_CWD"] ?? process.cwd(), values[name])] as const]));
    return { quick, docs, list, report: isReport, row, ...Object.fromEntries(numbers), ...Object.fromEntries(files) };
  } catch (error) {
    return (error as Error).message;
  }
}

const clock = (seconds: number): string => `${Math.floor(seconds / 3600)}:${String(Math.floor((seconds % 3600) / 60)).padStart(2, "0")} h`;
const expectedSec = (boxes: readonly VideoBox[]): number => boxes.reduce((sum, { plays, expectedSec: each }) => sum + plays * each, 0);
const readPlays = (file: string | undefined): Play[] => (file !== undefined && existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line) as Play) : []);
const doneOf = (plays: readonly Play[], { id }: VideoBox): number => plays.filter(({ box }) => box === id).length;

function describePlay({ startUpMs, stalls, stalledMs, bitsPerSec, segments, problems, idleShare }: Play): string {
  const start = startUpMs === null ? "never started" : `start-up ${(startUpMs / 1000).toFixed(2)} s`;
  return `${start}, ${stalls} stalls (${(stalledMs / 1000).toFixed(1)} s), ${(bitsPerSec / 1e6).toFixed(1)} Mbit/s, ${segments.carried} of ${segments.got} segments carried, idle ${Math.round(100 * idleShare)} %${problems.map((problem) => `; ${problem}`).join("")}`;
}

/** Boxes of the same links take turns while these are up. Adds to `plays`. */
async function playAll(boxes: readonly VideoBox[], plays: Play[], { keep }: Options, stopped: () => boolean): Promise<void> {
  const byLinks = new Map<VideoLinks, VideoBox[]>();
  for (const box of boxes) byLinks.set(box.links, [...(byLinks.get(box.links) ?? []), box]);
  const commit = commitOf();
  for (const [links, own] of byLinks) {
    const open = (): VideoBox[] => own.filter((box) => doneOf(plays, box) < box.plays);
    if (open().length === 0 || stopped()) continue;
    const stage = await startStage(links);
    try {
      while (open().length > 0 && !stopped()) {
        const box = open().reduce((least, each) => (doneOf(plays, each) < doneOf(plays, least) ? each : least));
        const left = boxes.reduce((sum, each) => sum + Math.max(0, each.plays - doneOf(plays, each)) * each.expectedSec, 0);
        console.log(`${clock(left)} left: ${box.id}, play ${doneOf(plays, box) + 1} of ${box.plays}, about ${box.expectedSec} s`);
        const play = await stage.play(box, doneOf(plays, box), commit);
        console.log(`  ${describePlay(play)}`);
        plays.push(play);
        if (keep !== undefined) appendFileSync(keep, `${JSON.stringify(play)}\n`);
      }
    } finally {
      await stage.close();
    }
  }
}

function commitOf(): string {
  const git = (...words: string[]): string => execFileSync("git", words, { cwd: repoRoot, encoding: "utf8" }).trim();
  return existsSync(path.join(repoRoot, ".git")) ? git("rev-parse", "--short", "HEAD") + (git("status", "--porcelain", "--", ":!docs") ? " with local changes" : "") : "unknown";
}

function report(boxes: readonly VideoBox[], plays: readonly Play[], options: Options): void {
  const rows = videoRows(boxes, plays);
  console.log(`\n${reachedTable(reachedOf(rows))}\n\n${besideTable(rows)}\n\n${rowTable(rows)}\n`);
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(rows, null, 1)}\n`);
  if (!options.docs) return;
  const command = ["npm run bench -- video", options.quick && "--quick", options.plays !== undefined && `--plays ${options.plays}`, options.seconds !== undefined && `--seconds ${options.seconds}`, options.row && `--row "${options.row}"`].filter(Boolean).join(" ");
  const machine = machineText();
  const own = plays.filter(({ box }) => boxes.some(({ id }) => id === box));
  const about = { date: new Date().toISOString().slice(0, 10), command, commit: [...new Set(own.map(({ commit }) => commit))].join(", "), machine, plays: { done: rows.reduce((sum, { n, failed }) => sum + n + failed, 0), planned: boxes.reduce((sum, box) => sum + box.plays, 0) } };
  const specification = specificationOf(boxes, plays, `${command}, ${about.date}, ${machine}`);
  const drawn = spawnSync(process.execPath, [path.join(repoRoot, "lab/bench/draw.mjs"), path.join(repoRoot, "docs", PICTURE)], { input: JSON.stringify(specification), stdio: ["pipe", "inherit", "inherit"] });
  if (drawn.status !== 0) throw new Error("the picture could not be drawn");
  writeSection("video", `${command} --docs`, markdownSection(about, rows, own, PICTURE));
}

async function main(): Promise<number> {
  const options = optionsOf(process.argv.slice(2));
  if (typeof options === "string") {
    console.error(`${USAGE}; ${options}`);
    return 2;
  }
  const boxes = videoBoxes(options.quick, options).filter(({ id }) => id.includes(options.row));
  const stages = new Set(boxes.map(({ links }) => links)).size;
  if (options.list) for (const { id, plays, expectedSec: each, seconds } of boxes) console.log(`${id}: ${plays} plays of ${seconds} s, about ${each} s each`);
  console.log(`${boxes.length} boxes, ${clock(expectedSec(boxes) + stages * BRING_UP_SEC)}`);
  if (options.list) return 0;
  let stopped = false;
  process.once("SIGINT", () => {
    stopped = true;
    console.log("stopping after this play; Ctrl-C again stops at once");
    process.once("SIGINT", () => process.exit(INTERRUPTED));
  });
  const plays = readPlays(options.keep);
  if (!options.report) await playAll(boxes, plays, options, () => stopped);
  report(boxes, plays, options);
  return stopped ? INTERRUPTED : 0;
}

void main().then((code) => process.exit(code), (error: unknown) => {
  console.error(error);
  process.exit(1);
});
