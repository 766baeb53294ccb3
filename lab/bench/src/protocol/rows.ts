/**
 * The rows of the protocol bench: worlds, floors and aims. One row has one variant for each loss, round trip and size.
 * Floors and aims are completion over bound, and normalized goodput. Data only.
 */
import { boundMs, even, PACKET_BYTES, type Mode, type ProxyLink, type Tuning, type World } from "@tributary/lab-sim";

export interface Variant {
  /** As `--links` writes it. */
  links: string;
  loss: number;
  rttMs: number;
  chunkBytes: number;
  world: Omit<World, "seed">;
  /** The receiver's options that differ from its defaults. Modes over HTTP have none. */
  tuning?: Tuning;
}

export interface Row {
  title: string;
  target: string;
  /** What is shown besides completion over bound and normalized goodput. */
  also?: "lag" | "roundTripsOver" | "versusBest";
  variants: Variant[];
  /** undefined: all modes. */
  modes?: readonly Mode[];
}

/** A source that is added. */
export interface Seventh {
  bytesPerSec: number;
  rttMs: number;
  loss: number;
}

const RATE = 896_000;
const CHUNK = 1_500_000;
/** `1x1792+3x896` (KB/s, K = 1,000) as links; undefined when it says no such thing. */
export function parseLinks(text: string, more: Omit<ProxyLink, "bytesPerSec">): ProxyLink[] | undefined {
  const groups = text.split("+").map((group) => /^(\d+)x(\d+(?:\.\d+)?)$/.exec(group));
  if (groups.some((group) => !group || Number(group[1]) < 1 || Number(group[1]) > 64 || Number(group[2]) <= 0))
    return undefined;
  return groups.flatMap((group) => even(Number(group![1]), { ...more, bytesPerSec: Number(group![2]) * 1000 }));
}

interface Shape {
  links?: string;
  losses?: number[];
  rtts?: number[];
  chunks?: number[];
  link?: Partial<ProxyLink>;
  world?: Partial<World>;
  first?: (link: ProxyLink, halfMs: number) => Partial<ProxyLink>;
}

function variants({
  links = "6x896",
  losses = [0],
  rtts = [50],
  chunks = [CHUNK],
  link = {},
  world = {},
  first,
}: Shape): Variant[] {
  return losses.flatMap((loss) =>
    rtts.flatMap((rttMs) =>
      chunks.map((chunkBytes) => {
        const made = parseLinks(links, { ...link, loss, rttMs })!;
        const halfMs = boundMs({ links: made }, Math.ceil(chunkBytes / 1100), PACKET_BYTES) / 2;
        const all = first ? [{ ...made[0]!, ...first(made[0]!, halfMs) }, ...made.slice(1)] : made;
        return { links, loss, rttMs, chunkBytes, world: { ...world, chunkBytes, links: all } };
      }),
    ),
  );
}

const slows = ({ bytesPerSec }: ProxyLink, atMs: number) => ({
  rateChanges: [{ atMs, bytesPerSec: bytesPerSec / 10 }],
});
const dies = (_: ProxyLink, fromMs: number) => ({ outages: [{ fromMs, toMs: Infinity, crash: true }] });

const LIKE_NEW = { links: "1x1792+3x896", losses: [0.02], rtts: [50, 100] };
const FAST = { links: "6x50000", rtts: [1, 10], chunks: [8_000_000], link: { backpressurePackets: 64 } };

/** What a client remembers of such links; wrong: in turn ten times the truth (rate and loss) and a tenth (no loss). */
function remembered(shape: Shape, wrong: boolean): Variant[] {
  return variants(shape).map((variant) => {
    const known = variant.world.links.map(({ bytesPerSec, rttMs, loss = 0 }, index) => {
      if (!wrong) return { bytesPerSec, rttMs, loss };
      return index % 2 === 0
        ? { bytesPerSec: 10 * bytesPerSec, rttMs: 10 * rttMs, loss: 10 * loss }
        : { bytesPerSec: bytesPerSec / 10, rttMs: rttMs / 10, loss: 0 };
    });
    return { ...variant, links: `${variant.links} ${wrong ? "wrong" : "warm"}`, tuning: { known } };
  });
}

/** Four links that differ in everything, to new proxies and to remembered ones. */
function unalike(): Variant[] {
  const rtts = [20, 50, 80, 120];
  const shape: Shape = { links: "1x1792+3x896", losses: [0, 0.02], rtts: [20] };
  const far = (variant: Variant): Variant => {
    const links = variant.world.links.map((link, index) => ({ ...link, rttMs: rtts[index]! }));
    const known = links.map(({ bytesPerSec, rttMs, loss = 0 }) => ({ bytesPerSec, rttMs, loss }));
    return {
      ...variant,
      links: variant.links.replace("3x896", "3x896 far"),
      world: { ...variant.world, links },
      ...(variant.tuning ? { tuning: { known } } : {}),
    };
  };
  return [...variants(shape), ...remembered(shape, false)].map(far);
}

const PAPER_MODES: readonly Mode[] = ["uncoded-mutp", "coded-mutp", "parallel-http", "parallel-http-cubic"];

/** The paper's links (Figs 12 to 14). The label says which g and w: `1x1792+3x896 g=12 w=240`. */
function tuned(generationSize: number, windowPackets: number): Variant {
  const [variant] = variants({ links: "1x1792+3x896" });
  return {
    ...variant!,
    links: `1x1792+3x896 g=${generationSize} w=${windowPackets}`,
    tuning: { generationSize, windowPackets },
  };
}

export const ROWS: Row[] = [
  {
    title: "6 x 896 KB/s, 1.5 MB, no loss",
    target: "floor 1.03 / 0.97, aim 1.01 / 0.99",
    variants: variants({ rtts: [50, 100] }),
  },
  {
    title: "6 x 896 KB/s, 1.5 MB, 2 % loss",
    target: "floor 1.05 / 0.96, aim 1.01 / 0.98",
    variants: variants({ losses: [0.02], rtts: [50, 100] }),
  },
  {
    title: "1 x 1792 + 3 x 896 KB/s",
    target: "floor 1.05 / 0.96, aim 1.01 / 0.98",
    variants: variants({ links: "1x1792+3x896", losses: [0, 0.02], rtts: [50, 100] }),
  },
  {
    title: "1 x 1792 + 3 x 896 KB/s, RTT 20, 50, 80 and 120 ms (warm: remembered by coded)",
    target: "floor 1.15 / 0.85; warm 1.05 / 0.96",
    modes: ["coded", "coded-mutp", "split-http", "split-http-cubic"],
    variants: unalike(),
  },
  {
    title: "one of six falls to 10 % of its rate half-way (bound: an oracle that knows)",
    target: "floor 1.10, aim 1.03",
    variants: variants({ losses: [0, 0.02], rtts: [100], chunks: [CHUNK, 4_000_000], first: slows }),
  },
  {
    title: "the viewer's own downlink is the bottleneck: 4 x 896 into 1,792 KB/s, queue 100 ms",
    target: "floor 1.05 / 0.94, aim 1.02 / 0.97",
    variants: variants({
      links: "4x896",
      losses: [0, 0.02],
      world: { downlink: { bytesPerSec: 2 * RATE, queueBytes: RATE / 5 } },
    }),
  },
  {
    title: "one of four dies half-way (bound: an oracle that knows)",
    target: "floor 2 RTT over, aim 1 RTT",
    also: "roundTripsOver",
    variants: variants({ links: "4x896", rtts: [100], first: dies }),
  },
  {
    title: "64 KB and 256 KB, jitter 20 ms",
    target: "floor 1.05 of the best other mode, aim 1.00",
    also: "versusBest",
    variants: variants({ losses: [0, 0.02], chunks: [64_000, 256_000], link: { jitterMs: 20 } }),
  },
  { title: "one link", target: "floor 1.05, aim 1.01", variants: variants({ links: "1x896" }) },
  {
    title: "in-order bytes: largest lag behind the fluid ideal",
    target: "floor 120 ms, aim 60 ms",
    also: "lag",
    variants: variants({ losses: [0, 0.02] }),
  },
  {
    title: "beside: the chunk comes from an origin of 3,584 KB/s, 20 ms away",
    target: "none",
    variants: variants({ losses: [0, 0.02], link: { origin: { bytesPerSec: 4 * RATE, rttMs: 20 } } }),
  },
  {
    title: "beside: fast links, 6 x 50 MB/s, 8 MB, a proxy pushes 64 packets ahead",
    target: "none",
    variants: variants(FAST),
  },
  {
    title:
      "beside: proxies that share processors: 4 x 50 MB/s, RTT 1 ms, 2 MB, each stands still half of the " +
      "time, for 3, 10 or 30 ms in the mean",
    target: "none",
    modes: ["coded"],
    variants: [3, 10, 30].flatMap((lastMs) =>
      variants({
        links: "4x50000",
        rtts: [1],
        chunks: [2_000_000],
        link: { backpressurePackets: 64, pauses: { apartMs: lastMs, lastMs } },
      }).map((variant) => ({ ...variant, links: `4x50000 ${lastMs} ms` })),
    ),
  },
  {
    title: "beside: what a client remembers of its proxies: not yet, as it is, ten times and a tenth in turn",
    target: "none",
    modes: ["coded"],
    variants: [LIKE_NEW, FAST].flatMap((shape) => [
      ...variants(shape),
      ...remembered(shape, false),
      ...remembered(shape, true),
    ]),
  },
  {
    title: "beside: bursts of loss, 5 % in the mean",
    target: "none",
    variants: variants({ link: { burst: { enter: 0.01, leave: 0.15, loss: 0.8 } } }),
  },
  {
    title: "the paper's modes, one to six sources",
    target: "normalized goodput: coded > uncoded > parallel HTTP from two sources on",
    modes: PAPER_MODES,
    variants: [1, 2, 4, 6].flatMap((count) => variants({ links: `${count}x896` })),
  },
  {
    title: "the paper's modes, generation size g and window w",
    target: "g hardly matters, w does",
    modes: PAPER_MODES,
    variants: [12, 20, 24].flatMap((size) => [120, 240, 360].map((window) => tuned(size, window))),
  },
];

export const SEVENTHS: Seventh[] = [5, 50, 500].flatMap((rate) =>
  [20, 100, 400].flatMap((rttMs) => [0, 0.05, 0.2].map((loss) => ({ bytesPerSec: rate * 1000, rttMs, loss }))),
);
/** What the seventh source is added to. */
export const SIX: Variant[] = variants({ losses: [0, 0.02] });
