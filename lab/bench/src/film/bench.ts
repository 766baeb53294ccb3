/**
 * `npm run bench -- film`: a whole HLS video by the command line over six links, beside yt-dlp's own HLS downloader
 * over the origin's link alone. That link has the rate of one of the six. Exit status 0 measured, 1 could not measure,
 * 2 bad option.
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { startLinks, type Links } from "@tributary/lab-links";
import { LONG_LEVELS, repoRoot } from "@tributary/lab-stack";
import { countOf, INTERRUPTED, optionsOf, runBench, TEXT, watchInterrupt } from "../kit/command";
import { median } from "../kit/figures";
import { watchIdleShare } from "../kit/machine";
import { newSitting, sittingsText } from "../kit/sitting";
import { table } from "../kit/table";
import { ORIGIN_LINK, videoScenario } from "../video/boxes";

const USAGE = `npm run bench -- film [--seconds N] [--runs N]
  --seconds N   of the video (default 60)
  --runs N      downloads of each program, in turns (default 3)`;
const LINKS = 6;
const FRAGMENTS_AT_ONCE = 6;
const FLOOR = 0.25;

interface Run {
  sec: number;
  cpuSec: number;
  idleShare: number;
  problem?: string;
}

type Program = "tributary" | "yt-dlp";

function commandOf(program: Program, url: string, file: string, origoUrl: string): string[] {
  if (program === "yt-dlp") {
    const words = ["--ignore-config", "--quiet", "--no-warnings", "--proxy", "", "--fixup", "never"];
    return ["yt-dlp", ...words, "--hls-prefer-native", "-N", String(FRAGMENTS_AT_ONCE), "-f", "best", "-o", file, url];
  }
  const cli = path.join(repoRoot, "client/dist/cli.js");
  const words = ["--quiet", "--no-fallback", "--connections", String(LINKS), "--origo", origoUrl];
  return [process.execPath, cli, "get", url, "-o", file, ...words];
}

/** Runs the program on the client's host. Its start counts. */
function measure(links: Links, program: Program, seconds: number, name: string): Promise<Run> {
  const folder = mkdtempSync(path.join(os.tmpdir(), "tributary-film-"));
  const file = path.join(folder, "film.mp4");
  const url = `${links.env["ORIGIN_URL"]}/long/${name}/${seconds}/master.m3u8`;
  const command = commandOf(program, url, file, links.env["ORIGO_URL"]!);
  const timed = ["bash", "-c", 'TIMEFORMAT="cpu %U %S"; time "$@"', "bash", ...command];
  const idleShare = watchIdleShare();
  const startedMs = performance.now();
  const child = links.run("client", timed, { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr!.on("data", (text: Buffer) => (said += text.toString()));
  return new Promise((resolve) => {
    child.once("close", (code) => {
      const sec = (performance.now() - startedMs) / 1000;
      const [, user, system] = /cpu ([\d.]+) ([\d.]+)\s*$/.exec(said) ?? [];
      const bytes = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
      rmSync(folder, { recursive: true });
      const problem = code !== 0 || bytes === 0 ? `${program} ended with ${code}: ${said.slice(0, 300)}` : undefined;
      const cpuSec = Number(user) + Number(system);
      resolve({ sec, cpuSec, idleShare: idleShare(), ...(problem === undefined ? {} : { problem }) });
    });
  });
}

async function main(): Promise<number> {
  const words = optionsOf({ seconds: TEXT, runs: TEXT });
  const [seconds, count] = [countOf("seconds", words.seconds) ?? 60, countOf("runs", words.runs) ?? 3];
  const stopped = watchInterrupt("stopping after the download that has begun");
  const sitting = newSitting();
  const proxies = Array.from({ length: LINKS }, () => ORIGIN_LINK);
  const links = await startLinks(videoScenario({ id: "film", proxies, lossPercent: 0, congestion: "bbr" }));
  const runs: Record<Program, Run[]> = { tributary: [], "yt-dlp": [] };
  try {
    for (let turn = 0; turn < count && !stopped(); turn++)
      for (const program of ["tributary", "yt-dlp"] as const) {
        const run = await measure(links, program, seconds, `${program}-${turn}-${Date.now()}`);
        if (run.problem !== undefined) throw new Error(run.problem);
        runs[program].push(run);
        console.log(`${program}: ${run.sec.toFixed(1)} s, ${run.cpuSec.toFixed(1)} s of processor time`);
      }
  } finally {
    await links.close();
  }
  if (stopped()) return INTERRUPTED;
  report(runs, seconds, sittingsText([sitting], [count]));
  return 0;
}

function report(runs: Record<Program, Run[]>, seconds: number, madeBy: string): void {
  const rows = (["tributary", "yt-dlp"] as const).map((program) => [
    program === "tributary" ? `get over ${LINKS} links` : `yt-dlp -N ${FRAGMENTS_AT_ONCE} over one`,
    median(runs[program].map(({ sec }) => sec)).toFixed(1),
    median(runs[program].map(({ cpuSec }) => cpuSec)).toFixed(1),
    `${Math.round(100 * median(runs[program].map(({ idleShare }) => idleShare)))} %`,
  ]);
  const ratio = median(runs.tributary.map(({ sec }) => sec)) / median(runs["yt-dlp"].map(({ sec }) => sec));
  console.log(`
${seconds} s of HLS at ${LONG_LEVELS.at(-1)!.bitsPerSec / 1e6} Mbit/s, links of ${ORIGIN_LINK.rateKB} KB/s; ${madeBy}

${table(["program", "time (s)", "processor time (s)", "idle processors"], rows)}

Time over yt-dlp's: ${ratio.toFixed(3)}, floor ${FLOOR}: ${ratio <= FLOOR ? "reached" : "NOT reached"}.
`);
}

runBench(USAGE, main);
