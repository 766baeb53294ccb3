/**
 * One object on its way to many peers, in simulated time: the product's peers on links that share their rates fairly.
 * Time goes in steps. Rates are fair at the beginning of each step. A coder takes time. Control messages take none of a
 * link's rate and arrive one step later.
 */
import {
  createPeer,
  xorshift128,
  type Block,
  type Codec,
  type Control,
  type DependenceCheck,
  type Peer,
  type PeerScheme,
  type TopologyNode,
} from "@tributary/protocol";
import { fairRates, type Flows } from "./fair-rates";

export interface DistributionOptions {
  nodes: readonly TopologyNode[];
  scheme: PeerScheme;
  codec: Codec;
  blockCount: number;
  /** Bytes of a block on the links. */
  blockBytes: number;
  density: number;
  aggressiveness: number;
  check: DependenceCheck;
  /** Multiplied bytes a second of each peer's coder. Infinity: coding takes no time. */
  coderBytesPerSec: number;
  seed: number;
  stepMs: number;
}

export interface DistributionOutcome {
  /** By peer, without the first one: when it had all and had decoded it. Infinity: never. */
  readonly completeMs: readonly number[];
  /** Share of the peers that could decode when they had received as many blocks as there are. */
  readonly decodedAtOnce: number;
  /** Blocks and parts of blocks that came, over the blocks that were needed; control messages likewise. */
  readonly receivedShare: number;
  readonly controlShare: number;
  readonly areBytesRight: boolean;
}

/** The algebra is the same for blocks of any length, so blocks are short in memory. */
const MEMORY_BYTES = 4;
/** One that takes longer has failed. */
const LIMIT_MS = 3_600_000;
/** Bytes of a control message beside a vector: kind, number and the framing. */
const CONTROL_BYTES = 8;

interface Flow {
  readonly from: number;
  readonly to: number;
  block: Block | undefined;
  /** When the block is coded, and how much of it is still to come. */
  readyMs: number;
  leftBytes: number;
}

export function distribute(options: DistributionOptions): DistributionOutcome {
  const distribution = new Distribution(options);
  try {
    return distribution.run();
  } finally {
    distribution.free();
  }
}

class Distribution {
  readonly #options: DistributionOptions;
  readonly #content: Uint8Array;
  readonly #peers: Peer[];
  readonly #flows: Flow[] = [];
  readonly #flowOf = new Map<number, Flow>();
  readonly #shape: Flows;
  readonly #coderFreeMs: Float64Array;
  readonly #completeMs: Float64Array;
  readonly #decodedAtOnce = new Set<number>();
  #messages: { from: number; to: number; control: Control }[] = [];
  #nowMs = 0;
  #receivedBytes = 0;
  #controlBytes = 0;

  constructor(options: DistributionOptions) {
    const { nodes, blockCount, seed } = options;
    this.#options = options;
    const rng = xorshift128(seed);
    this.#content = Uint8Array.from({ length: blockCount * MEMORY_BYTES }, () => rng() & 0xff);
    this.#peers = nodes.map((node, id) => this.#makePeer(node, id));
    for (const [from, { downstream }] of nodes.entries())
      for (const to of downstream) {
        const flow = { from, to, block: undefined, readyMs: 0, leftBytes: 0 };
        this.#flows.push(flow);
        this.#flowOf.set(from * nodes.length + to, flow);
      }
    this.#shape = shapeOf(nodes, this.#flows);
    this.#coderFreeMs = new Float64Array(nodes.length);
    this.#completeMs = new Float64Array(nodes.length).fill(Infinity);
    this.#completeMs[0] = 0;
  }

  run(): DistributionOutcome {
    const { stepMs, nodes, blockCount, blockBytes } = this.#options;
    const [busy, rates] = [new Uint8Array(this.#flows.length), new Float64Array(this.#flows.length)];
    for (const [id, peer] of this.#peers.entries()) {
      peer.start();
      this.#collect(id);
    }
    for (; this.#nowMs < LIMIT_MS && !this.#peers.every((peer) => peer.isComplete); this.#nowMs += stepMs) {
      this.#deliverControl();
      for (const [index, flow] of this.#flows.entries()) {
        if (!flow.block) this.#load(flow);
        busy[index] = flow.block && flow.readyMs <= this.#nowMs ? 1 : 0;
      }
      fairRates(this.#shape, busy, rates);
      for (const [index, flow] of this.#flows.entries())
        if (busy[index]) this.#advance(flow, (rates[index]! * stepMs) / 1000);
    }
    const others = this.#peers.slice(1);
    const neededBytes = others.length * blockCount * blockBytes;
    return {
      completeMs: [...this.#completeMs.subarray(1)],
      decodedAtOnce: this.#decodedAtOnce.size / (nodes.length - 1),
      receivedShare: this.#receivedBytes / neededBytes,
      controlShare: this.#controlBytes / neededBytes,
      areBytesRight: others.every((peer) => peer.isComplete && Buffer.compare(peer.content(), this.#content) === 0),
    };
  }

  free(): void {
    for (const peer of this.#peers) peer.free();
  }

  #makePeer({ upstream, downstream }: TopologyNode, id: number): Peer {
    const { scheme, seed } = this.#options;
    const rng = xorshift128(seed * 65_537 + id);
    const source = id === 0 ? this.#content : undefined;
    return createPeer(scheme, { ...this.#options, blockBytes: MEMORY_BYTES, upstream, downstream, rng, source });
  }

  /** Moves the peer's control messages to the network. */
  #collect(from: number): void {
    const peer = this.#peers[from]!;
    for (let next = peer.pollControl(); next; next = peer.pollControl()) {
      this.#controlBytes += CONTROL_BYTES + ("vector" in next.control ? next.control.vector.length : 0);
      this.#messages.push({ from, ...next });
    }
  }

  #deliverControl(): void {
    const messages = this.#messages;
    this.#messages = [];
    for (const { from, to, control } of messages) {
      const peer = this.#peers[to]!;
      peer.handleControl(from, control);
      this.#collect(to);
      const flow = this.#flowOf.get(to * this.#peers.length + from);
      if (flow?.block && !peer.isWanted(from, flow.block)) this.#drop(flow);
    }
  }

  /** The part of the block that has come is lost. */
  #drop(flow: Flow): void {
    if (flow.readyMs <= this.#nowMs) this.#receivedBytes += this.#options.blockBytes - flow.leftBytes;
    flow.block = undefined;
  }

  #load(flow: Flow): void {
    const peer = this.#peers[flow.from]!;
    flow.block = peer.nextBlock(flow.to);
    this.#collect(flow.from);
    if (!flow.block) return;
    const { blockBytes, coderBytesPerSec } = this.#options;
    flow.leftBytes = blockBytes;
    const workMs = ((flow.block.codedBytes / MEMORY_BYTES) * blockBytes * 1000) / coderBytesPerSec;
    flow.readyMs = Math.max(this.#nowMs, this.#coderFreeMs[flow.from]!) + workMs;
    this.#coderFreeMs[flow.from] = flow.readyMs;
  }

  #advance(flow: Flow, bytes: number): void {
    let budget = bytes;
    while (flow.block && flow.readyMs <= this.#nowMs && budget >= flow.leftBytes) {
      budget -= flow.leftBytes;
      const { block } = flow;
      flow.block = undefined;
      this.#receivedBytes += this.#options.blockBytes;
      this.#receive(flow, block);
      this.#load(flow);
    }
    if (flow.block && flow.readyMs <= this.#nowMs) flow.leftBytes -= budget;
  }

  #receive({ from, to }: Flow, block: Block): void {
    const { blockCount, blockBytes, stepMs, coderBytesPerSec, scheme } = this.#options;
    const peer = this.#peers[to]!;
    const wasComplete = peer.isComplete;
    peer.handleBlock(from, block);
    this.#collect(to);
    if (wasComplete || !peer.isComplete) return;
    if (peer.counts.received <= blockCount) this.#decodedAtOnce.add(to);
    const decodeMs = scheme === "coding" ? (blockCount * blockCount * blockBytes * 1000) / coderBytesPerSec : 0;
    this.#completeMs[to] = this.#nowMs + stepMs + decodeMs;
  }
}

export const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

function shapeOf(nodes: readonly TopologyNode[], flows: readonly Flow[]): Flows {
  const flowsOf = Array.from({ length: 2 * nodes.length }, () => [] as number[]);
  for (const [index, { from, to }] of flows.entries()) {
    flowsOf[from]!.push(index);
    flowsOf[nodes.length + to]!.push(index);
  }
  return {
    up: Int32Array.from(flows, ({ from }) => from),
    down: Int32Array.from(flows, ({ to }) => nodes.length + to),
    flowsOf: flowsOf.map((own) => Int32Array.from(own)),
    capacity: Float64Array.from([
      ...nodes.map(({ upBytesPerSec }) => upBytesPerSec),
      ...nodes.map(({ downBytesPerSec }) => downBytesPerSec),
    ]),
  };
}
