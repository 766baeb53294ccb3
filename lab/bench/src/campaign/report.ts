/** The campaign as text: a table, the ratios against rivals of the same run, and where coding lost. Pure. */
import { markdownTable } from "@tributary/lab-stack";
import type { SessionKind } from "./orders";
import type { Figure as Picture } from "./figures";
import type { Row } from "./rows";

/** Part of a campaign that went on in one piece, on one machine and with one code. */
export interface Sitting {
  date: string;
  commit: string;
  machine: string;
  /** Before it. */
  loadAverage: string;
  visits: number;
}

export interface About {
  command: string;
  sittings: readonly Sitting[];
  /** Fewer than planned when the campaign was stopped. */
  visits: { done: number; planned: number };
  /** Those that count are the ones while the machine had time to spare (rows.ts). */
  downloads: { counted: number; all: number };
}

const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;

/** What a picture says of itself: the command, the days, and each machine with its share of the visits. */
export function madeBy({ command, sittings }: About): string {
  const days = sittings.map(({ date }) => date).sort();
  const visits = new Map<string, number>();
  for (const { machine, visits: own } of sittings) {
    const short = machine.split(", Linux")[0]!;
    visits.set(short, (visits.get(short) ?? 0) + own);
  }
  const total = [...visits.values()].reduce((sum, own) => sum + own, 0);
  const machines = [...visits].map(([machine, own]) =>
    visits.size > 1 ? `${machine} (${percent(own / total)})` : machine,
  );
  return [command, [...new Set([days[0], days.at(-1)])].join(" to "), ...machines].join(", ");
}

/** Each with its own visits, out of those with the visits done before it; `total` in the end. */
export const sittingsOf = (begun: readonly Sitting[], total: number): Sitting[] =>
  begun
    .map((sitting, index) => ({ ...sitting, visits: (begun[index + 1]?.visits ?? total) - sitting.visits }))
    .filter(({ visits }) => visits > 0);

/**
 * What a box reached, by itself or over one that ran in turns with it over the same links; `value` over `floor` is
 * short when `lessIsBetter`.
 */
export interface Figure {
  what: string;
  value: number;
  floor: number;
  /** The value if coding took no longer than the wire does; null where that is not known. */
  wire: number | null;
  lessIsBetter: boolean;
  /** Downloads of the box, and of its rival. */
  n: readonly number[];
  hostLimited: boolean;
}

/**
 * As viewers have it: no generation size or window to be tried, no plain UDP, which browsers have not and nothing holds
 * back.
 */
const isPlain = ({ generationSize, transport }: Row): boolean => generationSize === null && transport !== "udp";
const alike = (a: Row, b: Row): boolean =>
  a.scenario === b.scenario &&
  a.runner === b.runner &&
  a.N === b.N &&
  a.session === b.session &&
  a.chunkAt === b.chunkAt &&
  a.chunkBytes === b.chunkBytes;

const whereOf = ({ runner, chunkBytes, scenario, chunkAt }: Row): string =>
  [
    runner,
    `${Number((chunkBytes / 1e6).toPrecision(2))} MB`,
    scenario,
    ...(chunkAt === "origin" ? ["chunk at the origin"] : []),
  ].join(", ");

const nameOf = ({ mode, transport }: Row): string => (transport === null ? mode : `${mode} over ${transport}`);

interface Rule {
  what: string;
  floor: number;
  lessIsBetter: boolean;
  /** To which boxes of what mode: `coded` unless it is said. */
  mode?: string;
  applies: (row: Row) => boolean;
  /** Without one the value is the row's own. */
  rival?: string;
  /** `aria2` makes new connections for each file, so its rivals are on new sessions. */
  value: (row: Row, rival: Row) => number;
}

const time = (row: Row, rival: Row): number => row.completionSec / rival.completionSec;
const speed = (row: Row, rival: Row): number => row.goodputBytesPerSec.median / rival.goodputBytesPerSec.median;

/** Rows of all that is named; a scenario is found by its words (boxes.ts). */
function of({
  text = "",
  session,
  transport,
  N,
  chunkBytes,
  runner = "node",
}: {
  text?: string;
  session?: SessionKind;
  transport?: string;
  N?: number;
  chunkBytes?: number;
  runner?: string;
}): (row: Row) => boolean {
  return (row) =>
    row.scenario.includes(text) &&
    row.runner === runner &&
    (session === undefined || row.session === session) &&
    (transport === undefined || row.transport === transport) &&
    (N === undefined || row.N === N) &&
    (chunkBytes === undefined || row.chunkBytes === chunkBytes);
}

const SIX_LINKS = "6x896 KB/s, RTT 50 ms, loss";
const KEY_BYTES = 1_500_000;

/** What is measured, or compared with what, and the figure to reach. */
const RULES: readonly Rule[] = [
  ...(
    [
      ["warm", "0", 0.75, 0.6],
      ["warm", "2", 0.72, 0.4],
      ["new", "0", 0.7, undefined],
      ["new", "2", 0.68, undefined],
    ] as const
  ).flatMap(([session, loss, floor, webrtcFloor]): Rule[] => {
    const links = { text: `${SIX_LINKS} ${loss} %, bbr`, session, chunkBytes: KEY_BYTES };
    const what = `link share, ${session} sessions, loss ${loss} %`;
    const best: Rule = {
      what,
      floor,
      lessIsBetter: false,
      applies: of({ ...links, transport: "webtransport" }),
      value: (row) => row.linkShare,
    };
    return webrtcFloor === undefined
      ? [best]
      : [best, { ...best, floor: webrtcFloor, applies: of({ ...links, transport: "webrtc" }) }];
  }),
  ...["0", "2"].map((loss): Rule => ({
    what: `normalized goodput, warm sessions, loss ${loss} %`,
    floor: 0.93,
    lessIsBetter: false,
    applies: of({
      text: `${SIX_LINKS} ${loss} %, bbr`,
      session: "warm",
      chunkBytes: KEY_BYTES,
      transport: "webtransport",
    }),
    value: (row) => row.normalizedGoodput,
  })),
  {
    what: "goodput over parallel-http, N=6",
    floor: 4,
    lessIsBetter: false,
    applies: of({ text: `${SIX_LINKS} 0 %`, session: "warm", N: 6 }),
    rival: "parallel-http",
    value: speed,
  },
  {
    what: "goodput over parallel-http, N=2",
    floor: 1.7,
    lessIsBetter: false,
    applies: of({ text: "2x896 KB/s", session: "warm", N: 2 }),
    rival: "parallel-http",
    value: speed,
  },
  {
    what: "goodput over parallel-http, N=2",
    floor: 1,
    lessIsBetter: false,
    mode: "coded-mutp",
    applies: of({ text: "2x896 KB/s", session: "warm", N: 2 }),
    rival: "parallel-http",
    value: speed,
  },
  {
    what: "time over split-http, loss 2 %, Cubic",
    floor: 0.5,
    lessIsBetter: true,
    applies: of({ text: "loss 2 %, cubic", session: "warm" }),
    rival: "split-http",
    value: time,
  },
  {
    what: "time over split-http, loss 2 %, BBR",
    floor: 0.95,
    lessIsBetter: true,
    applies: of({ text: "loss 2 %, bbr", session: "warm" }),
    rival: "split-http",
    value: time,
  },
  {
    what: "time over split-http, new sessions, no loss, BBR",
    floor: 0.95,
    lessIsBetter: true,
    applies: of({ text: `${SIX_LINKS} 0 %, bbr`, session: "new" }),
    rival: "split-http",
    value: time,
  },
  {
    what: "time over split-http, new sessions, loss 2 %, BBR",
    floor: 0.8,
    lessIsBetter: true,
    applies: of({ text: "loss 2 %, bbr", session: "new" }),
    rival: "split-http",
    value: time,
  },
  {
    what: "time over split-http, one of six falls to a tenth, BBR",
    floor: 0.95,
    lessIsBetter: true,
    applies: of({ text: "bbr, one falls to a tenth" }),
    rival: "split-http",
    value: time,
  },
  {
    what: "time over split-http, links that differ, BBR",
    floor: 0.95,
    lessIsBetter: true,
    applies: of({ text: "RTT 20/50/80/120 ms, loss 0 %, bbr", session: "warm" }),
    rival: "split-http",
    value: time,
  },
  ...["direct", "direct-http2"].map((rival): Rule => ({
    what: `time over ${rival}, N=1, no loss`,
    floor: 1.15,
    lessIsBetter: true,
    applies: of({ N: 1, session: "warm" }),
    rival,
    value: time,
  })),
  {
    what: "time over aria2 on the same mirrors, new sessions",
    floor: 1.05,
    lessIsBetter: true,
    mode: "split-http",
    applies: of({ session: "new" }),
    rival: "aria2",
    value: time,
  },
  ...(
    [
      ["loss 2 %, cubic", 0.6],
      ["loss 2 %, bbr", 0.95],
      ["loss 0 %", 0.95],
    ] as const
  ).map(([text, floor]): Rule => ({
    what: "time over aria2 on the same mirrors, new sessions",
    floor,
    lessIsBetter: true,
    applies: of({ text, session: "new" }),
    rival: "aria2",
    value: time,
  })),
];

export function figuresToReach(rows: readonly Row[]): Figure[] {
  return RULES.flatMap(({ mode = "coded", applies, rival: rivalMode, what, value, ...limit }) =>
    rows
      .filter((row) => row.mode === mode && isPlain(row) && row.n > 0 && applies(row))
      .flatMap((row): Figure[] => {
        const rival =
          rivalMode === undefined
            ? row
            : rows.find(
                (other) =>
                  other.mode === rivalMode &&
                  other.n > 0 &&
                  alike(row, rivalMode === "aria2" ? { ...other, runner: row.runner } : other),
              );
        if (!rival) return [];
        const pair = rival === row ? [row] : [row, rival];
        return [
          {
            what: `${nameOf(row)}: ${what} (${whereOf(row)})`,
            value: value(row, rival),
            wire: row.wireSec === null ? null : value(onTheWire(row, row.wireSec), rival),
            ...limit,
            n: pair.map(({ n }) => n),
            hostLimited: pair.some(({ hostLimited }) => hostLimited),
          },
        ];
      }),
  );
}

/** A row as if it took `sec`, and brought nothing in vain. */
function onTheWire(row: Row, sec: number): Row {
  const faster = row.completionSec / sec;
  const { q1, median, q3 } = row.goodputBytesPerSec;
  return {
    ...row,
    completionSec: sec,
    goodputBytesPerSec: { q1: faster * q1, median: faster * median, q3: faster * q3 },
    linkShare: faster * row.linkShare,
    normalizedGoodput: 1,
  };
}

export const isMet = ({ value, floor, lessIsBetter }: Figure): boolean =>
  lessIsBetter ? value <= floor : value >= floor;

function verdictOf(figure: Figure): string {
  if (isMet(figure)) return "met";
  return figure.wire === null || isMet({ ...figure, value: figure.wire }) ? "NOT MET" : "beyond the wire";
}

function rowCells(row: Row): string[] {
  const { q1, median, q3 } = row.goodputBytesPerSec;
  const tuning = [
    row.generationSize && `g=${row.generationSize}`,
    row.windowPackets && `w=${row.windowPackets}`,
    row.chunkAt === "origin" && "chunk at the origin",
  ]
    .filter(Boolean)
    .join(", ");
  return [
    row.scenario,
    row.runner,
    `${nameOf(row)}${tuning ? ` (${tuning})` : ""}`,
    String(row.N),
    (row.chunkBytes / 1e6).toFixed(2),
    row.session,
    `${row.n}${row.failed ? ` (${row.failed} failed)` : ""}`,
    [q1, median, q3].map((value) => (value / 1000).toFixed(0)).join(" / "),
    row.linkShare.toFixed(2),
    row.normalizedGoodput.toFixed(2),
    row.completionSec.toFixed(2),
    row.firstByteSec.toFixed(2),
    percent(row.idleShare),
    (row.lateUs / 1000).toFixed(2),
    row.hostLimited ? "host" : "links",
  ];
}

const ROW_HEAD = [
  "links",
  "client",
  "mode",
  "N",
  "MB",
  "session",
  "n",
  "goodput KB/s, q1 / median / q3",
  "link share",
  "normalized goodput",
  "s",
  "first byte s",
  "idle",
  "late ms",
  "limit",
];

export const rowTable = (rows: readonly Row[]): string => markdownTable(ROW_HEAD, rows.map(rowCells));

/** `ofAll`: the same figures of every download, those of a busy machine too. */
export const figureTable = (figures: readonly Figure[], ofAll: readonly Figure[]): string =>
  markdownTable(
    ["what", "value", "floor", "", "wire", "n", "of all", "limit"],
    figures.map((figure) => {
      const all = ofAll.find(({ what, floor }) => what === figure.what && floor === figure.floor);
      return [
        figure.what,
        figure.value.toFixed(2),
        String(figure.floor),
        verdictOf(figure),
        figure.wire?.toFixed(2) ?? "",
        figure.n.join(", "),
        all?.value.toFixed(2) ?? "",
        figure.hostLimited ? "host" : "links",
      ];
    }),
  );

const HTTP: readonly string[] = ["direct", "direct-http2", "split-http", "parallel-http", "chunked"];

/** Every HTTP rival that was faster than `coded` in turns with it, and where it was so the most. */
function losses(rows: readonly Row[]): string {
  const kinds = new Map<string, { ratio: number; coded: Row; rival: Row }[]>();
  for (const coded of rows.filter((row) => row.mode === "coded" && isPlain(row) && row.n > 0)) {
    for (const rival of rows.filter((row) => HTTP.includes(row.mode) && row.n > 0 && alike(coded, row))) {
      const kind = [nameOf(coded), coded.runner, coded.session, rival.mode].join();
      kinds.set(kind, [...(kinds.get(kind) ?? []), { ratio: time(coded, rival), coded, rival }]);
    }
  }
  const lost = [...kinds.values()]
    .map((pairs) => ({ pairs, worst: pairs.reduce((a, b) => (b.ratio > a.ratio ? b : a)) }))
    .filter(({ worst }) => worst.ratio > 1);
  if (lost.length === 0) return "In no pair of this run.";
  const cells = lost
    .sort((a, b) => b.worst.ratio - a.worst.ratio)
    .map(({ pairs, worst: { ratio, coded, rival } }) => [
      nameOf(coded),
      coded.runner,
      coded.session,
      rival.mode,
      `${pairs.filter((pair) => pair.ratio > 1).length} of ${pairs.length}`,
      ratio.toFixed(2),
      `${coded.completionSec.toFixed(2)} / ${rival.completionSec.toFixed(2)}`,
      whereOf(coded),
    ]);
  return markdownTable(
    ["coding's mode", "client", "sessions", "rival", "boxes lost", "time over the rival's, at worst", "s", "there"],
    cells,
  );
}

/** Those of one day and machine together. */
function sittingsText(sittings: readonly Sitting[]): string {
  const byDay = new Map<string, string[]>();
  for (const { date, machine, visits, commit, loadAverage } of sittings) {
    const day = `on ${date}, ${machine}`;
    byDay.set(day, [...(byDay.get(day) ?? []), `${visits} at commit ${commit} (load average before ${loadAverage})`]);
  }
  return [...byDay].map(([day, each]) => `${day}: ${each.join(", ")}`).join("; ");
}

export function markdownSection(
  about: About,
  rows: readonly Row[],
  figures: string,
  pictures: readonly (Picture & { file: string })[],
): string {
  const limited = rows.filter(({ hostLimited }) => hostLimited).length;
  return [
    "## Campaign",
    `Made by \`${about.command}\`: ${about.visits.done} of ${about.visits.planned} visits${about.visits.done < about.visits.planned ? " (stopped before its end: boxes that are not below were not visited)" : ""}; ${sittingsText(about.sittings)}. Real links (lab/links), origin, Origo, proxies and clients of this repository on one machine, boxes of the same links in turns in random order, as many sets of links at once as its cores carry. A download while less than a fifth of their time was idle does not count, unless all of its box are such: its visit is half a one, and so made again, at most twice as often as planned. ${about.downloads.counted} of ${about.downloads.all} downloads count. A link's rate counts IP packets; its queue is 100 ms; loss is of the proxies' and the origin's sending direction.`,
    limited > 0
      ? `**In ${limited} of ${rows.length} rows the machine was the limit, not the links** (under 10 % of processor time idle, or packets handed over more than 2 ms late, in the median download): their absolute times and link shares say what this machine had left, and their ratios what the sides cost in processor time as much as what they do with links.`
      : "Of what counts, in no row was the machine the limit (under 10 % of processor time idle, or packets handed over more than 2 ms late).",
    "`new`: no connection is open when the download starts, as in a player's first request; the Node client has been at these proxies before, and over WebTransport asks in its first packets (0-RTT). `warm`: it follows one on the same connections. `aria2` starts anew each time, one connection a mirror, pieces of 1 MiB, its program's start taken off. Downloads of wrong bytes, and those that fell back to the origin, are counted as failed and in no other figure.",
    "### Figures to reach",
    "Ratios: of the medians of two boxes of the same links; they take turns while the links are up, but which downloads do not count differs between them. `of all`: the value if they did. Link share: goodput over the sum of the links' rates in wire bytes. On new sessions their set-up counts. Normalized goodput: bytes of the chunk over bytes received. `wire`: the value if coding's packets, with their headers and what is lost of them, filled all links from one round trip after the request on; a floor that it does not reach is `beyond the wire`: the rival is too near to the links' rate, too.",
    figures,
    "### Where coding loses",
    "Without plain UDP, which browsers have not, and other g and w: [campaign/boxes.md](campaign/boxes.md) has those.",
    losses(rows),
    "### Boxes",
    `[campaign/boxes.md](campaign/boxes.md) has all ${rows.length} rows. Every download is a line of \`docs/campaign/downloads.jsonl.gz\`; \`npm run bench -- campaign --resume docs/campaign\` goes on where it stopped; with \`--report\` it draws these pictures again and measures nothing.`,
    ...pictures.map(({ title, file }) => `![${title}](${file})`),
  ].join("\n\n");
}

/** The page of all boxes. */
export const boxesDocument = ({ command, visits: { done, planned } }: About, rows: readonly Row[]): string =>
  [
    "# Campaign: boxes",
    `Made by \`${command}\`, ${done} of ${planned} visits. [measurements.md](../measurements.md#campaign) says how and on what machine.`,
    rowTable(rows),
  ].join("\n\n") + "\n";
