/** What a person reads: the ratios beside rivals, where coding lost, and a row a box. Pure: text out. */
import { groupBy } from "../kit/figures";
import { percent, quartilesText, table } from "../kit/table";
import type { Figure } from "../kit/verdict";
import type { SessionKind } from "./orders";
import type { Row } from "./rows";

/** As viewers have it: the default generation size and window, and no plain UDP, which browsers do not have. */
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

/** Which rows a rule is about. `text` is part of the scenario (boxes.ts). */
type Where = Partial<Pick<Row, "session" | "transport" | "N" | "chunkBytes">> & { text?: string };

interface Rule {
  what: string;
  floor: number;
  better: "more" | "less";
  where: Where;
  /** `coded` if undefined. */
  mode?: string;
  /** The mode to compare with. undefined: the value is the row's own. */
  rival?: string;
  /** `aria2` opens new connections for each file, so it is compared with new sessions. */
  value: (row: Row, rival: Row) => number;
}

const time = (row: Row, rival: Row): number => row.completionSec / rival.completionSec;
const speed = (row: Row, rival: Row): number => row.goodputBytesPerSec.median / rival.goodputBytesPerSec.median;

function applies({ text = "", ...fields }: Where, row: Row): boolean {
  const isAsNamed = Object.entries(fields).every(([name, value]) => row[name as keyof Row] === value);
  return row.runner === "node" && row.scenario.includes(text) && isAsNamed;
}

const SIX_LINKS = "6x896 KB/s, RTT 50 ms, loss";
const KEY_BYTES = 1_500_000;
const ARIA2 = "time over aria2 on the same mirrors, new sessions";

const linkShare = (session: SessionKind, loss: string, floor: number, transport = "webtransport"): Rule => ({
  what: `link share, ${session} sessions, loss ${loss} %`,
  floor,
  better: "more",
  where: { text: `${SIX_LINKS} ${loss} %, bbr`, session, chunkBytes: KEY_BYTES, transport },
  value: (row) => row.linkShare,
});
const overParallel = (N: number, floor: number, text: string, mode = "coded"): Rule => ({
  what: `goodput over parallel-http, N=${N}`,
  floor,
  better: "more",
  where: { text, session: "warm", N },
  mode,
  rival: "parallel-http",
  value: speed,
});
const timeOver = (rival: string, floor: number, what: string, where: Where): Rule => ({
  what,
  floor,
  better: "less",
  where,
  rival,
  value: time,
});
const overSplit = (floor: number, what: string, where: Where): Rule =>
  timeOver("split-http", floor, `time over split-http, ${what}`, where);

/** What is measured, what it is compared with, and the figure to reach. */
const RULES: readonly Rule[] = [
  linkShare("warm", "0", 0.75),
  linkShare("warm", "0", 0.6, "webrtc"),
  linkShare("warm", "2", 0.72),
  linkShare("warm", "2", 0.4, "webrtc"),
  linkShare("new", "0", 0.7),
  linkShare("new", "2", 0.68),
  ...["0", "2"].map((loss): Rule => ({
    ...linkShare("warm", loss, 0.93),
    what: `normalized goodput, warm sessions, loss ${loss} %`,
    value: (row) => row.normalizedGoodput,
  })),
  overParallel(6, 4, `${SIX_LINKS} 0 %`),
  overParallel(2, 1.7, "2x896 KB/s"),
  overParallel(2, 1, "2x896 KB/s", "coded-mutp"),
  overSplit(0.5, "loss 2 %, Cubic", { text: "loss 2 %, cubic", session: "warm" }),
  overSplit(0.95, "loss 2 %, BBR", { text: "loss 2 %, bbr", session: "warm" }),
  overSplit(0.95, "new sessions, no loss, BBR", { text: `${SIX_LINKS} 0 %, bbr`, session: "new" }),
  overSplit(0.8, "new sessions, loss 2 %, BBR", { text: "loss 2 %, bbr", session: "new" }),
  overSplit(0.95, "one of six falls to a tenth, BBR", { text: "bbr, one falls to a tenth" }),
  overSplit(0.95, "links that differ, BBR", { text: "RTT 20/50/80/120 ms, loss 0 %, bbr", session: "warm" }),
  ...["direct", "direct-http2"].map((rival) =>
    timeOver(rival, 1.15, `time over ${rival}, N=1, no loss`, { N: 1, session: "warm" }),
  ),
  { ...timeOver("aria2", 1.05, ARIA2, { session: "new" }), mode: "split-http" },
  timeOver("aria2", 0.6, ARIA2, { text: "loss 2 %, cubic", session: "new" }),
  timeOver("aria2", 0.95, ARIA2, { text: "loss 2 %, bbr", session: "new" }),
  timeOver("aria2", 0.95, ARIA2, { text: "loss 0 %", session: "new" }),
];

/** The note of a figure names its downloads (n) and what set the pace: the links or the machine (host). */
export function figuresToReach(rows: readonly Row[]): Figure[] {
  return RULES.flatMap(({ mode = "coded", where, rival: rivalMode, what, value, ...limit }) =>
    rows
      .filter((row) => row.mode === mode && isPlain(row) && row.n > 0 && applies(where, row))
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
            got: value(row, rival),
            unit: "",
            ...(row.wireSec === null ? {} : { wire: value(onTheWire(row, row.wireSec), rival) }),
            ...limit,
            note:
              `n ${pair.map(({ n }) => n).join(", ")}; limit ` +
              `${pair.some((each) => each.hostLimited) ? "host" : "links"}`,
          },
        ];
      }),
  );
}

/** The row, if it took `sec` and received no packet that it did not need. */
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

function rowCells(row: Row): string[] {
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
    quartilesText(row.goodputBytesPerSec, 0, 1e-3),
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

export const rowTable = (rows: readonly Row[]): string => table(ROW_HEAD, rows.map(rowCells));

const HTTP: readonly string[] = ["direct", "direct-http2", "split-http", "parallel-http", "chunked"];

/** Every HTTP rival that was faster than `coded` over the same links, with the box where it was fastest. */
export function lossesOf(rows: readonly Row[]): string {
  const all = rows
    .filter((row) => row.mode === "coded" && isPlain(row) && row.n > 0)
    .flatMap((coded) =>
      rows
        .filter((row) => HTTP.includes(row.mode) && row.n > 0 && alike(coded, row))
        .map((rival) => ({ ratio: time(coded, rival), coded, rival })),
    );
  const kinds = groupBy(all, ({ coded, rival }) => [nameOf(coded), coded.runner, coded.session, rival.mode].join());
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
  return table(
    ["coding's mode", "client", "sessions", "rival", "boxes lost", "time over the rival's, at worst", "s", "there"],
    cells,
  );
}
