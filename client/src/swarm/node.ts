/**
 * A swarm node: one peer of `@tributary/protocol` with its sockets on loopback, behind an emulated uplink and downlink.
 * Neighbours are as little trusted as anybody: what breaks a rule is counted, and its sender is dropped.
 */
import net from "node:net";
import { createPeer, type CodingOptions, type Peer, type PeerScheme } from "@tributary/protocol";
import { Connection } from "./connection";
import { DownstreamNeighbour, UpstreamNeighbour } from "./neighbours";
import { SharedLink, type LinkFlow } from "./shared-link";
import type { SwarmFault, SwarmFrame } from "./wire";

const HOST = "127.0.0.1";
/** The slowest flows send every 7 s. */
const SILENCE_MS = 20_000;
/** How often silence is looked for, in each time that it may last. */
const SILENCE_CHECKS = 20;
/** Connections that may be open beside those of neighbours. */
const STRANGERS_MAX = 16;
const HELLO_MS = 5000;

export interface SwarmNodeOptions extends CodingOptions {
  id: number;
  /** All peers of a run know it, and nobody else. */
  token: Uint8Array;
  scheme: PeerScheme;
  upBytesPerSec: number;
  downBytesPerSec: number;
  /** A neighbour that owes a block and sends nothing for this long is dropped. */
  silenceMs?: number;
  /** Called once, when the peer has all. */
  onComplete(content: Uint8Array): void;
  /** Called once, when all upstream neighbours are gone before the peer has all. */
  onIsolated(): void;
}

export class SwarmNode {
  readonly counts = { receivedBytes: 0, controlBytes: 0 };
  /** How often each rule was broken. */
  readonly faults: Record<string, number> = {};
  readonly #options: SwarmNodeOptions;
  readonly #peer: Peer;
  readonly #uplink: SharedLink;
  readonly #downlink: SharedLink;
  readonly #server: net.Server;
  readonly #upstream = new Map<number, UpstreamNeighbour>();
  readonly #downstream = new Map<number, DownstreamNeighbour>();
  readonly #connections = new Set<Connection>();
  readonly #watch: ReturnType<typeof setInterval>;
  readonly #joined: Promise<void>;
  #noteJoined!: () => void;
  #isComplete: boolean;
  #isClosed = false;

  constructor(options: SwarmNodeOptions) {
    this.#options = options;
    this.#peer = createPeer(options.scheme, options);
    this.#isComplete = this.#peer.isComplete;
    this.#uplink = new SharedLink(options.upBytesPerSec);
    this.#downlink = new SharedLink(options.downBytesPerSec);
    this.#server = net.createServer((socket) => this.#meet(socket));
    this.#server.maxConnections = options.downstream.length + STRANGERS_MAX;
    const { silenceMs = SILENCE_MS } = options;
    this.#watch = setInterval(() => this.#dropSilent(silenceMs), silenceMs / SILENCE_CHECKS);
    this.#joined = new Promise((resolve) => (this.#noteJoined = resolve));
    if (options.downstream.length === 0) this.#noteJoined();
  }

  get blocks(): Peer["counts"] {
    return this.#peer.counts;
  }

  /** Port 0: the system chooses. Resolves to the port, and rejects when it is taken. */
  listen(port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, HOST, () => resolve((this.#server.address() as net.AddressInfo).port));
    });
  }

  /** Connects to the upstream neighbours, and resolves when the downstream ones are there too. */
  async join(portOf: (id: number) => number): Promise<void> {
    await Promise.all(this.#options.upstream.map((id) => this.#connect(id, portOf(id))));
    await this.#joined;
  }

  start(): void {
    this.#peer.start();
    this.#flush();
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#watch);
    this.#server.close();
    for (const connection of this.#connections) connection.end();
    this.#uplink.close();
    this.#downlink.close();
    this.#peer.free();
  }

  #connect(id: number, port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = net.connect(port, HOST);
      socket.once("error", reject);
      socket.once("connect", () => {
        const { blockBytes, blockCount, token, id: own } = this.#options;
        const handler = {
          handleFrame: (frame: SwarmFrame): SwarmFault | undefined => {
            const fault = neighbour.handleFrame(frame);
            this.#downlink.wake();
            return fault;
          },
          handleEnd: (fault: SwarmFault | undefined) => this.#drop(id, connection, this.#downlink, neighbour, fault),
        };
        const connection = new Connection(socket, "upstream", blockCount, handler);
        const neighbour = new UpstreamNeighbour(connection, blockBytes, {
          control: (control) => this.#afterwards(() => this.#peer.handleControl(id, control)),
          block: (block) => {
            const before = this.#peer.counts.innovative;
            this.#afterwards(() => this.#peer.handleBlock(id, block));
            return this.#peer.counts.innovative > before;
          },
          received: (bytes) => (this.counts.receivedBytes += bytes),
        });
        this.#connections.add(connection);
        this.#upstream.set(id, neighbour);
        this.#downlink.add(neighbour);
        connection.send({ kind: "hello", token, id: own });
        resolve();
      });
    });
  }

  /** Somebody connects. A downstream neighbour says who it is. */
  #meet(socket: net.Socket): void {
    const stranger = {
      handleFrame: (frame: SwarmFrame): SwarmFault | undefined => {
        const { token, downstream } = this.#options;
        if (frame.kind !== "hello") return undefined;
        const isKnown = Buffer.compare(frame.token, token) === 0 && downstream.includes(frame.id);
        if (!isKnown || this.#downstream.has(frame.id)) return { fault: "hello", got: frame.id, limit: 1 };
        clearTimeout(timer);
        this.#serve(frame.id, connection);
        return undefined;
      },
      handleEnd: (fault: SwarmFault | undefined) => {
        clearTimeout(timer);
        this.#connections.delete(connection);
        this.#countFault(fault);
      },
    };
    const connection = new Connection(socket, "stranger", this.#options.blockCount, stranger);
    const timer = setTimeout(() => connection.end({ fault: "hello", got: HELLO_MS, limit: HELLO_MS }), HELLO_MS);
    this.#connections.add(connection);
  }

  #serve(id: number, connection: Connection): void {
    const neighbour = new DownstreamNeighbour(connection, {
      control: (control) => this.#afterwards(() => this.#peer.handleControl(id, control)),
      nextBlock: () => {
        const block = this.#peer.nextBlock(id);
        this.#tell();
        return block;
      },
      isWanted: (block) => this.#peer.isWanted(id, block),
      freed: () => this.#uplink.wake(),
    });
    connection.become("downstream", {
      handleFrame: (frame) => neighbour.handleFrame(frame),
      handleEnd: (fault) => this.#drop(id, connection, this.#uplink, neighbour, fault),
    });
    this.#downstream.set(id, neighbour);
    this.#uplink.add(neighbour);
    if (this.#downstream.size === this.#options.downstream.length) this.#noteJoined();
  }

  #drop(id: number, connection: Connection, link: SharedLink, flow: LinkFlow, fault: SwarmFault | undefined): void {
    this.#connections.delete(connection);
    this.#upstream.delete(id);
    this.#downstream.delete(id);
    link.remove(flow);
    this.#countFault(fault);
    if (this.#isClosed) return;
    this.#afterwards(() => this.#peer.handleGone(id));
    if (this.#upstream.size === 0 && !this.#isComplete && this.#options.upstream.length > 0) this.#options.onIsolated();
  }

  #countFault(fault: SwarmFault | undefined): void {
    if (fault) this.faults[fault.fault] = (this.faults[fault.fault] ?? 0) + 1;
  }

  #afterwards(work: () => void): void {
    work();
    this.#flush();
  }

  #flush(): void {
    this.#tell();
    if (this.#peer.isComplete && !this.#isComplete) {
      this.#isComplete = true;
      this.#options.onComplete(this.#peer.content());
    }
    this.#uplink.wake();
  }

  /** Sends what the peer has to say. It does not wait for the links, and it takes its bytes from them. */
  #tell(): void {
    for (let next = this.#peer.pollControl(); next; next = this.#peer.pollControl()) {
      const { to, control } = next;
      const upstream = this.#upstream.get(to);
      const bytes = (upstream ?? this.#downstream.get(to))?.connection.send(control) ?? 0;
      upstream?.noteSent(control);
      this.#uplink.charge(bytes);
      this.counts.controlBytes += bytes;
    }
  }

  #dropSilent(limit: number): void {
    if (this.#isComplete) return;
    const nowMs = performance.now();
    for (const { silentSinceMs, connection } of this.#upstream.values()) {
      const silentMs = nowMs - (silentSinceMs ?? nowMs);
      if (silentMs > limit) connection.end({ fault: "silence", got: Math.round(silentMs), limit });
    }
  }
}
