/**
 * Draws one run of the swarm from its seed: links, faults, malicious proxies, the chunk, and the time when faults heal.
 * Data only. Faults end at `healMs`; malice and death never end.
 */
import type { ByteRange } from "@tributary/contract";
import { BLOCK_BYTES } from "@tributary/contract/tree";
import { LIMITS, type KnownPath, type MutpMode } from "@tributary/protocol";
import { Random } from "../random";
import type { ProxyLink } from "../world";

const MALICE = [
  "pollute",
  "pollute-rarely",
  "mislabel",
  "lie-length",
  "lie-etag",
  "lie-status",
  "jump",
  "useless",
  "replay",
  "noise",
  "wild",
  "wrong-id",
  "mute",
  "reject",
  "end",
  "no-plan",
  "no-end",
] as const;
/** Lies about an object. */
export const OBJECT_MALICE = [
  "false-proof",
  "false-root",
  "other-object",
  "pollute-bytes",
  "pollute-all",
  "pollute-repair",
] as const;
export type Malice = (typeof MALICE)[number] | (typeof OBJECT_MALICE)[number] | "false-digest" | "lie-reads";
/** The lies of `npm run sim -- liars`, by what they are about. */
export const LIES_ABOUT: Readonly<Record<string, Malice>> = {
  "1 % of bytes": "pollute-bytes",
  "all bytes": "pollute-all",
  "repair symbols": "pollute-repair",
  proofs: "false-proof",
  roots: "false-root",
  lengths: "lie-length",
  "another object": "other-object",
};
/** A proxy with one of these tells something false that no digest of its own contradicts. */
const LIES: ReadonlySet<Malice> = new Set<Malice>(["lie-length", "lie-status", "wild", "false-digest"]);

export interface ProxyDraw {
  link: ProxyLink;
  /** Empty for an honest proxy. */
  malice: Malice[];
  /** When its session comes up. */
  readyMs: number;
  /** The client sees a crash this much later. After the crash is over, the new session also comes this much later. */
  noticeMs: number;
  /** Share of messages in both directions that become unreadable until faults heal. */
  corruption: number;
  /** When the origin fails at this proxy. */
  originFailsMs: number;
}

export interface SwarmDraw {
  seed: number;
  mode: MutpMode;
  chunkBytes: number;
  range: ByteRange | undefined;
  symbolBytes: number;
  generationSize: number;
  windowPackets: number;
  proxies: ProxyDraw[];
  /** The client's memory of each proxy's path, which may be false. */
  known: (KnownPath | undefined)[];
  /** The chunk is of an object whose root the client knows. Otherwise it believes what the proxies agree on. */
  isVouched: boolean;
  /** The client believes each proxy and checks nothing. */
  isUnchecked?: boolean;
  /** The proxies read the chunk together, and each gets what it lacks within so many ms, by proxy. */
  fillMs?: number[];
  /** By proxy: which body its origin gave it. Bodies differ in a few bytes. */
  bodies: number[];
  abortMs: number;
  healMs: number;
  /** A proxy also gets a client that sends any frames at all. */
  rogueClient: boolean;
}

/** What a client that believes each proxy cannot find out. */
const UNFINDABLE: ReadonlySet<Malice> = new Set<Malice>(["pollute", "pollute-rarely", "mislabel", ...LIES]);
const SHARED_SHARE = 0.4;

/** A chunk has fewer symbols than this, so that a run lasts milliseconds. */
const SYMBOLS_MAX = 6000;

/** Draws of their own, so that the other draws of a seed stay. */
const SHARING_STREAM = 2;

class Dice extends Random {
  chance(share: number): boolean {
    return this.unit() < share;
  }
  between(low: number, high: number): number {
    return low + this.unit() * (high - low);
  }
  integer(low: number, high: number): number {
    return Math.floor(this.between(low, high + 1));
  }
  /** Every order of magnitude is equally likely. */
  magnitude(low: number, high: number): number {
    return Math.exp(this.between(Math.log(low), Math.log(high)));
  }
  of<T>(choices: readonly T[]): T {
    return choices[this.integer(0, choices.length - 1)]!;
  }
}

/** With `lie`, three of four proxies tell this lie about an object, and the fourth is honest and stays. */
export function draw(seed: number, lie?: Malice): SwarmDraw {
  const dice = new Dice(seed, 0, 1);
  const mode = dice.of<MutpMode>(["coded", "coded", "coded-mutp", "uncoded-mutp"]);
  const symbolBytes = dice.chance(0.5)
    ? LIMITS.symbolBytesDefault
    : dice.integer(LIMITS.symbolBytesMin, LIMITS.symbolBytesMax);
  const generationSize = dice.chance(0.5)
    ? mode === "coded"
      ? LIMITS.codedGenerationSizeDefault
      : LIMITS.generationSizeDefault
    : dice.integer(1, LIMITS.generationSizeMax);
  const chunkBytes = drawBytes(dice, symbolBytes, generationSize);
  const start = dice.integer(0, 1_000_000);
  const healMs = dice.magnitude(20, 8000);
  const count = lie ? 4 : dice.integer(1, 8);
  const hostile = lie ? 3 : count > 1 && dice.chance(0.5) ? dice.integer(1, count - 1) : 0;
  const kinds = FAULTS.filter(() => dice.chance(0.3));
  const proxies = Array.from({ length: count }, (_, index) => drawProxy(dice, index < hostile, healMs, kinds));
  const shuffledProxies = shuffled(dice, proxies);
  const windowDefault = mode === "coded" ? LIMITS.firstPacketsDefault : LIMITS.windowPacketsDefault;
  const drawn = {
    seed,
    mode,
    chunkBytes,
    symbolBytes,
    generationSize,
    healMs,
    range: chunkBytes > 0 && dice.chance(0.3) ? { start, end: start + chunkBytes - 1 } : undefined,
    windowPackets: dice.chance(0.5) ? windowDefault : dice.integer(generationSize, 1000),
    proxies: shuffledProxies,
    abortMs: dice.chance(0.15) ? dice.magnitude(0.1, 3000) : Infinity,
    rogueClient: dice.chance(0.2),
    known: drawKnown(dice, count),
  };
  if (lie) {
    for (const proxy of proxies) makeLiar(proxy, lie);
    const object = drawObject(dice, { ...drawn, chunkBytes: Math.max(1, chunkBytes) });
    for (const { malice } of proxies) malice.splice(1);
    return { ...drawn, ...object, isVouched: true, bodies: proxies.map(() => 0), abortMs: Infinity };
  }
  const bodies = drawBodies(dice, shuffledProxies);
  return { ...drawn, ...bodies, ...(bodies.isVouched ? drawObject(dice, drawn) : {}) };
}

/** In some runs in mode coded the proxies share the reading. The client then believes each of them. */
export function withSharing(drawn: SwarmDraw, share = SHARED_SHARE): SwarmDraw {
  const { seed, mode, isVouched, proxies } = drawn;
  const dice = new Dice(seed, 0, SHARING_STREAM);
  if (mode !== "coded" || isVouched || proxies.length < 2 || !dice.chance(share)) return drawn;
  const believed = (kind: Malice): Malice => (UNFINDABLE.has(kind) ? dice.of(["mute", "lie-reads"]) : kind);
  return {
    ...drawn,
    proxies: proxies.map((proxy) => ({ ...proxy, malice: proxy.malice.map(believed) })),
    fillMs: proxies.map(() => dice.magnitude(1, 2000)),
  };
}

function makeLiar(proxy: ProxyDraw, lie: Malice): void {
  if (proxy.malice.length > 0) proxy.malice = [lie];
  else Object.assign(proxy, { originFailsMs: Infinity, link: { ...proxy.link, outages: [] } });
}

/** Generations and ranges of an object are whole blocks, unless the range ends with the object. */
function drawObject(
  dice: Dice,
  {
    chunkBytes: wanted,
    range,
    proxies,
    windowPackets,
  }: Pick<SwarmDraw, "chunkBytes" | "range" | "proxies" | "windowPackets">,
): Pick<SwarmDraw, "symbolBytes" | "generationSize" | "windowPackets" | "chunkBytes" | "range"> {
  const symbolBytes = dice.of([128, 256, 512, 1024, 1024]);
  const blockSymbols = BLOCK_BYTES / symbolBytes;
  const generationSize = blockSymbols * dice.integer(1, LIMITS.generationSizeMax / blockSymbols);
  const chunkBytes = Math.min(wanted, SYMBOLS_MAX * symbolBytes);
  const start = BLOCK_BYTES * Math.floor((range?.start ?? 0) / BLOCK_BYTES);
  for (const { malice } of proxies) if (malice.length > 0 && dice.chance(0.5)) malice.push(dice.of(OBJECT_MALICE));
  return {
    symbolBytes,
    generationSize,
    windowPackets: Math.max(windowPackets, generationSize),
    chunkBytes,
    range: range && { start, end: start + chunkBytes - 1 },
  };
}

function drawBodies(dice: Dice, proxies: ProxyDraw[]): Pick<SwarmDraw, "isVouched" | "bodies"> {
  const isVouched = dice.chance(0.4);
  const isOne = isVouched || dice.chance(0.6);
  if (!isVouched)
    for (const { malice } of proxies) if (malice.length > 0 && dice.chance(0.2)) malice.push("false-digest");
  const othersShare = dice.between(0, 1);
  return { isVouched, bodies: proxies.map(() => (isOne || !dice.chance(othersShare) ? 0 : dice.integer(1, 3))) };
}

/** A run on equal links without any fault: an object of a publisher in mode coded, by proxies that the client knows. */
export function faultlessDraw(
  count: number,
  link: Pick<ProxyLink, "bytesPerSec" | "rttMs">,
  given: Pick<SwarmDraw, "seed" | "chunkBytes"> & Partial<SwarmDraw>,
): SwarmDraw {
  const proxies = Array.from({ length: count }, (): ProxyDraw => ({
    link,
    malice: [],
    readyMs: 0,
    noticeMs: 0,
    corruption: 0,
    originFailsMs: Infinity,
  }));
  return {
    mode: "coded",
    range: undefined,
    symbolBytes: 1024,
    generationSize: 128,
    windowPackets: 256,
    proxies,
    known: proxies.map(() => ({ rttMs: link.rttMs })),
    isVouched: true,
    bodies: proxies.map(() => 0),
    abortMs: Infinity,
    healMs: 0,
    rogueClient: false,
    ...given,
  };
}

/** Whether a client that knows no digests beforehand may be led to believe one proxy, or none. */
export function isContested({ isVouched, bodies, proxies, fillMs }: SwarmDraw): boolean {
  if (isVouched) return false;
  if (fillMs && proxies.some(({ malice }) => malice.includes("lie-etag"))) return true;
  return (
    bodies.some((body) => body !== bodies[0]) || proxies.some(({ malice }) => malice.some((kind) => LIES.has(kind)))
  );
}

/** Paths that differ from the real links, because the client's memory is old. */
function drawKnown(dice: Dice, count: number): (KnownPath | undefined)[] {
  if (dice.chance(0.6)) return [];
  const path = () => ({
    bytesPerSec: dice.magnitude(1000, 100_000_000),
    rttMs: dice.magnitude(0.1, 3000),
    loss: dice.chance(0.5) ? 0 : dice.between(0, 0.6),
  });
  return Array.from({ length: count }, () => (dice.chance(0.8) ? path() : undefined));
}

/** Sizes around the edges of symbols and generations are drawn often. */
function drawBytes(dice: Dice, symbolBytes: number, generationSize: number): number {
  const most = Math.min(3_000_000, SYMBOLS_MAX * symbolBytes);
  if (dice.chance(0.03)) return 0;
  if (dice.chance(0.3))
    return Math.min(
      most,
      Math.max(0, dice.integer(1, 6) * symbolBytes * (dice.chance(0.5) ? generationSize : 1) + dice.integer(-1, 1)),
    );
  return Math.floor(dice.magnitude(1, most));
}

const FAULTS = [
  "loss",
  "burst",
  "feedbackLoss",
  "repeat",
  "reorder",
  "jitter",
  "clog",
  "partition",
  "crash",
  "corruption",
  "late",
  "origin",
  "originFails",
  "death",
] as const;
type Fault = (typeof FAULTS)[number];

function drawProxy(dice: Dice, hostile: boolean, healMs: number, kinds: readonly Fault[]): ProxyDraw {
  const has = (fault: Fault) => kinds.includes(fault) && dice.chance(0.6);
  const bytesPerSec = dice.magnitude(40_000, 4_000_000);
  const link: ProxyLink = { bytesPerSec, rttMs: dice.magnitude(1, 400), healMs };
  if (dice.chance(0.5)) link.clockOffsetMs = dice.between(-1e9, 1e9);
  if (has("loss")) link.loss = dice.between(0, 0.3);
  if (has("burst"))
    link.burst = { enter: dice.between(0, 0.05), leave: dice.between(0.05, 0.5), loss: dice.between(0.3, 1) };
  if (has("feedbackLoss")) link.feedbackLoss = dice.between(0, 0.6);
  if (has("repeat")) link.repeat = dice.between(0, 0.3);
  if (has("reorder")) link.reorder = { share: dice.between(0, 0.3), extraMs: dice.magnitude(1, 300) };
  if (has("jitter")) link.jitterMs = dice.magnitude(1, 100);
  if (has("clog")) link.rateChanges = drawClog(dice, bytesPerSec, healMs);
  link.outages = [
    ...(has("partition") ? [drawOutage(dice, healMs, false)] : []),
    ...(has("crash") ? [drawOutage(dice, healMs, true)] : []),
  ];
  if (link.outages.length === 2) link.outages = apart(link.outages);
  if (has("death") && dice.chance(0.5))
    link.outages = [{ fromMs: dice.between(0, healMs), toMs: Infinity, crash: dice.chance(0.5) }];
  if (has("origin")) link.origin = { bytesPerSec: dice.magnitude(50_000, 5_000_000), rttMs: dice.magnitude(1, 1000) };
  return {
    link,
    malice: hostile ? Array.from({ length: dice.integer(1, 3) }, () => dice.of(MALICE)) : [],
    readyMs: has("late") ? dice.between(0, healMs) : 0,
    noticeMs: dice.magnitude(1, 2000),
    corruption: has("corruption") ? dice.between(0, 0.3) : 0,
    originFailsMs: has("originFails") && dice.chance(0.5) ? dice.magnitude(1, 4000) : Infinity,
  };
}

function drawClog(dice: Dice, bytesPerSec: number, healMs: number): { atMs: number; bytesPerSec: number }[] {
  const fromMs = dice.between(0, healMs);
  return [
    { atMs: fromMs, bytesPerSec: dice.chance(0.5) ? 0 : bytesPerSec / 50 },
    { atMs: dice.between(fromMs, healMs), bytesPerSec },
  ];
}

function drawOutage(dice: Dice, healMs: number, crash: boolean): { fromMs: number; toMs: number; crash: boolean } {
  const fromMs = dice.between(0, healMs);
  return { fromMs, toMs: dice.between(fromMs, healMs), crash };
}

/** The first of two outages ends before the second begins. */
function apart(outages: NonNullable<ProxyLink["outages"]>): NonNullable<ProxyLink["outages"]> {
  const [first, second] = [...outages].sort((a, b) => a.fromMs - b.fromMs);
  return [{ ...first!, toMs: Math.min(first!.toMs, second!.fromMs) }, second!];
}

function shuffled<T>(dice: Dice, items: T[]): T[] {
  for (let i = items.length - 1; i > 0; i--) {
    const j = dice.integer(0, i);
    [items[i], items[j]] = [items[j]!, items[i]!];
  }
  return items;
}
