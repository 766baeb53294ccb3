/**
 * All boxes of the campaign: over which links, by which client, what is downloaded and how often. Data only. The sets
 * follow the paper's figures (Braun, Médard, Ekler 2019, Figs 11 to 15), then our own.
 */
import type { Mode } from "@tributary/client";
import type { ScenarioInput } from "@tributary/lab-links";

export type Congestion = "bbr" | "cubic";
export type Runner = "node" | "chromium" | "aria2";
export type Transport = "webrtc" | "webtransport" | "udp";
/**
 * Rivals that are the campaign's own (driver.ts): `chunked` pulls parts of `CHUNKED_BYTES` one by one from the proxies
 * over HTTP; `direct-http2` gets all from the origin over one connection of HTTP/2.
 */
export type BoxMode = Mode | "aria2" | "chunked" | "direct-http2";
/** Who has the chunk when the client asks for it. */
export type ChunkAt = "proxies" | "origin";

/** Links of equal loss, one a proxy. The origin's link to the client is like the first one. */
export interface LinksSpec {
  id: string;
  /** KB/s in wire bytes, 1 KB = 1,000 bytes. */
  ratesKB: readonly number[];
  rttMs: readonly number[];
  lossPercent: number;
  /** Packets take up to this much more or less time each way, in order, as over radio. */
  jitterMs?: number;
  congestion: Congestion;
  /** While a download runs, proxy1 falls to a tenth, or is cut off, after this long. */
  event?: { what: "tenth" | "cut"; atMs: number };
}

export interface Box {
  id: string;
  figures: readonly string[];
  links: LinksSpec;
  runner: Runner;
  mode: BoxMode;
  /** Carries the packets of the modes that have packets. The others use HTTP/1.1 over TCP. */
  transport?: Transport;
  connections: number;
  chunkBytes: number;
  generationSize?: number;
  windowPackets?: number;
  chunkAt: ChunkAt;
  /** Keep the arrival of every packet. */
  traced?: boolean;
  /**
   * One visit is a download on new sessions and, right after it, one on the sessions it left warm. Only the warm one
   * counts in a browser, which opens sessions before a page asks, and where links change meanwhile.
   */
  visits: number;
  /** Seconds of one visit on an idle machine. */
  expectedSec: number;
}

const CHUNK_BYTES = 1_500_000;
/**
 * The larger of the two sizes that the paper names, the better of them for a rival that waits a round trip for each.
 */
export const CHUNKED_BYTES = 32_768;
/** 100 downloads a box with the Node client, half of them on new sessions, and 30 with Chromium. */
const VISITS = { node: 50, chromium: 30, aria2: 50 } as const;
const QUICK_VISITS = { node: 4, chromium: 5, aria2: 4 } as const;
const PAPERS: readonly Mode[] = ["parallel-http", "uncoded-mutp", "coded-mutp"];
const OURS: readonly Mode[] = ["split-http", "coded"];
const PACKETS = new Set<BoxMode>(["uncoded-mutp", "coded-mutp", "coded"]);
const OF_BROWSERS: readonly Transport[] = ["webrtc", "webtransport"];
const OF_NODE: readonly Transport[] = [...OF_BROWSERS, "udp"];

/** Links of these rates. Round trips are assigned in turn. */
export function linksOf(
  ratesKB: readonly number[],
  {
    rttMs = [50],
    lossPercent = 0,
    jitterMs = 0,
    congestion = "bbr" as Congestion,
    event = undefined as LinksSpec["event"],
  } = {},
): LinksSpec {
  const name = [...new Set(ratesKB)]
    .map((rate) => `${ratesKB.filter((each) => each === rate).length}x${rate}`)
    .join("+");
  const happening = event ? [`one ${event.what === "cut" ? "dies" : "falls to a tenth"} at ${event.atMs} ms`] : [];
  const id = [
    `${name} KB/s`,
    `RTT ${rttMs.join("/")} ms`,
    ...(jitterMs > 0 ? [`jitter ${jitterMs} ms`] : []),
    `loss ${lossPercent} %`,
    congestion,
    ...happening,
  ].join(", ");
  return {
    id,
    ratesKB,
    rttMs: ratesKB.map((_, index) => rttMs[index % rttMs.length]!),
    lossPercent,
    congestion,
    ...(jitterMs > 0 ? { jitterMs } : {}),
    ...(event ? { event } : {}),
  };
}

export interface BoxInput extends Partial<
  Pick<
    Box,
    "runner" | "transport" | "connections" | "chunkBytes" | "generationSize" | "windowPackets" | "chunkAt" | "traced"
  >
> {
  links: LinksSpec;
  mode: BoxMode;
}

/** The box uses all links unless `input` says otherwise. */
export function makeBox(figures: readonly string[], visits: Record<Runner, number>, input: BoxInput): Box {
  const {
    links: spec,
    mode,
    runner = mode === "aria2" ? "aria2" : "node",
    connections = spec.ratesKB.length,
    chunkBytes = CHUNK_BYTES,
    chunkAt = runner === "chromium" ? "origin" : "proxies",
  } = input;
  const tuning = {
    ...(input.generationSize ? { generationSize: input.generationSize } : {}),
    ...(input.windowPackets ? { windowPackets: input.windowPackets } : {}),
  };
  const transport = PACKETS.has(mode) ? (input.transport ?? "webrtc") : undefined;
  const id = [
    spec.id,
    runner,
    transport ? `${mode} over ${transport}` : mode,
    `N=${connections}`,
    `${chunkBytes / 1000} KB`,
    ...Object.entries(tuning).map(([name, value]) => `${name === "generationSize" ? "g" : "w"}=${value}`),
    ...(chunkAt === "origin" ? ["chunk at the origin"] : []),
  ].join(" | ");
  return {
    id,
    figures,
    links: spec,
    runner,
    mode,
    ...(transport ? { transport } : {}),
    connections,
    chunkBytes,
    ...tuning,
    chunkAt,
    ...(input.traced ? { traced: true } : {}),
    visits: visits[runner],
    expectedSec: expectedSec(spec, mode, connections, chunkBytes),
  };
}

/**
 * A mode in which each proxy sends everything takes as long as its fastest link. The others use over half of the links'
 * rate if these are far or lossy.
 */
function expectedSec(spec: LinksSpec, mode: BoxMode, connections: number, chunkBytes: number): number {
  const used = spec.ratesKB.slice(0, connections);
  const alone = mode === "direct" || mode === "direct-http2" || mode === "parallel-http";
  const rate = 1000 * (alone ? 0.9 * Math.max(...used) : 0.6 * used.reduce((sum, each) => sum + each, 0));
  const lossCost = spec.congestion === "cubic" && spec.lossPercent > 0 ? 1.5 : 1;
  return 0.8 + (2 * lossCost * chunkBytes) / rate + 0.008 * Math.max(...spec.rttMs);
}

const SIX = [896, 896, 896, 896, 896, 896];
const FOUR = [896, 896, 896, 896];
const RADIO = { rttMs: [80], jitterMs: 20 };
const MIXED = [1792, 896, 896, 896];
const UNEQUAL = { rttMs: [20, 50, 80, 120] };
const BOTH: readonly Congestion[] = ["bbr", "cubic"];

type Add = (input: BoxInput) => void;

/**
 * A mode that has packets, over each transport; another one once. Where TCP's congestion control is another, only what
 * is compared with TCP: `coded`, over what browsers have.
 */
function addEach(
  add: Add,
  modes: readonly BoxMode[],
  input: Omit<BoxInput, "mode">,
  transports = input.runner === "chromium" ? OF_BROWSERS : OF_NODE,
): void {
  const again = input.links.congestion === "cubic";
  for (const mode of modes) {
    if (!PACKETS.has(mode)) add({ ...input, mode });
    else if (!again || mode === "coded")
      for (const transport of transports) if (!again || transport !== "udp") add({ ...input, mode, transport });
  }
}

/** Fig. 11: how many connections, over which rates. */
function connectionsOf(add: Add): void {
  for (const congestion of BOTH) {
    for (const rates of [[896], [1792], [896, 896], [1792, 896], FOUR, MIXED, SIX, [1792, 1792, 896, 896, 896, 896]]) {
      addEach(add, [...PAPERS, ...OURS, "direct"], { links: linksOf(rates, { congestion }) });
    }
  }
}

/** Figs 8 and 9: single downloads, packet by packet, as the paper has them: 1.92 MB, w = 360, g = 24. */
function packetsOf(add: Add): void {
  for (const mode of ["uncoded-mutp", "coded-mutp", "coded"] as const) {
    add({
      links: linksOf(MIXED),
      mode,
      transport: "webtransport",
      chunkBytes: 1_920_000,
      generationSize: 24,
      windowPackets: 360,
      traced: true,
    });
  }
}

/** Fig. 12: chunks from 64 KB to 5 MB. */
function chunkSizesOf(add: Add): void {
  for (const chunkBytes of [65_536, 131_072, 262_144, 524_288, 1_048_576, 2_097_152, 5_000_000]) {
    addEach(add, [...PAPERS, ...OURS], { links: linksOf(MIXED), chunkBytes });
  }
}

/** Figs 13 and 14: generation size g with w = 240, and window w with g = 24. */
function codingOf(add: Add): void {
  const of = (generationSize: number, windowPackets: number): void => {
    addEach(add, ["uncoded-mutp", "coded-mutp", "coded"], { links: linksOf(MIXED), generationSize, windowPackets });
  };
  for (const generationSize of [12, 20, 24]) of(generationSize, 240);
  for (const windowPackets of [120, 360]) of(24, windowPackets);
}

/** Fig. 15: loss from 0 to 3 %, over the paper's links and over six equal ones. */
function lossOf(add: Add): void {
  for (const congestion of BOTH) {
    for (const lossPercent of [0, 0.5, 1, 2, 3]) {
      addEach(add, [...PAPERS, ...OURS], { links: linksOf(MIXED, { lossPercent, congestion }) });
      addEach(add, [...OURS, "coded-mutp"], { links: linksOf(SIX, { lossPercent, congestion }) });
    }
  }
}

/**
 * What a viewer would use otherwise, on files that aria2 can split (pieces of 1 MiB), and over links that differ or
 * change.
 */
function rivalsOf(add: Add): void {
  for (const congestion of BOTH) {
    for (const lossPercent of [0, 2])
      addEach(add, ["aria2", "chunked", ...OURS, "direct", "direct-http2"], {
        links: linksOf(SIX, { lossPercent, congestion }),
        chunkBytes: 8_000_000,
      });
    addEach(add, OURS, { links: linksOf(MIXED, { ...UNEQUAL, congestion }) });
    addEach(add, OURS, { links: linksOf(SIX, { congestion }), chunkAt: "origin" });
    for (const what of ["tenth", "cut"] as const)
      addEach(add, OURS, { links: linksOf(SIX, { congestion, event: { what, atMs: 400 } }), chunkBytes: 4_000_000 });
  }
}

/** Links whose packets come in clumps. */
function radioOf(add: Add): void {
  for (const jitterMs of [20, 35])
    addEach(
      add,
      [...OURS, "direct"],
      { links: linksOf(FOUR, { ...RADIO, jitterMs }), chunkBytes: 3_000_000 },
      OF_BROWSERS,
    );
}

function browserOf(add: Add): void {
  for (const lossPercent of [0, 2])
    addEach(add, [...PAPERS, ...OURS, "direct"], { links: linksOf(SIX, { lossPercent }), runner: "chromium" });
}

/** About ten minutes: a few boxes of each set, over what browsers have. */
function quickOf(add: (figure: string) => Add): void {
  packetsOf(add("8-9"));
  addEach(add("11"), ["coded", "direct", "direct-http2"], { links: linksOf([896]) }, ["webtransport"]);
  addEach(add("11"), [...PAPERS, ...OURS], { links: linksOf([896, 896]) }, ["webtransport"]);
  addEach(add("11"), [...PAPERS, ...OURS], { links: linksOf(SIX) }, OF_BROWSERS);
  addEach(add("15"), ["coded-mutp", ...OURS], { links: linksOf(SIX, { lossPercent: 2 }) }, OF_BROWSERS);
  addEach(add("15"), OURS, { links: linksOf(SIX, { lossPercent: 2, congestion: "cubic" }) }, OF_BROWSERS);
  addEach(add("rivals"), ["aria2", "chunked", ...OURS], { links: linksOf(SIX), chunkBytes: 8_000_000 }, OF_BROWSERS);
  for (const congestion of BOTH)
    addEach(
      add("rivals"),
      ["aria2", ...OURS],
      { links: linksOf(SIX, { lossPercent: 2, congestion }), chunkBytes: 8_000_000 },
      ["webtransport"],
    );
  addEach(add("rivals"), OURS, { links: linksOf(MIXED, UNEQUAL) }, OF_BROWSERS);
  addEach(
    add("rivals"),
    OURS,
    { links: linksOf(SIX, { event: { what: "tenth", atMs: 400 } }), chunkBytes: 4_000_000 },
    OF_BROWSERS,
  );
  addEach(add("radio"), OURS, { links: linksOf(FOUR, RADIO), chunkBytes: 3_000_000 }, ["webtransport"]);
  addEach(add("browser"), OURS, { links: linksOf(SIX), runner: "chromium" }, OF_BROWSERS);
}

/** Each box once, with every figure that shows it. */
export function boxesOf(quick: boolean): Box[] {
  const byId = new Map<string, Box>();
  const visits = quick ? QUICK_VISITS : VISITS;
  const add =
    (figure: string): Add =>
    (input) => {
      const made = makeBox([figure], visits, input);
      const known = byId.get(made.id);
      byId.set(made.id, known ? { ...known, figures: [...new Set([...known.figures, figure])] } : made);
    };
  if (quick) quickOf(add);
  else {
    const sets = {
      "8-9": packetsOf,
      "11": connectionsOf,
      "12": chunkSizesOf,
      "13-14": codingOf,
      "15": lossOf,
      rivals: rivalsOf,
      radio: radioOf,
      browser: browserOf,
    };
    for (const [figure, fill] of Object.entries(sets)) fill(add(figure));
  }
  return [...byId.values()];
}

/**
 * Servers reach each other over this path, not over their links, so that the origin is not the bottleneck. It has a
 * rate, because unlimited bursts make the emulator late.
 */
export const BACKBONE = { delay: 5, rate: "1000 Mbit/s" } as const;

/** The scenario that brings these links up. */
export function scenarioOf({ ratesKB, rttMs, lossPercent, jitterMs = 0, congestion, event }: LinksSpec): ScenarioInput {
  const host = (index: number): ScenarioInput["hosts"][string] => ({
    link: {
      delay: rttMs[index]! / 2,
      jitter: jitterMs,
      up: { rate: `${ratesKB[index]!} KB/s`, queue: "100 ms", loss: lossPercent / 100 },
    },
    tcp: { congestion },
  });
  const proxies = Object.fromEntries(ratesKB.map((_, index) => [`proxy${index + 1}`, host(index)]));
  const happening = event
    ? [{ at: event.atMs, link: "proxy1", ...(event.what === "cut" ? { cut: true } : { up: { rate: "10 %" } }) }]
    : [];
  return {
    services: true,
    backbone: BACKBONE,
    hosts: { client: {}, origin: host(0), origo: {}, ...proxies },
    changes: happening,
  };
}
