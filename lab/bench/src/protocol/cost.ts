/**
 * `npm run bench -- protocol --cost`: what the protocol itself costs, without codec and network. Receiver and Senders
 * of one chunk exchange their frames over six links of a given delay and loss; the codec counts ranks and touches no
 * byte. Time, the processor's, is taken around the calls that a shell makes: for a sender pollTransmit and handleFrame,
 * for the receiver handleFrame, pollTransmit, pollEvent and pollTimeout. Memory is what the whole exchange holds after
 * a collection, beyond what it held before: the client and all six senders, so more than the client's state alone.
 */
import { createHash } from "node:crypto";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { blockCountOf, DIGEST_BYTES, hexOf, Tree } from "@tributary/contract/tree";
import {
  LIMITS,
  parseFrame,
  Receiver,
  Sender,
  type Codec,
  type Decoder,
  type Encoder,
  type MutpMode,
} from "@tributary/protocol";
import { contentOf, Random, sourceOf } from "@tributary/lab-sim";
import { median } from "../kit/figures";
import { machineText } from "../kit/machine";
import { table } from "../kit/table";

const PROXIES = 6;
const LOSS = 0.02;
const DELAY_MS = 25;
/** One packet a step: about 896 KB/s on each link. */
const STEP_MS = 1.25;
/** The median of `ROUNDS` rounds counts. Memory is looked at `LOOKS` times in another round. */
const ROUNDS = 5;
const LOOKS = 40;
export const STATE_FLOOR_BYTES = 4 * 1024 * 1024;

export interface CostRow {
  mode: MutpMode;
  chunkBytes: number;
  /** The chunk is an object, whose blocks are checked; the packets of open generations are kept meanwhile. */
  verified: boolean;
  packets: number;
  senderUsPerPacket: number;
  receiverUsPerPacket: number;
  /** At the worst look; the data itself, received and not yet handed on, does not count. */
  stateBytes: number;
}

/** Costs of the protocol's modes that are in `wanted`. */
export function measureCost(wanted: readonly string[]): CostRow[] {
  const modes: MutpMode[] = ["coded", "coded-mutp", "uncoded-mutp"];
  return modes
    .filter((mode) => wanted.includes(mode))
    .flatMap((mode) => [false, true].map((verified) => costOf(mode, 32 * 1024 * 1024, verified)));
}

function costOf(mode: MutpMode, chunkBytes: number, verified: boolean): CostRow {
  contentOf(chunkBytes);
  const looked = new MeasuredChunk(mode, chunkBytes, verified, true).run();
  const rounds = Array.from({ length: ROUNDS }, () => new MeasuredChunk(mode, chunkBytes, verified).run());
  const { packets } = rounds[0]!;
  return {
    mode,
    chunkBytes,
    verified,
    packets,
    senderUsPerPacket: median(rounds.map((round) => round.senderUs / round.sent)),
    receiverUsPerPacket: median(rounds.map((round) => round.receiverUs / round.packets)),
    stateBytes: looked.stateBytes,
  };
}

export function costText(rows: readonly CostRow[]): string {
  const rate = Math.round(LIMITS.symbolBytesDefault / STEP_MS);
  const head = ["mode", "chunk MiB", "digests", "sender us a packet", "receiver us a packet", "state MiB (floor 4)"];
  const lines = rows.map(({ mode, chunkBytes, verified, senderUsPerPacket, receiverUsPerPacket, stateBytes }) => [
    mode,
    String(chunkBytes >> 20),
    verified ? "checked" : "no",
    senderUsPerPacket.toFixed(1),
    receiverUsPerPacket.toFixed(1),
    (stateBytes / 2 ** 20).toFixed(2) + (stateBytes > STATE_FLOOR_BYTES ? " NOT MET" : ""),
  ]);
  return `${machineText()}; 6 links of ${rate} KB/s, loss 2 %, RTT 50 ms; medians of ${ROUNDS} rounds

${table(head, lines)}`;
}

interface Flying {
  atMs: number;
  message: Uint8Array;
}

class MeasuredChunk {
  senderUs = 0;
  receiverUs = 0;
  sent = 0;
  packets = 0;
  stateBytes = 0;
  readonly #original: Uint8Array;
  /** The blocks' digests are all the same: the hash costs nothing. */
  #tree: Tree | undefined;
  readonly #random = new Random(7);
  readonly #receiver: Receiver;
  readonly #senders: (Sender | undefined)[] = Array.from({ length: PROXIES });
  readonly #down: Flying[][] = Array.from({ length: PROXIES }, () => []);
  readonly #up: Flying[][] = Array.from({ length: PROXIES }, () => []);
  readonly #codec = new RankCodec();
  readonly #heldBefore: number;

  readonly #mode: MutpMode;
  readonly #looking: boolean;

  constructor(mode: MutpMode, chunkBytes: number, verified: boolean, looking = false) {
    this.#mode = mode;
    this.#looking = looking;

    this.#original = contentOf(chunkBytes);
    const digest = createHash("sha256").update("").digest();
    this.#heldBefore = looking ? heldBytes() : 0;
    const hash = () => digest;
    const leaves = new Uint8Array(blockCountOf(chunkBytes) * DIGEST_BYTES);
    for (let at = 0; at < leaves.length; at += DIGEST_BYTES) leaves.set(digest, at);
    if (verified) this.#tree = new Tree(leaves, hash);
    const checked = verified ? { object: { root: hexOf(digest), bytes: chunkBytes }, hash } : {};
    this.#receiver = new Receiver({
      requestId: 1,
      url: "http://origin/",
      mode,
      proxyCount: PROXIES,
      codec: this.#codec,
      nowMs: 0,
      ...checked,
    });
  }

  run(): this {
    for (let index = 0; index < PROXIES; index++) this.#receiver.handleProxyReady(index, 0);
    let nextLook = 0;
    for (let nowMs = 0; !this.#receiver.finished; nowMs += STEP_MS) {
      for (let index = 0; index < PROXIES; index++) this.#stepSender(index, nowMs);
      this.#stepReceiver(nowMs);
      const { rank, symbolCount } = this.#receiver.stats();
      if (!this.#looking || symbolCount === 0 || rank < (nextLook * symbolCount) / LOOKS) continue;
      nextLook++;
      this.stateBytes = Math.max(
        this.stateBytes,
        heldBytes() - this.#heldBefore - this.#onTheWayBytes() - this.#dataBytes(),
      );
    }
    this.packets = this.#receiver.stats().proxies.reduce((sum, { packets }) => sum + packets, 0);
    return this;
  }

  #stepSender(index: number, nowMs: number): void {
    const arrived = takeDue(this.#up[index]!, nowMs).map(parseFrame);
    const started = cpuUs();
    const out: Uint8Array[] = [];
    for (const frame of arrived) {
      if (frame.type === "parseError") continue;
      const sender = this.#senders[index];
      if (sender) sender.handleFrame(frame, nowMs);
      else if (frame.type === "request") {
        const made = (this.#senders[index] = new Sender({
          request: frame,
          codec: this.#codec,
          rng: () => this.#random.u32(),
          nowMs,
        }));
        const tree = this.#tree;
        made.handlePlan(
          { status: 200, totalBytes: this.#original.length, headers: {}, serverFetchMs: 0 },
          sourceOf(this.#original, () => this.#original.length, tree && ((piece) => tree.proofOf(piece))),
        );
      }
    }
    const sender = this.#senders[index];
    const before = sender?.stats.sentPackets ?? 0;
    if ((sender?.pollTimeout() ?? Infinity) <= nowMs) sender!.handleTimeout(nowMs);
    for (let message = sender?.pollTransmit(nowMs); message; message = sender!.pollTransmit(nowMs)) {
      out.push(message);
      if (sender!.stats.sentPackets > before) break;
    }
    this.senderUs += cpuUs() - started - lookingUs();
    this.sent += (sender?.stats.sentPackets ?? 0) - before;
    for (const message of out) this.#launch(this.#down[index]!, message, nowMs);
  }

  #stepReceiver(nowMs: number): void {
    const arrived = this.#down.map((flying) => takeDue(flying, nowMs));
    const out: { proxyIndex: number; bytes: Uint8Array }[] = [];
    const started = cpuUs();
    const receiver = this.#receiver;
    arrived.forEach((messages, index) => {
      for (const message of messages) receiver.handleFrame(index, message, nowMs);
    });
    if ((receiver.pollTimeout() ?? Infinity) <= nowMs) receiver.handleTimeout(nowMs);
    for (let one = receiver.pollTransmit(nowMs); one; one = receiver.pollTransmit(nowMs)) out.push(one);
    for (let event = receiver.pollEvent(); event; event = receiver.pollEvent()) {
      if (event.kind === "bytes") this.#codec.handedOnBytes += event.bytes.length;
    }
    this.receiverUs += cpuUs() - started - lookingUs();
    for (const { proxyIndex, bytes } of out) this.#launch(this.#up[proxyIndex]!, bytes, nowMs);
  }

  #launch(flying: Flying[], message: Uint8Array, nowMs: number): void {
    if (this.#random.unit() >= LOSS) flying.push({ atMs: nowMs + DELAY_MS, message });
  }

  #onTheWayBytes(): number {
    return [...this.#down, ...this.#up].flat().reduce((sum, { message }) => sum + message.buffer.byteLength, 0);
  }

  /**
   * What waits for its turn: complete generations and, uncoded, the symbols of others. A real decoder holds those of
   * the coded modes outside this heap.
   */
  #dataBytes(): number {
    const { rank } = this.#receiver.stats();
    return (
      (this.#mode === "uncoded-mutp" ? rank * LIMITS.symbolBytesDefault : this.#codec.readBytes) -
      this.#codec.handedOnBytes
    );
  }
}

function takeDue(flying: Flying[], nowMs: number): Uint8Array[] {
  let due = 0;
  while (due < flying.length && flying[due]!.atMs <= nowMs) due++;
  return flying.splice(0, due).map(({ message }) => message);
}

/** Processor time of this process, its collector included: other load on the machine hardly reaches it. */
function cpuUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

const LOOKS_AT_CLOCK = 50_000;
let clockUs: number | undefined;

/** What looking at that clock twice adds to the time between: about as much as a packet costs, so it is taken off. */
function lookingUs(): number {
  if (clockUs !== undefined) return clockUs;
  let sum = 0;
  for (let look = 0; look < LOOKS_AT_CLOCK; look++) {
    const started = cpuUs();
    sum += cpuUs() - started;
  }
  return (clockUs = sum / LOOKS_AT_CLOCK);
}

let collect: (() => void) | undefined;

/** Heap and array buffers after a collection. */
function heldBytes(): number {
  if (!collect) {
    setFlagsFromString("--expose-gc");
    collect = runInNewContext("gc") as () => void;
  }
  collect();
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** Ranks rise with each packet; bytes are never touched. */
class RankCodec implements Codec {
  readonly engine = "none";
  readBytes = 0;
  handedOnBytes = 0;

  createEncoder(symbolCount: number, symbolBytes: number): Encoder {
    const nothing = () => undefined;
    return {
      symbolCount,
      symbolBytes,
      setSymbols: nothing,
      encodeSeeds: nothing,
      encodeVector: nothing,
      free: nothing,
    };
  }

  createDecoder(symbolCount: number, symbolBytes: number): Decoder {
    let rank = 0;
    const add = () => rank < symbolCount && ++rank > 0;
    const read = (_first: number, count: number) => void (this.readBytes += count * symbolBytes);
    return {
      symbolCount,
      symbolBytes,
      read,
      addSystematic: add,
      addSeeded: add,
      addVector: add,
      get rank() {
        return rank;
      },
      isDecoded: () => rank === symbolCount,
      free: () => undefined,
    };
  }

  createRecoder(): never {
    throw new Error("The protocol makes no recoder.");
  }
  createRepairEncoder(): never {
    throw new Error("The protocol makes no repair encoder.");
  }
  createRepairDecoder(): never {
    throw new Error("The protocol makes no repair decoder.");
  }
  coefficients(): never {
    throw new Error("The protocol asks for no coefficients.");
  }
}
