/**
 * The HTTP modes in simulation: one chunk from the proxies over persistent HTTP/1.1 connections, over the TCP of
 * tcp.ts. This file carries requests and answers; the clients of http-users.ts decide what to request. A client sees
 * the bytes of a connection in order only. A cancelled request costs its connection: the next one begins with a
 * handshake and a new window. HTTP's own heads cost nothing here. A segment carries as much as a data frame, with a
 * header as long.
 */
import type { ByteRange } from "@tributary/contract";
import { SPLIT_CONNECTIONS_MAX } from "@tributary/protocol";
import { contentOf } from "./content";
import { ParallelUser, SEGMENT_BYTES, SplitUser, type HttpUser } from "./http-users";
import { meanLoss } from "./link";
import { Network, type NetworkUser, type OnLinkEvent } from "./network";
import { TcpSender } from "./tcp";
import type { HttpMode, OnArrival, Outcome, World } from "./world";

const SEGMENT_HEADER_BYTES = 12;
const ACK_BYTES = 40;
const REQUEST_BYTES = 300;
const TICK_MS = 5;
/** The least time after which TCP sends a lone packet again. */
const REPEAT_MS_MIN = 200;
/** Late packets are counted for this long after the end. */
const LATE_MS = 1000;
/** The kinds of packets to a proxy. `mark` holds the kind above the packet's number. */
const UP = { ack: 0, request: 1 << 28, close: 2 << 28 } as const;
const UP_MASK = 3 << 28;

/** One request and its answer. The answer is `count` segments of the connection's stream, from `first` on. */
interface HttpRequest {
  readonly start: number;
  readonly end: number;
  readonly connection: number;
  first: number;
  readonly count: number;
  askedMs: number;
  repeatMs: number;
  repeatAfterMs: number;
  heard: boolean;
  /** When the origin's bytes begin to reach the proxy. */
  originMs: number;
}

interface Connection {
  readonly proxy: number;
  readonly sender: TcpSender;
  /** Transmissions in the order of arrival. */
  readonly arrivals: number[];
  /** Segments that came before an earlier one. */
  readonly ahead: Set<number>;
  /** The client has all segments of the stream below this one. */
  received: number;
  /** The end of the requested part of the stream, in segments. */
  asked: number;
  /** Every request over this connection. */
  readonly asks: number[];
  /** The current request, as the client and as the proxy see it. -1 means that there is no request. */
  current: number;
  serving: number;
  closed: boolean;
  isNew: boolean;
}

export function simulateHttp(world: World, mode: HttpMode, onLinkEvent?: OnLinkEvent, onArrival?: OnArrival): Outcome {
  return new HttpSimulation(world, mode, onLinkEvent, onArrival).run();
}

class HttpSimulation implements NetworkUser {
  readonly #network: Network;
  readonly #user: HttpUser;
  readonly #cubic: boolean;
  readonly #original: Uint8Array;
  readonly #connections: Connection[] = [];
  readonly #byProxy: number[][];
  readonly #turns: number[];
  readonly #originFreeMs: number[];
  readonly #requests = new Map<number, HttpRequest>();
  readonly #arrived = new Set<number>();
  readonly #tick: number;
  readonly #sendRequest: number;
  readonly #delivered: Outcome["delivered"] = [];
  #deliveredBytes = 0;
  #bytesRight = true;
  #received = 0;
  #completionMs = Infinity;

  readonly #world: World;
  readonly #onArrival: OnArrival | undefined;

  constructor(world: World, mode: HttpMode, onLinkEvent: OnLinkEvent | undefined, onArrival: OnArrival | undefined) {
    this.#world = world;
    this.#onArrival = onArrival;

    this.#cubic = mode.endsWith("cubic");
    const links = this.#cubic
      ? world.links.map((link) => ({ ...link, queueBytes: link.queueBytes ?? link.bytesPerSec / 10 }))
      : world.links;
    this.#network = new Network({ ...world, links }, this, onLinkEvent);
    this.#original = contentOf(world.chunkBytes);
    this.#user = mode.startsWith("split")
      ? new SplitUser(world.links.length, world.chunkBytes)
      : new ParallelUser(world.links.length, world.chunkBytes);
    this.#byProxy = world.links.map(() => []);
    this.#turns = world.links.map(() => 0);
    this.#originFreeMs = world.links.map(() => 0);
    this.#tick = this.#network.events.register(() => this.#handleTick());
    this.#sendRequest = this.#network.events.register((askId) => this.#repeatRequest(askId));
    world.links.forEach((_, proxy) => {
      for (let i = 0; i < SPLIT_CONNECTIONS_MAX; i++) this.#connect(proxy, false);
    });
  }

  run(): Outcome {
    const { events } = this.#network;
    this.#drain();
    events.schedule(TICK_MS, this.#tick, 0);
    while (events.step(Math.min(this.#world.untilMs ?? 60_000, this.#completionMs + LATE_MS)));
    const received = this.#received;
    const completionMs = this.#completionMs;
    const delivered = this.#delivered;
    const symbolCount = Math.ceil(this.#world.chunkBytes / SEGMENT_BYTES);
    return {
      completionMs,
      firstBytesMs: delivered[0]?.atMs ?? Infinity,
      normalizedGoodput: received > 0 ? symbolCount / received : 0,
      symbolCount,
      receivedPackets: received,
      sentPackets: this.#connections.reduce((sum, { sender }) => sum + sender.sentCount, 0),
      packetBytes: SEGMENT_BYTES + SEGMENT_HEADER_BYTES + (this.#world.overheadBytes ?? 0),
      delivered,
      bytesRight: this.#bytesRight && (completionMs === Infinity || this.#deliveredBytes === this.#original.length),
      eventHash: this.#network.log.hash,
      events: this.#network.log.events,
    };
  }

  onFree(proxy: number): void {
    this.#pump(proxy);
  }

  onOutage(proxy: number, phase: "crash" | "cut" | "over"): void {
    if (phase !== "crash") return;
    for (const connection of this.#connections) if (connection.proxy === proxy) connection.sender.stop();
  }

  atProxy(proxy: number, slot: number): void {
    const { pool, events } = this.#network;
    const connection = this.#connections[pool.tag[slot]!]!;
    const [kind, number] = [pool.mark[slot]! & UP_MASK, pool.mark[slot]! & ~UP_MASK];
    pool.giveBack(slot);
    if (kind === UP.ack) connection.sender.acknowledge(connection.arrivals, number, events.nowMs);
    else if (kind === UP.close) connection.sender.stop();
    else if (kind === UP.request && number > connection.serving) this.#serve(connection, number);
    this.#pump(proxy);
  }

  atClient(proxy: number, slot: number): void {
    const { pool, events } = this.#network;
    const [index, sent] = [pool.tag[slot]!, pool.mark[slot]!];
    pool.giveBack(slot);
    const connection = this.#connections[index]!;
    connection.arrivals.push(sent);
    this.#received++;
    this.#tellArrival(connection, connection.sender.segmentOf(sent));
    if (connection.closed) return;
    this.#network.toProxy(proxy, undefined, ACK_BYTES, index, UP.ack | connection.arrivals.length);
    const segment = connection.sender.segmentOf(sent);
    if (segment >= connection.received) connection.ahead.add(segment);
    this.#readStream(connection, events.nowMs);
  }

  /** The first arrival of a part of the chunk is innovative, whichever proxy sent it. */
  #tellArrival({ proxy, asks }: Connection, segment: number): void {
    if (!this.#onArrival) return;
    const request = this.#requests.get(asks.findLast((askId) => this.#requests.get(askId)!.first <= segment)!)!;
    const place = request.start + (segment - request.first) * SEGMENT_BYTES;
    const kind = this.#completionMs < Infinity ? "late" : this.#arrived.has(place) ? "duplicate" : "innovative";
    this.#arrived.add(place);
    this.#onArrival(this.#network.events.nowMs, proxy, kind);
  }

  /** Gives the client all segments that it can read in order. */
  #readStream(connection: Connection, nowMs: number): void {
    while (!connection.closed && connection.ahead.delete(connection.received)) {
      const askId = connection.current;
      const request = this.#requests.get(askId)!;
      const at = connection.received++ - request.first;
      if (!request.heard) this.#user.handleHead(askId, nowMs);
      request.heard = true;
      const start = request.start + at * SEGMENT_BYTES;
      const isLast = connection.received === request.first + request.count;
      if (isLast) connection.current = -1;
      this.#user.handleBytes(
        askId,
        this.#original.subarray(start, Math.min(request.end, start + SEGMENT_BYTES)),
        nowMs,
      );
      if (isLast) this.#user.handleEnd(askId, nowMs);
      this.#drain();
    }
  }

  #connect(proxy: number, isNew: boolean): number {
    const { bytesPerSec, rttMs, loss = 0, burst, queueBytes = bytesPerSec / 10 } = this.#world.links[proxy]!;
    const packetBytes = SEGMENT_BYTES + SEGMENT_HEADER_BYTES;
    const held = this.#user instanceof SplitUser ? 0 : queueBytes / 2;
    const capacitySegments = ((bytesPerSec * rttMs) / 1000 + held) / packetBytes;
    const path = {
      response: this.#cubic ? "cubic" : "ideal",
      rttMs,
      loss: meanLoss({ loss, ...(burst ? { burst } : {}) }),
      capacitySegments,
      isNew,
    } as const;
    const made = {
      proxy,
      sender: new TcpSender(path),
      arrivals: [],
      ahead: new Set<number>(),
      received: 0,
      asked: 0,
      asks: [],
      current: -1,
      serving: -1,
      closed: false,
      isNew,
    };
    const index = this.#connections.push(made) - 1;
    this.#byProxy[proxy]!.push(index);
    return index;
  }

  #serve(connection: Connection, askId: number): void {
    const request = this.#requests.get(askId)!;
    const { origin } = this.#world.links[connection.proxy]!;
    const { nowMs } = this.#network.events;
    connection.serving = askId;
    if (origin) {
      request.originMs = Math.max(nowMs + origin.rttMs, this.#originFreeMs[connection.proxy]!);
      this.#originFreeMs[connection.proxy] =
        request.originMs + ((request.end - request.start) / origin.bytesPerSec) * 1000;
    }
    connection.sender.start(request.first, request.first + request.count);
  }

  /** The end of the segments that may be sent. The origin's bytes must be at the proxy first. */
  #available(connection: Connection): number {
    const request = this.#requests.get(connection.serving);
    const { origin } = this.#world.links[connection.proxy]!;
    if (!request || !origin) return Infinity;
    const bytes = ((this.#network.events.nowMs - request.originMs) * origin.bytesPerSec) / 1000;
    if (bytes < 0) return request.first;
    return bytes >= request.end - request.start ? Infinity : request.first + Math.floor(bytes / SEGMENT_BYTES);
  }

  /**
   * The connections take turns while the serializer wants more. A host holds its sockets back when its own queue is
   * full, at any size of their windows (like Linux with TCP small queues).
   */
  #pump(proxy: number): void {
    const { events, down } = this.#network;
    const own = this.#byProxy[proxy]!;
    const limit = this.#world.links[proxy]!.backpressurePackets ?? 2;
    for (const index of own) this.#connections[index]!.sender.handleTimeout(events.nowMs);
    for (let idle = 0; idle < own.length;) {
      if (down[proxy]!.queuedPackets >= limit) return;
      const index = own[this.#turns[proxy]!++ % own.length]!;
      const connection = this.#connections[index]!;
      const sent = connection.sender.send(events.nowMs, this.#available(connection));
      idle = sent < 0 ? idle + 1 : 0;
      if (sent >= 0) this.#network.toClient(proxy, undefined, SEGMENT_BYTES + SEGMENT_HEADER_BYTES, index, sent);
    }
  }

  #handleTick(): void {
    const { events } = this.#network;
    this.#world.links.forEach((_, proxy) => {
      if (!this.#network.dead[proxy]) this.#pump(proxy);
    });
    if (this.#completionMs === Infinity) {
      for (const askId of this.#requests.keys())
        if (events.nowMs >= this.#requests.get(askId)!.repeatMs) this.#repeatRequest(askId);
      this.#user.handleTick(events.nowMs);
      this.#drain();
    }
    events.schedule(events.nowMs + TICK_MS, this.#tick, 0);
  }

  /** Sends a request again that nothing answered, as TCP does. */
  #repeatRequest(askId: number): void {
    const request = this.#requests.get(askId)!;
    const connection = this.#connections[request.connection]!;
    if (request.heard || connection.closed) return;
    request.repeatMs = this.#network.events.nowMs + request.repeatAfterMs;
    request.repeatAfterMs *= 2;
    this.#network.toProxy(connection.proxy, undefined, REQUEST_BYTES, request.connection, UP.request | askId);
  }

  /** Takes the client's bytes and obeys its commands. */
  #drain(): void {
    for (let bytes = this.#user.pollBytes(); bytes; bytes = this.#user.pollBytes()) this.#deliver(bytes);
    for (let command = this.#user.pollCommand(); command; command = this.#user.pollCommand()) {
      if (command.kind === "ask") this.#ask(command.askId, command.proxyIndex, command.part);
      else this.#close(command.askId);
    }
    if (this.#user.isComplete) this.#completionMs = Math.min(this.#completionMs, this.#network.events.nowMs);
  }

  #deliver(bytes: Uint8Array): void {
    const expected = this.#original.subarray(this.#deliveredBytes, this.#deliveredBytes + bytes.length);
    this.#bytesRight &&= Buffer.compare(expected, bytes) === 0;
    this.#deliveredBytes += bytes.length;
    this.#delivered.push({ untilByte: this.#deliveredBytes, atMs: this.#network.events.nowMs });
  }

  #ask(askId: number, proxy: number, part: ByteRange): void {
    const { nowMs } = this.#network.events;
    const { rttMs } = this.#world.links[proxy]!;
    const index =
      this.#byProxy[proxy]!.find((one) => this.#connections[one]!.current < 0) ?? this.#connect(proxy, true);
    const connection = this.#connections[index]!;
    const { start } = part;
    const end = Math.max(start, Math.min(part.end + 1, this.#world.chunkBytes));
    const count = Math.max(1, Math.ceil((end - start) / SEGMENT_BYTES));
    const repeatAfterMs = Math.max(REPEAT_MS_MIN, rttMs * 2);
    this.#requests.set(askId, {
      start,
      end,
      connection: index,
      first: connection.asked,
      count,
      askedMs: nowMs,
      repeatMs: Infinity,
      repeatAfterMs,
      heard: false,
      originMs: 0,
    });
    connection.asked += count;
    connection.current = askId;
    connection.asks.push(askId);
    this.#network.events.schedule(nowMs + (connection.isNew ? rttMs : 0), this.#sendRequest, askId);
    connection.isNew = false;
  }

  /** Ends a connection in the middle of an answer. */
  #close(askId: number): void {
    const { connection: index } = this.#requests.get(askId)!;
    const connection = this.#connections[index]!;
    if (connection.current !== askId) return;
    connection.closed = true;
    this.#byProxy[connection.proxy] = this.#byProxy[connection.proxy]!.filter((one) => one !== index);
    this.#network.toProxy(connection.proxy, undefined, ACK_BYTES, index, UP.close);
  }
}
