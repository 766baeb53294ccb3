/**
 * Runs a swarm: starts a process for each peer, joins them to a mixed topology, and waits until every peer that lives
 * has the file. No process of it outlives `run`.
 */
import { fork, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import path from "node:path";
import { mixedTopology, type TopologyNode } from "@tributary/protocol";
import type { FromPeer, PeerCounts, SwarmSettings, ToPeer } from "./messages";
import { TOKEN_BYTES } from "./wire";

export const UPSTREAM = 10;
/** The run fails if setting up takes longer than SET_UP_MS, or if no peer gets a new block for STALL_MS. */
const SET_UP_MS = 120_000;
const STALL_MS = 60_000;
/** Peers that do not end by themselves are killed. */
const END_MS = 5000;

export interface SwarmOptions extends SwarmSettings {
  peers: number;
  source: string;
  fileBytes: number;
  blockCount: number;
  /** First of `peers + 1` ports, or 0. */
  port: number;
  /** Where a peer writes its file. */
  fileOf(id: number): string;
}

export interface PeerState {
  readonly id: number;
  readonly node: TopologyNode;
  pid: number | undefined;
  innovative: number;
  receivedBytes: number;
  /** When it had all: milliseconds from the start. */
  completeMs: number | undefined;
  /** Why it has ended or got stuck. */
  lost: string | undefined;
  counts: PeerCounts | undefined;
  cpuMs: number;
  memoryBytes: number;
}

export class SwarmError extends Error {
  override readonly name = "SwarmError";
}

export class Swarm {
  /** The first one has the file. */
  readonly peers: PeerState[];
  readonly #options: SwarmOptions;
  readonly #children: ChildProcess[] = [];
  readonly #messages = new Map<FromPeer["kind"], Set<number>>();
  readonly #ports: number[] = [];
  #wake: () => void = () => undefined;
  #failure: string | undefined;
  #changedMs = 0;
  #isStarted = false;
  #isOver = false;

  constructor(options: SwarmOptions) {
    const { peers, seed } = options;
    this.#options = options;
    this.peers = mixedTopology({ peers, upstream: UPSTREAM, seed }).map((node, id) => ({
      id,
      node,
      pid: undefined,
      innovative: 0,
      receivedBytes: 0,
      completeMs: undefined,
      lost: undefined,
      counts: undefined,
      cpuMs: 0,
      memoryBytes: 0,
    }));
  }

  /** Resolves when every peer that lives has the file. Throws a `SwarmError`. */
  async run(): Promise<void> {
    const token = randomBytes(TOKEN_BYTES).toString("hex");
    for (const { id } of this.peers) this.#begin(id, token);
    await this.#all("listening");
    this.#tellAll({ kind: "join", ports: this.#ports });
    await this.#all("joined");
    this.#isStarted = true;
    this.#tellAll({ kind: "start" });
    this.#changedMs = performance.now();
    await this.#until(
      () => this.#isDone,
      () => performance.now() - this.#changedMs,
      STALL_MS,
      () => this.#stalled(),
    );
    this.#tellAll({ kind: "stop" });
    const startMs = performance.now();
    const areEnded = (): boolean => this.#children.every(hasEnded);
    await this.#until(
      areEnded,
      () => performance.now() - startMs,
      END_MS,
      () => undefined,
    );
  }

  /** Ends all processes at once, whatever they do. */
  kill(): void {
    this.#isOver = true;
    for (const child of this.#children) child.kill("SIGKILL");
  }

  get #isDone(): boolean {
    return this.peers.slice(1).every(({ completeMs, lost }) => completeMs !== undefined || lost !== undefined);
  }

  #begin(id: number, token: string): void {
    const { scheme, density, aggressiveness, check, seed, port, ...options } = this.#options;
    const { blockCount, blockBytes, fileBytes, source, fileOf } = options;
    const { upBytesPerSec, downBytesPerSec, upstream, downstream } = this.peers[id]!.node;
    const settings = { scheme, density, aggressiveness, check, seed, blockCount, blockBytes, fileBytes };
    const links = { upBytesPerSec, downBytesPerSec, upstream, downstream };
    // The number is for people who list processes.
    const child = fork(path.join(__dirname, "peer-process.js"), [String(id)], {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    this.#children.push(child);
    this.peers[id]!.pid = child.pid;
    child.on("message", (message: FromPeer) => this.#handle(id, message));
    child.on("error", (error) => this.#lose(id, error.message));
    child.on("exit", (code, signal) => this.#lose(id, signal ?? `exit status ${code}`));
    const file = id === 0 ? source : fileOf(id);
    const own = { kind: "begin", id, token, port: port === 0 ? 0 : port + id, file } as const;
    this.#tell(id, { ...settings, ...links, ...own });
  }

  #handle(id: number, message: FromPeer): void {
    const peer = this.peers[id]!;
    if (message.kind === "listening") this.#ports[id] = message.port;
    if (message.kind === "failed") this.#failure ??= `Peer ${id}: ${message.message}.`;
    if (message.kind === "isolated") peer.lost = "all its upstream neighbours are gone";
    if (message.kind === "complete") peer.completeMs = message.ms;
    if (message.kind === "ended") {
      Object.assign(peer, { counts: message.counts, cpuMs: message.cpuMs, memoryBytes: message.memoryBytes });
      peer.receivedBytes = message.counts.receivedBytes;
    }
    if (message.kind === "progress") {
      peer.innovative = message.innovative;
      peer.receivedBytes = message.receivedBytes;
      this.#changedMs = performance.now();
    }
    const from = this.#messages.get(message.kind) ?? new Set();
    this.#messages.set(message.kind, from.add(id));
    this.#wake();
  }

  /** A process has ended. Before the start that ends the run; later the others go on. */
  #lose(id: number, why: string): void {
    const peer = this.peers[id]!;
    if (this.#isOver) return;
    this.#wake();
    if (peer.counts !== undefined) return;
    if (!this.#isStarted) this.#failure ??= `Peer ${id} ended before the start: ${why}.`;
    peer.lost ??= why;
  }

  #tell(id: number, message: ToPeer): void {
    const child = this.#children[id]!;
    // One that has just ended is reported by its event.
    if (child.connected) child.send(message, () => undefined);
  }

  #tellAll(message: ToPeer): void {
    for (const { id } of this.peers) this.#tell(id, message);
  }

  #all(kind: FromPeer["kind"]): Promise<void> {
    const startMs = performance.now();
    const count = (): number => this.#messages.get(kind)?.size ?? 0;
    const late = (): string =>
      `Only ${count()} of ${this.peers.length} peers were ${kind} after ${SET_UP_MS / 1000} s.`;
    return this.#until(
      () => count() === this.peers.length,
      () => performance.now() - startMs,
      SET_UP_MS,
      late,
    );
  }

  /** Waits for `isSo`. When `waitedMs` is over the limit, it throws what `late` says, or goes on. */
  async #until(isSo: () => boolean, waitedMs: () => number, limitMs: number, late: () => string | undefined) {
    while (!isSo()) {
      if (this.#failure !== undefined) throw new SwarmError(this.#failure);
      const leftMs = limitMs - waitedMs();
      if (leftMs <= 0) {
        const message = late();
        if (message !== undefined) throw new SwarmError(message);
        return;
      }
      let timer: ReturnType<typeof setTimeout> | undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        timer = setTimeout(resolve, leftMs);
      });
      clearTimeout(timer);
    }
  }

  #stalled(): string {
    const open = this.peers.slice(1).filter(({ completeMs, lost }) => completeMs === undefined && lost === undefined);
    const source = this.peers[0]!.lost === undefined ? "" : " The first peer, which had the file, has ended.";
    return `No peer got a new block for ${STALL_MS / 1000} s, and ${open.length} peers are not complete.${source}`;
  }
}

/** Also of one that could not be started. */
const hasEnded = ({ pid, exitCode, signalCode }: ChildProcess): boolean =>
  pid === undefined || exitCode !== null || signalCode !== null;
