/** Formats the live line, the table, the picture and the JSON of a swarm. No I/O. */
import type { PeerState } from "../swarm/run";
import type { PeerCounts, SwarmSettings } from "../swarm/messages";
import { stepPlot } from "./step-plot";
import { bar, clock, fitted, formatBytes, table } from "./view";

/** What was run. */
export interface SwarmHead extends SwarmSettings {
  file: string;
  fileBytes: number;
  sha256: string;
  peers: number;
  blockCount: number;
}

export interface PeerResult extends Partial<PeerCounts> {
  id: number;
  link: string;
  upBytesPerSec: number;
  downBytesPerSec: number;
  /** Null: it never had all. */
  completeMs: number | null;
  /** Why it ended early. */
  lost: string | null;
  cpuMs: number;
  memoryBytes: number;
}

export interface SwarmResult extends Omit<SwarmHead, "peers"> {
  complete: number;
  meanMs: number | null;
  lastMs: number | null;
  /** Over the complete peers: bytes of blocks over those needed, and bytes of control messages over the same. */
  receivedShare: number;
  controlShare: number;
  /** The first peer, which has the file, is the first one here too. */
  peers: PeerResult[];
}

export function swarmResult(head: SwarmHead, states: readonly PeerState[]): SwarmResult {
  const peers = states.map(({ id, node, completeMs, lost, counts, cpuMs, memoryBytes }): PeerResult => {
    const { link, upBytesPerSec, downBytesPerSec } = node;
    const links = { link, upBytesPerSec: Math.round(upBytesPerSec), downBytesPerSec: Math.round(downBytesPerSec) };
    return { id, ...links, completeMs: completeMs ?? null, lost: lost ?? null, ...counts, cpuMs, memoryBytes };
  });
  const complete = peers.slice(1).filter(isDone);
  const needed = complete.length * head.blockCount * head.blockBytes;
  return {
    ...head,
    complete: complete.length,
    ...timesOf(complete),
    receivedShare: sum(complete, ({ receivedBytes = 0 }) => receivedBytes) / needed,
    controlShare: sum(peers, ({ controlBytes = 0 }) => controlBytes) / needed,
    peers,
  };
}

const isDone = ({ completeMs, lost }: PeerResult): boolean => completeMs !== null && lost === null;

function timesOf(peers: readonly PeerResult[]): { meanMs: number | null; lastMs: number | null } {
  const times = peers.flatMap(({ completeMs }) => completeMs ?? []);
  if (times.length === 0) return { meanMs: null, lastMs: null };
  return { meanMs: times.reduce((all, ms) => all + ms, 0) / times.length, lastMs: Math.max(...times) };
}

const sum = (peers: readonly PeerResult[], value: (peer: PeerResult) => number): number =>
  peers.reduce((all, peer) => all + value(peer), 0);

/** At most `columns` characters: blocks that came, peers that are complete or lost, bytes, and the time. */
export function swarmLine(states: readonly PeerState[], blockCount: number, ms: number, columns: number): string {
  const peers = states.slice(1);
  const blocks = peers.reduce((all, { innovative }) => all + innovative, 0);
  const complete = peers.filter(({ completeMs }) => completeMs !== undefined).length;
  const lost = peers.filter((peer) => peer.lost !== undefined).length;
  const bytes = peers.reduce((all, { receivedBytes }) => all + receivedBytes, 0);
  const parts = [
    `${bar(blocks, peers.length * blockCount)} ${complete} of ${peers.length} peers complete`,
    ...(lost > 0 ? [`${lost} lost`] : []),
    `${formatBytes(bytes)} received`,
    clock(ms / 1000),
  ];
  return fitted(parts.join("  "), columns);
}

const seconds = (ms: number | null): string => (ms === null ? "-" : `${(ms / 1000).toFixed(1)} s`);

export function swarmSummary(result: SwarmResult): string {
  const { peers, scheme, density, aggressiveness, check, blockCount, blockBytes, complete } = result;
  const others = peers.slice(1);
  const rows = ["Ethernet", "DSL", "all"].map((link) => {
    const own = others.filter((peer) => link === "all" || peer.link === link);
    const done = own.filter(isDone);
    const { meanMs, lastMs } = timesOf(done);
    return [link, String(own.length), String(done.length), seconds(meanMs), seconds(lastMs)];
  });
  const settings = scheme === "coding" ? `, density ${density}, aggressiveness ${aggressiveness}, check ${check}` : "";
  const cpuMs = sum(peers, (peer) => peer.cpuMs);
  const memoryBytes = sum(peers, (peer) => peer.memoryBytes);
  const dropped = new Map<string, number>();
  for (const { faults = {} } of peers)
    for (const [fault, count] of Object.entries(faults)) dropped.set(fault, (dropped.get(fault) ?? 0) + count);
  const lines = [
    `${scheme}${settings}: ${blockCount} blocks of ${blockBytes} bytes`,
    table([["link", "peers", "complete", "mean", "last"], ...rows]),
    `received ${result.receivedShare.toFixed(3)} of the bytes needed, control ${result.controlShare.toFixed(4)}; ` +
      `${seconds(cpuMs)} of processor time, ${formatBytes(memoryBytes)} of memory in ${peers.length} processes`,
    ...[...dropped].map(([fault, count]) => `${count} neighbours dropped: ${fault}`),
    ...peers.filter(({ lost }) => lost !== null).map(({ id, lost }) => `peer ${id} lost: ${lost}`),
    `sha256 ${result.sha256}, in the files of ${complete} peers`,
  ];
  return `${lines.join("\n")}\n`;
}

/** How many peers are complete over time. */
export function swarmPlot({ scheme, peers, blockCount, blockBytes, meanMs }: SwarmResult): string {
  const others = peers.slice(1);
  const curve = (link: string): { name: string; points: [number, number][] } => {
    const times = others
      .filter((peer) => link === "all" || peer.link === link)
      .flatMap(({ completeMs }) => completeMs ?? []);
    const sorted = times.sort((a, b) => a - b);
    return { name: link, points: sorted.map((ms, index) => [ms / 1000, index + 1]) };
  };
  return stepPlot({
    title: `${scheme}: ${others.length} peers get ${blockCount} blocks of ${blockBytes} bytes`,
    subtitle: `mean ${seconds(meanMs)}`,
    x: "seconds",
    y: "complete peers",
    curves: ["all", "DSL", "Ethernet"].map(curve),
  });
}
