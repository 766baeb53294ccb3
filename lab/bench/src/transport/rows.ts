/** What the transport bench measures, as data, and its figures. Pure. */
import { groupBy, median } from "../kit/figures";
import type { Host } from "../kit/machine";
import { atLeast, atMost, type Figure } from "../kit/verdict";

export type Contender = "webtransport" | "webrtc" | "udp" | "http-bbr" | "http-reno";
export type Receiver = "chromium" | "firefox" | "node";

/** Medians over `runs` downloads. */
export interface Row {
  /** One proxy, or six with equal links. */
  set: "single" | "six";
  transport: Contender;
  receiver: Receiver;
  /** Rate of one proxy's link, in whole IP packets. */
  rateBytesPerSec: number;
  rttMs: number;
  loss: number;
  /** `cold`: on a new connection. `warm`: on one that exists. */
  state: "cold" | "warm";
  bytes: number;
  proxies: number;
  runs: number;
  /** Bytes of the body over the time from the asking to the last byte, as a share of the links' rates together. */
  linkShare: number;
  completionSec: number;
  /** From the request to the first packet (HTTP: byte) of the body, with connecting if `cold`. */
  firstPacketMs: number;
  /** Packets per proxy that came when nothing was missing. null: HTTP. */
  inVain: number | null;
  /** Packets per proxy that brought nothing new before that. */
  duplicate: number | null;
}

/** A run of flows of ours, or of Cubic in their place, beside flows of the kernel's TCP. */
export interface Sharing {
  transport: "webtransport" | "webrtc" | "cubic";
  /** Of TCP. */
  rivals: string;
  queueProducts: number;
  seconds: number;
  ourFlows: number;
  theirFlows: number;
  /** Per flow, what arrived, IP packets. */
  ourBytesPerSec: number;
  theirBytesPerSec: number;
  /** Of our packets. */
  ourLossShare: number;
  /** Most and mean of the queue, in bandwidth-delay products, over the second half. */
  queueMost: number;
  queueMean: number;
}

/** One flow of ours alone, while the link changes. */
export interface Reaction {
  what: string;
  /** Bytes delivered over what the link carries, losses taken off. */
  share: number;
  /** Mean of the queue, and its maximum after the start, in bandwidth-delay products. */
  queueMean: number;
  queueMost: number;
  /**
   * After the link has halved: round trips until what enters it in one round trip fits it again. null: it never did.
   */
  backOffRounds: number | null;
}

/** From this machine into its own Chromium. */
export interface Loopback {
  /** `http`: a Worker reads an endless body over HTTP/1.1. */
  transport: "webtransport" | "webrtc" | "http";
  /** 10^6 bytes of messages a second. */
  mbPerSec: number;
  setUpMs: number;
  /** Busy cores of the machine, and the sender's part of them. */
  busyCores: number;
  senderCores: number;
}

/** What one sender spent. */
export interface Cost {
  sender: "webtransport" | "webrtc" | "nginx";
  /** Of bodies. */
  bytes: number;
  seconds: number;
  /** User and system time of its processes. */
  cpuSec: number;
}

export interface Results {
  rows: Row[];
  sharing: Sharing[];
  reactions: Reaction[];
  loopback: Loopback[];
  costs: Cost[];
  hosts: Host[];
}

/** Every figure. `got` is NaN where nothing was measured for it. */
export function figuresOf({ rows, sharing, reactions, loopback, costs }: Results): Figure[] {
  return [
    ...shares(rows),
    ...starts(rows),
    ...vain(rows),
    ...loops(loopback),
    ...costOf(costs),
    ...neighbours(sharing),
    ...alone(reactions),
  ];
}

const SHARES: readonly [Contender, number, number, number][] = [
  ["webtransport", 0, 0.9, 0.95],
  ["webtransport", 0.01, 0.88, 0.93],
  ["webtransport", 0.03, 0.83, 0.9],
  ["webrtc", 0, 0.86, 0.9],
  ["webrtc", 0.01, 0.6, 0.8],
  ["webrtc", 0.03, 0.35, 0.65],
];
const NAMES: Record<Contender, string> = {
  webtransport: "WebTransport",
  webrtc: "WebRTC",
  udp: "UDP",
  "http-bbr": "HTTP, BBR",
  "http-reno": "HTTP, Reno",
};
const percent = (share: number): string => `${Math.round(1000 * share) / 10} %`;

const find = (rows: readonly Row[], wanted: Partial<Row>): Row | undefined =>
  rows.find((row) => Object.entries(wanted).every(([key, value]) => row[key as keyof Row] === value));

function shares(rows: readonly Row[]): Figure[] {
  return (["chromium", "firefox", "node"] as const).flatMap((receiver) =>
    SHARES.map(([transport, loss, floor, aim]) => {
      const row = find(
        rows.filter(({ bytes }) => bytes > 2e6),
        { set: "single", transport, receiver, loss, state: "warm" },
      );
      const where = `one proxy to ${receiver}, 896 KB/s, 40 ms, loss ${percent(loss)}, ${NAMES[transport]}`;
      return atLeast(`${where}: share of the link`, row?.linkShare ?? NaN, [floor, aim]);
    }),
  );
}

function starts(rows: readonly Row[]): Figure[] {
  const short = rows.filter(
    ({ set, bytes, loss, receiver }) => set === "single" && bytes < 2e6 && loss === 0 && receiver === "node",
  );
  return (["webtransport", "webrtc"] as const).flatMap((transport) => {
    const [cold, warm] = [find(short, { transport, state: "cold" }), find(short, { transport, state: "warm" })];
    // Set-up is the wait for the first packet that a warm connection does not have.
    const setUpSec = ((cold?.firstPacketMs ?? NaN) - (warm?.firstPacketMs ?? NaN)) / 1000;
    const coldOverWarm = ((cold?.completionSec ?? NaN) - setUpSec) / (warm?.completionSec ?? NaN);
    const setUpRtts = (cold?.firstPacketMs ?? NaN) / (cold?.rttMs ?? NaN);
    const limits = transport === "webtransport" ? [4.5, 3.5] : [12, 8];
    return [
      atMost(`1.5 MB, cold over warm, set-up not counted, 40 ms, ${NAMES[transport]}`, coldOverWarm, [1.25, 1.05]),
      atMost(`set-up to first packet, 40 ms, ${NAMES[transport]}`, setUpRtts, limits, { unit: " RTT" }),
    ];
  });
}

function vain(rows: readonly Row[]): Figure[] {
  return (["webtransport", "webrtc"] as const).flatMap((transport) =>
    (
      [
        [0, 15, 3],
        [0.02, 25, 12],
      ] as const
    ).map(([loss, floor, aim]) => {
      const row = find(rows, { set: "six", transport, loss, state: "warm" });
      const what = `received in vain, per proxy, six links, 50 ms, loss ${percent(loss)}, ${NAMES[transport]}`;
      return atMost(what, (row?.inVain ?? NaN) + (row?.duplicate ?? NaN), [floor, aim], { unit: " packets" });
    }),
  );
}

function loops(loopback: readonly Loopback[]): Figure[] {
  return (
    [
      ["webtransport", 45, 60],
      ["webrtc", 26, 35],
    ] as const
  ).map(([transport, floor, aim]) => {
    const got = median(loopback.filter((each) => each.transport === transport).map(({ mbPerSec }) => mbPerSec));
    return atLeast(`loopback to Chromium, 1,100 B, ${NAMES[transport]}`, got, [floor, aim], { unit: " MB/s" });
  });
}

/** Processor seconds for 10^9 bytes of bodies. */
export const secPerGbOf = ({ cpuSec, bytes }: Cost): number => cpuSec / (bytes / 1e9);

function costOf(costs: readonly Cost[]): Figure[] {
  const secPerGb = (sender: Cost["sender"]): number =>
    median(costs.filter((each) => each.sender === sender).map(secPerGbOf));
  const what = "processor time a GB sent over WebTransport, of nginx's over HTTP/2 and TLS";
  return [atMost(what, secPerGb("webtransport") / secPerGb("nginx"), [8, 4], { unit: " times" })];
}

/** Rate of a flow of ours over that of one of theirs. */
export const ratioOf = ({ ourBytesPerSec, theirBytesPerSec }: Sharing): number => ourBytesPerSec / theirBytesPerSec;

/** Runs of the same flows through the same queue together, in the order they were first seen. */
export const crowdsOf = (sharing: readonly Sharing[]): [Sharing, ...Sharing[]][] => [
  ...groupBy(sharing, ({ transport, ourFlows, theirFlows, rivals, queueProducts }) =>
    JSON.stringify([transport, ourFlows, theirFlows, rivals, queueProducts]),
  ).values(),
];

/** For an even number of runs, the lower of the middle two. */
export function medianRunOf(runs: readonly [Sharing, ...Sharing[]]): Sharing {
  return [...runs].sort((a, b) => ratioOf(a) - ratioOf(b))[(runs.length - 1) >> 1] ?? runs[0];
}

/** Flows of other kinds need this long to find their shares: docs/adr/0006. */
export const SHARING_SEC = 60;

function neighbours(sharing: readonly Sharing[]): Figure[] {
  return crowdsOf(sharing).flatMap((runs) => {
    const [{ transport, ourFlows, theirFlows, rivals, queueProducts, seconds }] = runs;
    if (transport === "cubic") return [];
    const what =
      `${ourFlows} of ours, ${NAMES[transport]}, beside ${theirFlows} of ${rivals}, queue ` +
      `${queueProducts} BDP, ${seconds} s: rate of one over one`;
    return [
      {
        what,
        got: median(runs.map(ratioOf)),
        floor: 2,
        aim: 1.4,
        better: "nearOne" as const,
        unit: "",
        tooShort: seconds < SHARING_SEC,
      },
    ];
  });
}

function alone(reactions: readonly Reaction[]): Figure[] {
  return reactions.flatMap(({ what, queueMost, backOffRounds, share }) => [
    atMost(`alone, ${what}: queue added at most`, queueMost, [1.5, 1.5], { unit: " BDP" }),
    backOffRounds === null
      ? atLeast(`alone, ${what}: share of what the link delivers`, share, [0.83, 0.9])
      : atMost(`alone, ${what}: backs off within`, backOffRounds, [3, 3], { unit: " RTT" }),
  ]);
}
