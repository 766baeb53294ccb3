/**
 * `npm run bench -- gateway`: the time until ffmpeg has the first picture of the sample, by way of `tributary gateway`
 * over six links, beside ffmpeg that asks the origin over its own link. Each play has addresses of its own, so no proxy
 * has stored its segments. Exit status 0 measured, 1 could not measure, 2 bad option.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { startLinks, type Links } from "@tributary/lab-links";
import { repoRoot } from "@tributary/lab-stack";
import { countOf, INTERRUPTED, optionsOf, runBench, TEXT, watchInterrupt } from "../kit/command";
import { median, quartilesOf, sum } from "../kit/figures";
import { watchIdleShare } from "../kit/machine";
import { newSitting, sittingsText } from "../kit/sitting";
import { quartilesText, table } from "../kit/table";
import { ORIGIN_LINK, videoScenario } from "../video/boxes";

const USAGE = `npm run bench -- gateway [--runs N]
  --runs N   plays of each video by either way, in turns (default 15)`;
const LINKS = 6;
const RATIO_MAX = 1.2;
const START_MS_MAX = 30_000;
const PLAY_MS_MAX = 60_000;

/** `path` gets a name of its own for each play. */
const VIDEOS: { name: string; path: (id: string) => string }[] = [
  { name: "HLS, three qualities up to 2 Mbit/s", path: (id) => `/copy/${id}/cmaf/master.m3u8` },
  { name: "DASH, the same", path: (id) => `/copy/${id}/cmaf/stream.mpd` },
  { name: "MP4, 1 Mbit/s", path: (id) => `/copy/${id}/progressive.mp4` },
  { name: "HLS, three qualities up to 10 Mbit/s", path: (id) => `/long/${id}/60/master.m3u8` },
];

type Way = "gateway" | "direct";

interface Play {
  ms: number;
  idleShare: number;
}

interface Running {
  url: string;
  /** Processor time so far. */
  cpuSec(): number;
}

/** Starts the gateway on the client's host. */
function startGateway(links: Links): Promise<Running> {
  const cli = path.join(repoRoot, "client/dist/cli.js");
  const words = ["gateway", "--connections", String(LINKS), "--origo", links.env["ORIGO_URL"]!];
  const child = links.run("client", [process.execPath, cli, ...words], { stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`the gateway did not start in ${START_MS_MAX} ms`)), START_MS_MAX);
    let said = "";
    child.once("close", (code) => reject(new Error(`the gateway ended with ${code}`)));
    child.stdout!.on("data", (text: Buffer) => {
      said += text.toString();
      const url = /The gateway is (\S+)\/ /.exec(said)?.[1];
      if (url === undefined) return;
      clearTimeout(late);
      resolve({ url, cpuSec: () => cpuSecOf(child.pid!) });
    });
  });
}

/** Of a process and its children: the gateway is a child of the program that enters its host. */
function cpuSecOf(pid: number): number {
  // The name is in brackets. Fields 14 and 15 of the whole are in hundredths of a second.
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").match(/\d+/g) ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100 + sum(children.map((child) => cpuSecOf(Number(child))));
}

/** Plays until the first decoded picture comes out of ffmpeg. The start of ffmpeg counts. */
function play(links: Links, url: string): Promise<Play> {
  const words = ["-v", "error", "-nostdin", "-i", url, "-map", "0:v:0", "-frames:v", "1", "-f", "rawvideo", "-"];
  const idleShare = watchIdleShare();
  const startedMs = performance.now();
  const child = links.run("client", ["ffmpeg", ...words], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  child.stderr!.on("data", (text: Buffer) => (said += text.toString()));
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => child.kill("SIGKILL"), PLAY_MS_MAX);
    let result: Play | undefined;
    child.stdout!.on("data", () => (result ??= { ms: performance.now() - startedMs, idleShare: idleShare() }));
    child.once("close", (code) => {
      clearTimeout(late);
      if (result && code === 0) resolve(result);
      else reject(new Error(`ffmpeg ended with ${code} at ${url}: ${said.slice(0, 300)}`));
    });
  });
}

async function main(): Promise<number> {
  const count = countOf("runs", optionsOf({ runs: TEXT }).runs) ?? 15;
  const stopped = watchInterrupt("stopping after the play that has begun");
  const sitting = newSitting();
  const proxies = Array.from({ length: LINKS }, () => ORIGIN_LINK);
  const links = await startLinks(videoScenario({ id: "gateway", proxies, lossPercent: 0, congestion: "bbr" }));
  const plays = VIDEOS.map(() => ({ gateway: [] as Play[], direct: [] as Play[] }));
  const cpuSec = VIDEOS.map(() => 0);
  try {
    const gateway = await startGateway(links);
    const origin = links.env["ORIGIN_URL"]!;
    const baseOf: Record<Way, string> = { direct: origin, gateway: origin.replace(/^(http):\//, `${gateway.url}/$1`) };
    // The first play opens the sessions to the proxies, and is not counted.
    await play(links, `${baseOf.gateway}${VIDEOS[0]!.path(`first-${Date.now()}`)}`);
    for (let turn = 0; turn < count && !stopped(); turn++)
      for (const [index, video] of VIDEOS.entries())
        for (const way of turn % 2 === 0 ? (["gateway", "direct"] as const) : (["direct", "gateway"] as const)) {
          const before = gateway.cpuSec();
          plays[index]![way].push(await play(links, `${baseOf[way]}${video.path(`${way}-${turn}-${Date.now()}`)}`));
          if (way === "gateway") cpuSec[index]! += gateway.cpuSec() - before;
        }
  } finally {
    await links.close();
  }
  if (stopped()) return INTERRUPTED;
  report(plays, cpuSec, sittingsText([sitting], [count]));
  return 0;
}

function report(plays: readonly Record<Way, Play[]>[], cpuSec: readonly number[], madeBy: string): void {
  const rows = VIDEOS.map(({ name }, index) => {
    const { gateway, direct } = plays[index]!;
    const times = (all: Play[]): number[] => all.map(({ ms }) => ms);
    const ratio = median(times(gateway)) / median(times(direct));
    return [
      name,
      quartilesText(quartilesOf(times(gateway)), 0),
      quartilesText(quartilesOf(times(direct)), 0),
      `${ratio.toFixed(2)}${ratio <= RATIO_MAX ? "" : ", too high"}`,
      ((1000 * cpuSec[index]!) / gateway.length).toFixed(0),
      `${Math.round(100 * median([...gateway, ...direct].map(({ idleShare }) => idleShare)))} %`,
    ];
  });
  const head = ["video", "gateway (ms)", "direct (ms)", "ratio", "gateway's processor time (ms)", "idle processors"];
  const setting = `${LINKS} links of ${ORIGIN_LINK.rateKB} KB/s, round trip ${ORIGIN_LINK.rttMs} ms`;
  console.log(`
Time until ffmpeg has the first picture (quartiles), ${setting}; ${madeBy}

${table(head, rows)}

At most ${RATIO_MAX} is wanted.
`);
}

runBench(USAGE, main);
