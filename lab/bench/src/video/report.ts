/** The plays as text: figures to reach, coding beside its rivals, a row a box, and where coding lost. Pure. */
import { markdownTable } from "@tributary/lab-stack";
import { START_UP_LINKS, STALL_LINKS } from "./boxes";
import type { Play } from "./play";
import type { Quartiles } from "../statistics";
import type { VideoRow } from "./rows";

export interface VideoAbout {
  command: string;
  /** The plan of one box; fewer are done when the run was stopped. */
  plays: { done: number; planned: number };
}

/** What the issue asks for. `got` may be at most `floor`. */
export interface Reached {
  what: string;
  got: number;
  floor: number;
  aim: number;
  n: readonly number[];
  limited: boolean;
}

const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;
const three = ({ q1, median, q3 }: Quartiles, digits: number): string =>
  [q1, median, q3].map((value) => value.toFixed(digits)).join(" / ");
const nameOf = ({ mode, transport }: VideoRow): string => (transport === "auto" ? mode : `${mode} over ${transport}`);
const isCoded = ({ mode, n }: VideoRow): boolean => mode === "coded" && n > 0;
const rivalsOf = (rows: readonly VideoRow[], { links }: VideoRow): VideoRow[] =>
  rows.filter((row) => row.links === links && row.mode !== "coded" && row.n > 0);

export function reachedOf(rows: readonly VideoRow[]): Reached[] {
  return rows
    .filter((row) => isCoded(row) && row.transport === "auto")
    .flatMap((coded): Reached[] => {
      const direct = rivalsOf(rows, coded).find(({ mode }) => mode === "direct");
      const startUp =
        coded.links === START_UP_LINKS && direct
          ? [
              {
                what: `start-up of hls.js, coded over direct on one link (${coded.links})`,
                got: coded.startUpSec.median / direct.startUpSec.median,
                floor: 0.6,
                aim: 0.4,
                n: [coded.n, direct.n],
                limited: coded.startLimited || direct.startLimited,
              },
            ]
          : [];
      const stalls =
        coded.links === STALL_LINKS
          ? [
              {
                what: `stalls of coded, the most in one play of ${coded.seconds} s (${coded.links})`,
                got: coded.stallsMax,
                floor: 0,
                aim: 0,
                n: [coded.n],
                limited: coded.hostLimited,
              },
            ]
          : [];
      return [...startUp, ...stalls];
    });
}

export const reachedTable = (reached: readonly Reached[]): string =>
  markdownTable(
    ["what", "got", "floor", "aim", "", "n", "limit"],
    reached.map(({ what, got, floor, aim, n, limited }) => [
      what,
      String(Number(got.toFixed(2))),
      String(floor),
      String(aim),
      got <= aim ? "aim met" : got <= floor ? "met" : "NOT MET",
      n.join(", "),
      limited ? "host" : "links",
    ]),
  );

/** Ratios of medians, in turns over the same links. */
export function besideTable(rows: readonly VideoRow[]): string {
  const lines = rows
    .filter(isCoded)
    .flatMap((coded) =>
      rivalsOf(rows, coded).map((rival) => [
        coded.links,
        nameOf(coded),
        nameOf(rival),
        (coded.startUpSec.median / rival.startUpSec.median).toFixed(2),
        `${perMinute(coded).toFixed(2)} / ${perMinute(rival).toFixed(2)}`,
        `${meanStall(coded).toFixed(1)} / ${meanStall(rival).toFixed(1)}`,
        (coded.bitsPerSec.median / rival.bitsPerSec.median).toFixed(2),
        coded.startLimited || coded.hostLimited || rival.startLimited || rival.hostLimited ? "host" : "links",
      ]),
    );
  return markdownTable(
    [
      "links",
      "",
      "beside",
      "start-up, ratio",
      "stalls in 60 s",
      "seconds stalled, median play",
      "bitrate, ratio",
      "limit",
    ],
    lines,
  );
}

const perMinute = ({ stallsTotal, n, seconds }: VideoRow): number => (60 * stallsTotal) / (n * seconds);
const meanStall = ({ stalledSec }: VideoRow): number => stalledSec.median;

export const rowTable = (rows: readonly VideoRow[]): string =>
  markdownTable(
    [
      "links",
      "mode",
      "s",
      "n",
      "start-up s, q1 / median / q3",
      "its parts ms",
      "from the page's opening s",
      "stalls a play",
      "plays without",
      "stalled s",
      "bitrate Mbit/s",
      "switches",
      "segments: carried, fell back, direct, given up",
      "normalized goodput",
      "idle: all, start",
      "waited",
      "late ms",
      "limit",
    ],
    rows.map((row) => {
      const { segments } = row;
      return [
        row.links,
        nameOf(row),
        String(row.seconds),
        `${row.n}${row.failed ? ` (${row.failed} failed)` : ""}`,
        three(row.startUpSec, 2),
        row.parts.map((part) => part.toFixed(0)).join(" + "),
        row.openedSec.median.toFixed(2),
        `${row.stalls.median.toFixed(1)} (most ${row.stallsMax})`,
        `${row.playsWithoutStall} of ${row.n}`,
        three(row.stalledSec, 1),
        three({ q1: row.bitsPerSec.q1 / 1e6, median: row.bitsPerSec.median / 1e6, q3: row.bitsPerSec.q3 / 1e6 }, 1),
        row.switches.median.toFixed(1),
        `${segments.carried}, ${segments.fellBack}, ${segments.direct}, ${segments.aborted}`,
        row.normalizedGoodput === null ? "-" : row.normalizedGoodput.toFixed(2),
        `${percent(row.idleShare)}, ${percent(row.startIdleShare)}`,
        row.startWaitShare === null ? "-" : percent(row.startWaitShare),
        (row.lateUs / 1000).toFixed(2),
        row.hostLimited ? "host" : row.startLimited ? "host at the start" : "links",
      ];
    }),
  );

/** Every pair of rows over the same links in which coding was behind, in whatever. */
function losses(rows: readonly VideoRow[]): string {
  const found = rows.filter(isCoded).flatMap((coded) =>
    rivalsOf(rows, coded).flatMap((rival) => {
      const behind = [
        ...(coded.startUpSec.median > rival.startUpSec.median
          ? [`starts later (${coded.startUpSec.median.toFixed(2)} s, ${rival.startUpSec.median.toFixed(2)} s)`]
          : []),
        ...(perMinute(coded) > perMinute(rival)
          ? [`stalls more (${perMinute(coded).toFixed(2)} times in 60 s, ${perMinute(rival).toFixed(2)})`]
          : []),
        ...(coded.bitsPerSec.median < rival.bitsPerSec.median
          ? [
              `plays a lower bitrate (${(coded.bitsPerSec.median / 1e6).toFixed(1)} Mbit/s, ${(rival.bitsPerSec.median / 1e6).toFixed(1)})`,
            ]
          : []),
      ];
      return behind.length > 0
        ? [`- ${coded.links}: ${nameOf(coded)} ${behind.join(", ")} than ${nameOf(rival)}.`]
        : [];
    }),
  );
  return found.length > 0 ? found.join("\n") : "In no pair of this run.";
}

/** What went wrong in plays, in the words it was told in, and how often. */
function problemsOf(plays: readonly Play[]): string {
  const counts = new Map<string, number>();
  for (const { box, problems } of plays)
    for (const problem of problems) counts.set(`${box}: ${problem}`, (counts.get(`${box}: ${problem}`) ?? 0) + 1);
  return counts.size > 0
    ? [...counts].map(([what, count]) => `- ${what}${count > 1 ? ` (${count} plays)` : ""}`).join("\n")
    : "None.";
}

/** How many plays each sitting has, in their order. */
function sittingsText(plays: readonly Play[]): string {
  const counts = new Map<string, number>();
  for (const {
    sitting: { date, machine, commit },
  } of plays) {
    const words = `on ${date}, ${machine}, at commit ${commit}`;
    counts.set(words, 1 + (counts.get(words) ?? 0));
  }
  return [...counts].map(([words, count]) => `${count} ${words}`).join("; ");
}

export function markdownSection(
  about: VideoAbout,
  rows: readonly VideoRow[],
  plays: readonly Play[],
  picture: string,
): string {
  const limited = rows.filter(({ hostLimited, startLimited }) => hostLimited || startLimited).length;
  const kills = rows.reduce((sum, row) => sum + row.kills, 0);
  const { done, planned } = about.plays;
  return [
    "## Video quality",
    `Made by \`${about.command}\`: ${done} of ${planned} plays${done < planned ? " (stopped before its end: boxes that are not below were not played)" : ""}, ${sittingsText(plays)}. hls.js on the sample's page (buffer 10 s) in real Chromium with the extension, a new browser and a video that nobody has fetched before in each play, over real links (lab/links), all on one machine, modes in turns, one set of links per two cores at once. A link's rate counts IP packets (1 KB = 1,000 bytes); its queue is 100 ms; loss is of the proxies' and the origin's sending direction. The origin, which \`direct\` has alone, sends over a link of 896 KB/s, RTT 50 ms, of the same loss; the proxies fetch from it past their links. The video has three levels of 2.5, 5 and 10 Mbit/s in segments of 2 s: the sample's own H.264 pictures (at most 2 Mbit/s), each segment filled up with a \`free\` box, so bitrates are those of the network and not of the decoder; no sound.`,
    `Start-up: from the player's start on an open page to the first frame on the screen (\`requestVideoFrameCallback\`); its parts: master playlist, media playlist, then together init segment and first segment; the rest is the player's and the decoder's. A stall is a \`waiting\` event after that, until \`playing\`. Bitrate: of the levels played, by the time of their segments. Segments by Origo's records: \`fell back\`: another way than the mode's brought part of it; \`direct\`: from the origin; \`given up\`: by the player, for another level. \`waited\`: the share of the start-up in which some program that could run waited for a processor (Linux's PSI): viewer, proxies, origin and emulator share one machine here.${kills > 0 ? ` A proxy that dies: its link is cut and its process killed (SIGKILL); 5 s later the link is whole and the process is started anew: ${kills} times in all.` : ""}`,
    limited > 0
      ? `**In ${limited} of ${rows.length} rows the machine was the limit** (under 10 % of processor time idle, in the whole play or its start-up, or packets handed over more than 2 ms late, in the median play): what they say of times is as much about this machine as about the links.`
      : "In no row was the machine the limit (under 10 % of processor time idle, in the whole play or its start-up, or packets handed over more than 2 ms late, in the median play).",
    "### Figures to reach",
    reachedTable(reachedOf(rows)),
    "### Coding beside its rivals",
    "Medians, coding's first.",
    besideTable(rows),
    "### Where coding loses",
    losses(rows),
    "### Plays",
    rowTable(rows),
    "### What went wrong",
    problemsOf(plays),
    `![Start-up, stalls and bitrate by links and mode](${picture})`,
  ].join("\n\n");
}
