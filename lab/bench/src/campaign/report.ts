/** What a person reads: the ratios beside rivals, where coding lost, and a row a box. Pure: text out. */
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

interface Rule {
  what: string;
  floor: number;
  better: "more" | "less";
  /** `coded` if undefined. */
  mode?: string;
  applies: (row: Row) => boolean;
  /** The mode to compare with. undefined: the value is the row's own. */
  rival?: string;
  /** `aria2` opens new connections for each file, so it is compared with new sessions. */
  value: (row: Row, rival: Row) => number;
}

const time = (row: Row, rival: Row): number => row.completionSec / rival.completionSec;
const speed = (row: Row, rival: Row): number => row.goodputBytesPerSec.median / rival.goodputBytesPerSec.median;

/** Whether a row is as named. `text` is part of its scenario (boxes.ts). */
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

/** What is measured, what it is compared with, and the figure to reach. */
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
      better: "more",
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
    better: "more",
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
    better: "more",
    applies: of({ text: `${SIX_LINKS} 0 %`, session: "warm", N: 6 }),
    rival: "parallel-http",
    value: speed,
  },
  {
    what: "goodput over parallel-http, N=2",
    floor: 1.7,
    better: "more",
    applies: of({ text: "2x896 KB/s", session: "warm", N: 2 }),
    rival: "parallel-http",
    value: speed,
  },
  {
    what: "goodput over parallel-http, N=2",
    floor: 1,
    better: "more",
    mode: "coded-mutp",
    applies: of({ text: "2x896 KB/s", session: "warm", N: 2 }),
    rival: "parallel-http",
    value: speed,
  },
  {
    what: "time over split-http, loss 2 %, Cubic",
    floor: 0.5,
    better: "less",
    applies: of({ text: "loss 2 %, cubic", session: "warm" }),
    rival: "split-http",
    value: time,
  },
  {
    what: "time over split-http, loss 2 %, BBR",
    floor: 0.95,
    better: "less",
    applies: of({ text: "loss 2 %, bbr", session: "warm" }),
    rival: "split-http",
    value: time,
  },
  {
    what: "time over split-http, new sessions, no loss, BBR",
    floor: 0.95,
    better: "less",
    applies: of({ text: `${SIX_LINKS} 0 %, bbr`, session: "new" }),
    rival: "split-http",
    value: time,
  },
  {
    what: "time over split-http, new sessions, loss 2 %, BBR",
    floor: 0.8,
    better: "less",
    applies: of({ text: "loss 2 %, bbr", session: "new" }),
    rival: "split-http",
    value: time,
  },
  {
    what: "time over split-http, one of six falls to a tenth, BBR",
    floor: 0.95,
    better: "less",
    applies: of({ text: "bbr, one falls to a tenth" }),
    rival: "split-http",
    value: time,
  },
  {
    what: "time over split-http, links that differ, BBR",
    floor: 0.95,
    better: "less",
    applies: of({ text: "RTT 20/50/80/120 ms, loss 0 %, bbr", session: "warm" }),
    rival: "split-http",
    value: time,
  },
  ...["direct", "direct-http2"].map((rival): Rule => ({
    what: `time over ${rival}, N=1, no loss`,
    floor: 1.15,
    better: "less",
    applies: of({ N: 1, session: "warm" }),
    rival,
    value: time,
  })),
  {
    what: "time over aria2 on the same mirrors, new sessions",
    floor: 1.05,
    better: "less",
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
    better: "less",
    applies: of({ text, session: "new" }),
    rival: "aria2",
    value: time,
  })),
];

/** The note of a figure names its downloads (n) and what set the pace: the links or the machine (host). */
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
  return table(
    ["coding's mode", "client", "sessions", "rival", "boxes lost", "time over the rival's, at worst", "s", "there"],
    cells,
  );
}
