/** What a person reads: figures to reach, coding beside its rivals, a row a box, and where coding lost. Pure. */
import { groupBy } from "../kit/figures";
import { percent, quartilesText, table } from "../kit/table";
import { atMost, type Figure } from "../kit/verdict";
import { START_UP_LINKS, STALL_LINKS } from "./boxes";
import type { Play } from "./play";
import type { VideoRow } from "./rows";

const nameOf = ({ mode, transport }: VideoRow): string => (transport === "auto" ? mode : `${mode} over ${transport}`);
const isCoded = ({ mode, n }: VideoRow): boolean => mode === "coded" && n > 0;
const rivalsOf = (rows: readonly VideoRow[], { links }: VideoRow): VideoRow[] =>
  rows.filter((row) => row.links === links && row.mode !== "coded" && row.n > 0);

/** n: plays; limit: what set the pace, the links or the machine (host). */
const noteOf = (rows: readonly VideoRow[], isLimited: boolean): string =>
  `n ${rows.map(({ n }) => n).join(", ")}; limit ${isLimited ? "host" : "links"}`;

export function figuresOf(rows: readonly VideoRow[]): Figure[] {
  return rows
    .filter((row) => isCoded(row) && row.transport === "auto")
    .flatMap((coded): Figure[] => {
      const direct = rivalsOf(rows, coded).find(({ mode }) => mode === "direct");
      if (coded.links === START_UP_LINKS && direct) {
        const what = `start-up of hls.js, coded over direct on one link (${coded.links})`;
        const note = noteOf([coded, direct], coded.startLimited || direct.startLimited);
        return [atMost(what, coded.startUpSec.median / direct.startUpSec.median, [0.6, 0.4], { note })];
      }
      if (coded.links !== STALL_LINKS) return [];
      const what = `stalls of coded, the most in one play of ${coded.seconds} s (${coded.links})`;
      return [atMost(what, coded.stallsMax, [0], { note: noteOf([coded], coded.hostLimited) })];
    });
}

/** Ratios of medians. The two take turns over the same links. */
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
  return table(
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
  table(
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
        quartilesText(row.startUpSec, 2),
        row.parts.map((part) => part.toFixed(0)).join(" + "),
        row.openedSec.median.toFixed(2),
        `${row.stalls.median.toFixed(1)} (most ${row.stallsMax})`,
        `${row.playsWithoutStall} of ${row.n}`,
        quartilesText(row.stalledSec, 1),
        quartilesText(row.bitsPerSec, 1, 1e-6),
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

/** Every pair of rows over the same links in which coding was behind in something. */
export function lossesOf(rows: readonly VideoRow[]): string {
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
              `plays a lower bitrate (${(coded.bitsPerSec.median / 1e6).toFixed(1)} Mbit/s, ` +
                `${(rival.bitsPerSec.median / 1e6).toFixed(1)})`,
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

/** What went wrong in plays, and how often. */
export function problemsOf(plays: readonly Play[]): string {
  const all = plays.flatMap(({ box, problems }) => problems.map((problem) => `${box}: ${problem}`));
  const lines = [...groupBy(all, (what) => what)].map(
    ([what, { length }]) => `- ${what}${length > 1 ? ` (${length} plays)` : ""}`,
  );
  return lines.length > 0 ? lines.join("\n") : "None.";
}
