/**
 * From single downloads to a row a box: quartiles, shares, and whether the machine set the pace, not the links. Pure.
 */
import { LIMITS } from "@tributary/protocol";
import type { Trace } from "@tributary/contract/query-schema";
import { isHostLimited } from "../kit/machine";
import { groupBy, median, quartilesOf, type Quartiles } from "../kit/figures";
import type { Box } from "./boxes";
import type { SessionKind } from "./orders";

/** One download as it is kept on disk. Times in ms, rates in bytes a second. */
export interface Sample {
  box: string;
  visit: number;
  session: SessionKind;
  /** Complete, with the right bytes, and without a fallback. */
  ok: boolean;
  problem?: string;
  fellBack: boolean;
  completionMs: number;
  firstByteMs: number;
  netBytes: number;
  grossBytes: number;
  /** Sum of the rates of the links used: the proxies' or the origin's. */
  linkBytesPerSec: number;
  /** Idle share of all cores' time during the download. */
  idleShare: number;
  /** How late the emulator handed packets over (99 %). */
  lateUs: number;
  clientCpuMs: number;
  /** The packets of a traced box as Origo keeps them, with the proxies' names by index. */
  trace?: Pick<Trace, "packets" | "feedback"> & { proxies: readonly string[] };
}

export interface Row {
  scenario: string;
  runner: string;
  mode: string;
  /** null: HTTP carries everything. */
  transport: string | null;
  N: number;
  session: SessionKind;
  chunkAt: string;
  chunkBytes: number;
  generationSize: number | null;
  windowPackets: number | null;
  figures: readonly string[];
  /** Downloads that count. The others are in `failed`. */
  n: number;
  failed: number;
  fallbacks: number;
  goodputBytesPerSec: Quartiles;
  throughputBytesPerSec: number;
  normalizedGoodput: number;
  /** Goodput over the sum of the link rates in wire bytes. The wait for the first byte counts. */
  linkShare: number;
  completionSec: number;
  firstByteSec: number;
  /**
   * The least time that the wire allows: one round trip and the packets at the links' rates. null: the rates change.
   */
  wireSec: number | null;
  idleShare: number;
  lateUs: number;
  /** The machine had almost no idle time, or packets were late, so the row measures the machine. */
  hostLimited: boolean;
}

/** With a lower idle share, a download over six links takes longer: 2 % at first, 10 % in the end. */
const IDLE_SHARE_CALM = 0.2;
const isCrowded = ({ idleShare }: Sample): boolean => idleShare < IDLE_SHARE_CALM;

/** For each box, the downloads while the machine had time to spare, or all if it never had. */
export function calmSamples(samples: readonly Sample[]): Sample[] {
  return [...byBox(samples).values()].flatMap((own) => {
    const calm = own.filter((sample) => !isCrowded(sample));
    return calm.length > 0 ? calm : own;
  });
}

/** Visits by box. A visit on a busy machine counts half, so that it is repeated a limited number of times. */
export function visitsByBox(samples: readonly Sample[]): Map<string, number> {
  return new Map(
    [...byBox(samples)].map(([box, own]) => {
      const all = new Set(own.map(({ visit }) => visit));
      const crowded = new Set(own.filter(isCrowded).map(({ visit }) => visit));
      return [box, all.size - crowded.size / 2];
    }),
  );
}

const byBox = (samples: readonly Sample[]): Map<string, Sample[]> => groupBy(samples, ({ box }) => box);

export const goodputOf = ({ netBytes, completionMs }: Sample): number => (netBytes * 1000) / completionMs;

/** `samples`: those that count (`calmSamples`), or all. */
export function rowsOf(boxes: readonly Box[], samples: readonly Sample[]): Row[] {
  const counted = byBox(samples);
  return boxes.flatMap((box) =>
    (["new", "warm"] as const).flatMap((session) => {
      const own = (counted.get(box.id) ?? []).filter((sample) => sample.session === session);
      return own.length > 0 ? [rowOf(box, session, own)] : [];
    }),
  );
}

const IP_UDP_BYTES = 28;
/** Header of a systematic symbol: docs/spec/protocol.md §4.4. */
const FRAME_BYTES = 13;
/**
 * Minimum overhead of a packet. QUIC: first byte, packet number, tag, frame type, stream (RFC 9000, 9221, 9297). SCTP
 * in DTLS: RFC 6347, 9260, padding.
 */
const TRANSPORT_BYTES = { webtransport: 20, webrtc: 65, udp: 9 } as const;
/** A TCP segment with timestamps carries 1,448 of 1,500 bytes. */
const SEGMENT_SHARE = 1448 / 1500;

function wireSecOf({
  links: { ratesKB, rttMs, lossPercent, event },
  mode,
  transport,
  connections,
  chunkBytes,
}: Box): number | null {
  if (event) return null;
  const used = mode === "direct" || mode === "direct-http2" ? 1 : connections;
  const symbolBytes = LIMITS.symbolBytesDefault;
  const bodyShare = transport
    ? symbolBytes / (symbolBytes + FRAME_BYTES + TRANSPORT_BYTES[transport] + IP_UDP_BYTES)
    : SEGMENT_SHARE;
  const bytesPerSec = 1000 * ratesKB.slice(0, used).reduce((sum, rate) => sum + rate, 0) * (1 - lossPercent / 100);
  return Math.min(...rttMs.slice(0, used)) / 1000 + chunkBytes / (bytesPerSec * bodyShare);
}

function rowOf(box: Box, session: SessionKind, all: readonly Sample[]): Row {
  const good = all.filter(({ ok }) => ok);
  const of = (value: (sample: Sample) => number): number => median(good.map(value));
  const idleShare = median(all.map((sample) => sample.idleShare));
  const lateUs = median(all.map((sample) => sample.lateUs));
  return {
    scenario: box.links.id,
    runner: box.runner,
    mode: box.mode,
    transport: box.transport ?? null,
    N: box.connections,
    session,
    chunkAt: box.chunkAt,
    chunkBytes: box.chunkBytes,
    generationSize: box.generationSize ?? null,
    windowPackets: box.windowPackets ?? null,
    figures: box.figures,
    n: good.length,
    failed: all.length - good.length,
    fallbacks: all.filter(({ fellBack }) => fellBack).length,
    goodputBytesPerSec: quartilesOf(good.map(goodputOf)),
    throughputBytesPerSec: of((sample) => (sample.grossBytes * 1000) / sample.completionMs),
    normalizedGoodput: of(({ netBytes, grossBytes }) => netBytes / grossBytes),
    linkShare: of((sample) => goodputOf(sample) / sample.linkBytesPerSec),
    completionSec: of(({ completionMs }) => completionMs / 1000),
    firstByteSec: of(({ firstByteMs }) => firstByteMs / 1000),
    wireSec: wireSecOf(box),
    idleShare,
    lateUs,
    hostLimited: isHostLimited(idleShare, lateUs),
  };
}
