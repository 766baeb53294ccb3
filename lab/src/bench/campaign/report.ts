/** The campaign as text: a table, the ratios against rivals of the same run, and where coding lost. Pure. */
import type { Figure } from "./figures";
import type { Row } from "./rows";

export interface About {
  date: string;
  command: string;
  commit: string;
  machine: string;
  loadAverage: string;
  /** Fewer than planned when the campaign was stopped. */
  visits: { done: number; planned: number };
}

/** A ratio of two boxes that ran in turns over the same links; `value` over `limit` is worse than the floor when `lessIsBetter`. */
export interface Ratio {
  what: string;
  value: number;
  floor: number;
  lessIsBetter: boolean;
  n: readonly [number, number];
  hostLimited: boolean;
}

const isCoded = ({ mode, generationSize }: Row): boolean => mode === "coded" && generationSize === null;
const alike = (a: Row, b: Row): boolean => a.scenario === b.scenario && a.runner === b.runner && a.N === b.N && a.session === b.session && a.chunkAt === b.chunkAt && a.chunkBytes === b.chunkBytes;

const nameOf = ({ mode, transport }: Row): string => (transport === null ? mode : `${mode} over ${transport}`);

interface Rule {
  what: string;
  floor: number;
  lessIsBetter: boolean;
  applies: (coded: Row) => boolean;
  rival: string;
  value: (coded: Row, rival: Row) => number;
}

const time = (coded: Row, rival: Row): number => coded.completionSec / rival.completionSec;
const speed = (coded: Row, rival: Row): number => coded.goodputBytesPerSec.median / rival.goodputBytesPerSec.median;
const has = (text: string) => ({ scenario }: Row): boolean => scenario.includes(text);

/** What is compared with what, and the figure to reach. A scenario is found by its words (boxes.ts). */
const RULES: readonly Rule[] = [
  { what: "goodput over parallel-http, N=6", floor: 4, lessIsBetter: false, applies: (row) => row.N === 6 && row.session === "warm" && has("6x896 KB/s, RTT 50 ms, loss 0 %")(row), rival: "parallel-http", value: speed },
  { what: "goodput over parallel-http, N=2", floor: 1.7, lessIsBetter: false, applies: (row) => row.N === 2 && row.session === "warm" && has("2x896 KB/s")(row), rival: "parallel-http", value: speed },
  { what: "time over split-http, loss 2 %, Cubic", floor: 0.5, lessIsBetter: true, applies: (row) => row.session === "warm" && has("loss 2 %, cubic")(row), rival: "split-http", value: time },
  { what: "time over split-http, loss 2 %, BBR", floor: 0.95, lessIsBetter: true, applies: (row) => row.session === "warm" && has("loss 2 %, bbr")(row), rival: "split-http", value: time },
  { what: "time over split-http, new sessions, no loss, BBR", floor: 0.95, lessIsBetter: true, applies: (row) => row.session === "new" && has("6x896 KB/s, RTT 50 ms, loss 0 %, bbr")(row), rival: "split-http", value: time },
  { what: "time over split-http, new sessions, loss 2 %, BBR", floor: 0.8, lessIsBetter: true, applies: (row) => row.session === "new" && has("loss 2 %, bbr")(row), rival: "split-http", value: time },
  { what: "time over split-http, one of six falls to a tenth, BBR", floor: 0.95, lessIsBetter: true, applies: (row) => has("bbr, one falls to a tenth")(row), rival: "split-http", value: time },
  { what: "time over split-http, links that differ, BBR", floor: 0.95, lessIsBetter: true, applies: (row) => row.session === "warm" && has("RTT 20/50/80/120 ms, loss 0 %, bbr")(row), rival: "split-http", value: time },
  { what: "time over direct HTTP, N=1, no loss", floor: 1.15, lessIsBetter: true, applies: (row) => row.N === 1 && row.session === "warm", rival: "direct", value: time },
];

export function ratiosOf(rows: readonly Row[]): Ratio[] {
  const mutual = RULES.flatMap((rule) => rows.filter((row) => isCoded(row) && row.n > 0 && rule.applies(row)).flatMap((coded) => {
    const rival = rows.find((row) => row.mode === rule.rival && row.n > 0 && alike(coded, row));
    if (!rival) return [];
    const what = `${nameOf(coded)}: ${rule.what} (${coded.runner}, ${coded.chunkBytes / 1e6} MB, ${coded.scenario})`;
    return [{ what, value: rule.value(coded, rival), floor: rule.floor, lessIsBetter: rule.lessIsBetter, n: [coded.n, rival.n] as const, hostLimited: coded.hostLimited || rival.hostLimited }];
  }));
  return [...mutual, ...againstAria2(rows)];
}

/** aria2 makes new connections for each file, so its rivals are on new sessions. */
function againstAria2(rows: readonly Row[]): Ratio[] {
  return rows.filter(({ mode, n }) => mode === "aria2" && n > 0).flatMap((aria2) => ["split-http", "coded"].flatMap((mode) => rows.filter((row) => row.mode === mode && row.session === "new" && row.n > 0 && alike({ ...row, runner: "aria2" }, aria2)).map((ours) => {
    const floor = mode === "split-http" ? 1.05 : aria2.scenario.includes("cubic") ? 0.6 : 0.95;
    return { what: `${nameOf(ours)}: time over aria2 on the same mirrors, new sessions (${aria2.chunkBytes / 1e6} MB, ${aria2.scenario})`, value: time(ours, aria2), floor, lessIsBetter: true, n: [ours.n, aria2.n] as const, hostLimited: ours.hostLimited || aria2.hostLimited };
  })));
}

export const isMet = ({ value, floor, lessIsBetter }: Ratio): boolean => (lessIsBetter ? value <= floor : value >= floor);

const table = (head: readonly string[], lines: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...lines].map((line) => `| ${line.join(" | ")} |`).join("\n");

const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;

function rowCells(row: Row): string[] {
  const { q1, median, q3 } = row.goodputBytesPerSec;
  const tuning = [row.generationSize && `g=${row.generationSize}`, row.windowPackets && `w=${row.windowPackets}`, row.chunkAt === "origin" && "chunk at the origin"].filter(Boolean).join(", ");
  return [
    row.scenario, row.runner, `${nameOf(row)}${tuning ? ` (${tuning})` : ""}`, String(row.N), (row.chunkBytes / 1e6).toFixed(2), row.session, `${row.n}${row.failed ? ` (${row.failed} failed)` : ""}`,
    [q1, median, q3].map((value) => (value / 1000).toFixed(0)).join(" / "), row.linkShare.toFixed(2), row.normalizedGoodput.toFixed(2), row.completionSec.toFixed(2), row.firstByteSec.toFixed(2),
    percent(row.idleShare), (row.lateUs / 1000).toFixed(2), row.hostLimited ? "host" : "links",
  ];
}

const ROW_HEAD = ["links", "client", "mode", "N", "MB", "session", "n", "goodput KB/s, q1 / median / q3", "link share", "normalized goodput", "s", "first byte s", "idle", "late ms", "limit"];

export const rowTable = (rows: readonly Row[]): string => table(ROW_HEAD, rows.map(rowCells));

export const ratioTable = (ratios: readonly Ratio[]): string =>
  table(["what", "value", "floor", "", "n", "limit"], ratios.map((ratio) => [ratio.what, ratio.value.toFixed(2), String(ratio.floor), isMet(ratio) ? "met" : "NOT MET", ratio.n.join(", "), ratio.hostLimited ? "host" : "links"]));

/** Every pair in turns in which `coded` took longer than an HTTP rival. */
function losses(rows: readonly Row[]): string {
  const found = rows.filter((row) => row.mode === "coded" && row.n > 0).flatMap((coded) =>
    rows.filter((rival) => ["direct", "split-http", "parallel-http", "chunked"].includes(rival.mode) && rival.n > 0 && alike(coded, rival) && rival.completionSec < coded.completionSec)
      .map((rival) => `- ${coded.scenario}; ${nameOf(coded)}, ${coded.runner}, ${coded.chunkBytes / 1e6} MB, ${coded.session} sessions: ${time(coded, rival).toFixed(2)} times as long as ${rival.mode} (${coded.completionSec.toFixed(2)} s, ${rival.completionSec.toFixed(2)} s)`));
  return found.length > 0 ? found.join("\n") : "In no pair of this run.";
}

export function markdownSection(about: About, rows: readonly Row[], ratios: readonly Ratio[], pictures: readonly (Figure & { file: string })[]): string {
  const limited = rows.filter(({ hostLimited }) => hostLimited).length;
  return [
    "## Campaign",
    `Made by \`${about.command}\` on ${about.date} at commit ${about.commit}; ${about.machine}; load average before the run ${about.loadAverage}; ${about.visits.done} of ${about.visits.planned} visits${about.visits.done < about.visits.planned ? " (stopped before its end: boxes that are not below were not visited)" : ""}. Real links (lab/links), origin, Origo, proxies and clients of this repository on one machine, boxes of the same links in turns in random order. A link's rate counts IP packets; its queue is 100 ms; loss is of the proxies' and the origin's sending direction.`,
    limited > 0
      ? `**In ${limited} of ${rows.length} rows the machine was the limit, not the links** (under 10 % of processor time idle, or packets handed over more than 2 ms late, in the median download): their absolute times and link shares say what this machine had left, and their ratios what the sides cost in processor time as much as what they do with links.`
      : "In no row was the machine the limit (under 10 % of processor time idle, or packets handed over more than 2 ms late).",
    "`new`: no connection is open when the download starts, as in a player's first request; `warm`: it follows one on the same connections. `aria2` starts anew each time, one connection a mirror, pieces of 1 MiB, its program's start taken off. Downloads of wrong bytes, and those that fell back to the origin, are counted as failed and in no other figure.",
    "### Ratios", "Each in one run, in turns.", ratioTable(ratios),
    "### Where coding loses", losses(rows),
    "### Boxes", rowTable(rows),
    ...pictures.map(({ title, file }) => `![${title}](${file})`),
  ].join("\n\n");
}
