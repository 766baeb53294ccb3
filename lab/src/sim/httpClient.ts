/**
 * The rivals in simulation: one chunk by byte ranges over persistent HTTP connections, four to a proxy, over the TCP of
 * tcp.ts. `naive-http` asks each proxy for an equal part at once (the "Naive" of Sørensen et al. 2017; it
 * is not the paper's Parallel HTTP, which asks all for everything). `split-http` asks for pieces that adapt to the
 * measured rates and shrink towards the end, the next one a round trip before the last one ends; when nothing is left
 * to ask for, who is idle takes over the end of the piece that would finish last. Answers have no head: HTTP's own
 * bytes cost nothing here. A segment carries what a data frame does, with a header as long.
 */
import { meanLoss } from "./link";
import { Network, type NetworkUser, type OnLinkEvent } from "./network";
import { TcpSender } from "./tcp";
import type { HttpMode, Outcome, World } from "./world";

export const SEGMENT_BYTES = 1100;
export const SEGMENT_HEADER_BYTES = 12;
const ACK_BYTES = 40;
const REQUEST_BYTES = 300;
const CONNECTIONS = 4;
const TICK_MS = 5;
/** TCP's least time before it sends a lone packet again. */
const REPEAT_MS_MIN = 200;
/** A part of naive-http whose proxy says nothing for this long is asked of the next one. */
const STALL_MS = 4000;
/** Late packets are counted for this long. */
const LATE_MS = 1000;
const PIECE_SEGMENTS_MIN = 8;
/** Work is taken over only where the end comes sooner by this. */
const STEAL_GAIN_MS = 4;
const RATE_SAMPLES = 32;
const RATE_SAMPLES_MIN = 8;
const QUIET_ROUND_TRIPS = 2;
const QUIET_MS = 50;
/** What a packet to a proxy is: `mark` holds it above the number that belongs to it. */
const UP = { ack: 0, request: 1 << 28, abort: 2 << 28 } as const;
const UP_MASK = 3 << 28;

interface Piece {
  connection: number;
  first: number;
  /** As asked, and as wanted since somebody took over the end. */
  askedEnd: number;
  end: number;
  missing: number;
  askedMs: number;
  repeatMs: number;
  repeatAfterMs: number;
  heardMs: number;
  open: boolean;
}

interface Connection {
  proxy: number;
  sender: TcpSender;
  arrivals: number[];
  /** The client's side: the piece that is being received. */
  piece: number;
  /** The proxy's side: the last piece asked for. */
  serving: number;
}

interface ProxyView {
  arrivalMs: number[];
  rttMs: number;
  heardMs: number;
  /** Asked for something and not heard since: it gets no more until it is. */
  quiet: boolean;
}

export function simulateHttp(world: World, mode: HttpMode, onLinkEvent?: OnLinkEvent): Outcome {
  return new HttpSimulation(world, mode, onLinkEvent).run();
}

class HttpSimulation implements NetworkUser {
  private readonly network: Network;
  private readonly split: boolean;
  private readonly cubic: boolean;
  private readonly segmentCount: number;
  private readonly have: Uint8Array;
  private readonly owner: Int32Array;
  private readonly pieces: Piece[] = [];
  private readonly connections: Connection[];
  private readonly views: ProxyView[];
  private readonly headMs: number[];
  private readonly tick: number;
  private readonly delivered: Outcome["delivered"] = [];
  private unassigned = 0;
  private haveCount = 0;
  private prefix = 0;
  private received = 0;
  private completionMs = Infinity;

  constructor(
    private readonly world: World,
    mode: HttpMode,
    onLinkEvent: OnLinkEvent | undefined,
  ) {
    this.split = mode.startsWith("split");
    this.cubic = mode.endsWith("cubic");
    const links = this.cubic ? world.links.map((link) => ({ ...link, queueBytes: link.queueBytes ?? link.bytesPerSec / 10 })) : world.links;
    this.network = new Network({ ...world, links }, this, onLinkEvent);
    this.segmentCount = Math.ceil(world.chunkBytes / SEGMENT_BYTES);
    this.have = new Uint8Array(this.segmentCount);
    this.owner = new Int32Array(this.segmentCount).fill(-1);
    this.connections = world.links.flatMap((_, proxy) => Array.from({ length: CONNECTIONS }, () => this.newConnection(proxy)));
    this.views = world.links.map(({ rttMs }) => ({ arrivalMs: [], rttMs, heardMs: 0, quiet: false }));
    this.headMs = world.links.map(() => Infinity);
    this.tick = this.network.events.register(() => this.handleTick());
  }

  run(): Outcome {
    const { events } = this.network;
    if (this.split) this.world.links.forEach((_, proxy) => this.plan(proxy));
    else this.askEqualParts();
    if (this.segmentCount === 0) this.completionMs = 0;
    events.schedule(TICK_MS, this.tick, 0);
    while (events.step(Math.min(this.world.untilMs ?? 60_000, this.completionMs + LATE_MS)));
    const { segmentCount, received, completionMs, delivered } = this;
    return {
      completionMs,
      firstBytesMs: delivered[0]?.atMs ?? Infinity,
      normalizedGoodput: received > 0 ? segmentCount / received : 0,
      symbolCount: segmentCount,
      receivedPackets: received,
      sentPackets: this.connections.reduce((sum, { sender }) => sum + sender.sentCount, 0),
      packetBytes: SEGMENT_BYTES + SEGMENT_HEADER_BYTES + (this.world.overheadBytes ?? 0),
      delivered,
      bytesRight: true,
      eventHash: this.network.log.hash,
      events: this.network.log.events,
    };
  }

  onFree(proxy: number): void {
    this.pump(proxy);
  }

  onOutage(proxy: number, phase: "crash" | "cut" | "over"): void {
    if (phase !== "crash") return;
    for (const connection of this.connections) if (connection.proxy === proxy) connection.sender.stop();
  }

  atProxy(proxy: number, slot: number): void {
    const { pool, events } = this.network;
    const connection = this.connections[pool.tag[slot]!]!;
    const [kind, number] = [pool.mark[slot]! & UP_MASK, pool.mark[slot]! & ~UP_MASK];
    pool.giveBack(slot);
    if (kind === UP.ack) connection.sender.acknowledge(connection.arrivals, number, events.nowMs);
    else if (kind === UP.abort && number >= connection.serving) connection.sender.stop();
    else if (kind === UP.request && number > connection.serving) this.serve(connection, number);
    this.pump(proxy);
  }

  atClient(proxy: number, slot: number): void {
    const { pool, events } = this.network;
    const [index, sent] = [pool.tag[slot]!, pool.mark[slot]!];
    pool.giveBack(slot);
    const connection = this.connections[index]!;
    connection.arrivals.push(sent);
    this.received++;
    if (this.completionMs < Infinity) return;
    this.network.toProxy(proxy, undefined, ACK_BYTES, index, UP.ack | connection.arrivals.length);
    const segment = connection.sender.segmentOf(sent);
    this.noteArrival(proxy, this.pieces[connection.piece], segment, events.nowMs);
    this.noteSegment(segment);
    if (this.split && this.completionMs === Infinity) this.plan(proxy);
  }

  private newConnection(proxy: number): Connection {
    const { bytesPerSec, rttMs, loss = 0, burst, queueBytes = bytesPerSec / 10 } = this.world.links[proxy]!;
    const packetBytes = SEGMENT_BYTES + SEGMENT_HEADER_BYTES;
    const capacitySegments = ((bytesPerSec * rttMs) / 1000 + (this.split ? 0 : queueBytes / 2)) / packetBytes;
    const path = { response: this.cubic ? "cubic" : "ideal", rttMs, loss: meanLoss({ loss, ...(burst ? { burst } : {}) }), capacitySegments } as const;
    return { proxy, sender: new TcpSender(path), arrivals: [], piece: -1, serving: -1 };
  }

  private serve(connection: Connection, number: number): void {
    const { first, askedEnd } = this.pieces[number]!;
    connection.serving = number;
    connection.sender.start(first, askedEnd);
    const { origin } = this.world.links[connection.proxy]!;
    this.headMs[connection.proxy] = Math.min(this.headMs[connection.proxy]!, this.network.events.nowMs + (origin?.rttMs ?? 0));
  }

  /** Segments that the proxy has from its origin. */
  private available(proxy: number): number {
    const { origin } = this.world.links[proxy]!;
    if (!origin) return this.segmentCount;
    const bytes = ((this.network.events.nowMs - this.headMs[proxy]!) * origin.bytesPerSec) / 1000;
    return bytes >= this.world.chunkBytes ? this.segmentCount : Math.floor(bytes / SEGMENT_BYTES);
  }

  /** The oldest piece first; over the ideal TCP only while the serializer wants more. */
  private pump(proxy: number): void {
    const { events, down } = this.network;
    const limit = this.available(proxy);
    const own = this.connections.slice(proxy * CONNECTIONS, (proxy + 1) * CONNECTIONS);
    own.sort((a, b) => a.serving - b.serving);
    for (const connection of own) {
      connection.sender.handleTimeout(events.nowMs);
      while (this.cubic || down[proxy]!.queuedPackets < (this.world.links[proxy]!.backpressurePackets ?? 2)) {
        const sent = connection.sender.send(events.nowMs, limit);
        if (sent < 0) break;
        this.network.toClient(proxy, undefined, SEGMENT_BYTES + SEGMENT_HEADER_BYTES, this.connections.indexOf(connection), sent);
      }
    }
  }

  private handleTick(): void {
    const { events } = this.network;
    this.world.links.forEach((_, proxy) => {
      if (!this.network.dead[proxy]) this.pump(proxy);
      if (this.completionMs === Infinity && this.split) this.plan(proxy);
    });
    if (this.completionMs === Infinity) {
      this.repeatRequests();
      if (!this.split) this.moveStalled();
    }
    events.schedule(events.nowMs + TICK_MS, this.tick, 0);
  }

  /** A request that nothing answered is sent again, as TCP would. */
  private repeatRequests(): void {
    const { nowMs } = this.network.events;
    this.pieces.forEach((piece, number) => {
      if (!piece.open || piece.heardMs > piece.askedMs || nowMs < piece.repeatMs) return;
      piece.repeatAfterMs *= 2;
      piece.repeatMs = nowMs + piece.repeatAfterMs;
      this.network.toProxy(this.connections[piece.connection]!.proxy, undefined, REQUEST_BYTES, piece.connection, UP.request | number);
    });
  }

  private askEqualParts(): void {
    const count = this.world.links.length;
    for (let proxy = 0; proxy < count; proxy++) {
      const [first, end] = [proxy, proxy + 1].map((part) => Math.round((part * this.segmentCount) / count)) as [number, number];
      if (end > first) this.ask(proxy * CONNECTIONS, first, end);
    }
    this.unassigned = this.segmentCount;
  }

  private moveStalled(): void {
    const { nowMs } = this.network.events;
    for (const piece of [...this.pieces]) {
      if (!piece.open || nowMs - Math.max(piece.heardMs, piece.askedMs) < STALL_MS) continue;
      const proxy = (this.connections[piece.connection]!.proxy + 1) % this.world.links.length;
      const free = this.freeConnection(proxy);
      if (free < 0) continue;
      let first = piece.first;
      while (first < piece.end && this.have[first]) first++;
      this.close(piece);
      this.ask(free, first, piece.end);
    }
  }

  private ask(index: number, first: number, end: number): void {
    const { nowMs } = this.network.events;
    const number = this.pieces.length;
    const proxy = this.connections[index]!.proxy;
    let missing = 0;
    for (let segment = first; segment < end; segment++) {
      this.owner[segment] = number;
      if (!this.have[segment]) missing++;
    }
    const repeatAfterMs = Math.max(REPEAT_MS_MIN, this.views[proxy]!.rttMs * 2);
    this.pieces.push({ connection: index, first, askedEnd: end, end, missing, askedMs: nowMs, repeatMs: nowMs + repeatAfterMs, repeatAfterMs, heardMs: nowMs, open: true });
    this.connections[index]!.piece = number;
    this.network.toProxy(proxy, undefined, REQUEST_BYTES, index, UP.request | number);
  }

  /** The client wants no more of it; where it asked for more than it wants, it says so. */
  private close(piece: Piece): void {
    piece.open = false;
    const connection = this.connections[piece.connection]!;
    const number = connection.piece;
    connection.piece = -1;
    if (piece.end < piece.askedEnd || piece.missing > 0) this.network.toProxy(connection.proxy, undefined, ACK_BYTES, piece.connection, UP.abort | number);
  }

  private noteArrival(proxy: number, piece: Piece | undefined, segment: number, nowMs: number): void {
    const view = this.views[proxy]!;
    view.heardMs = nowMs;
    view.quiet = false;
    if (view.arrivalMs.push(nowMs) > RATE_SAMPLES) view.arrivalMs.shift();
    if (!piece || segment < piece.first || segment >= piece.askedEnd) return;
    if (piece.heardMs === piece.askedMs) view.rttMs = Math.min(view.rttMs, nowMs - piece.askedMs);
    piece.heardMs = nowMs;
  }

  private noteSegment(segment: number): void {
    if (this.have[segment]) return;
    this.have[segment] = 1;
    this.haveCount++;
    const piece = this.pieces[this.owner[segment]!];
    if (piece && --piece.missing === 0 && piece.open) this.close(piece);
    if (segment === this.prefix) this.deliver();
    if (this.haveCount === this.segmentCount) this.complete();
  }

  private deliver(): void {
    while (this.prefix < this.segmentCount && this.have[this.prefix]) this.prefix++;
    const untilByte = Math.min(this.prefix * SEGMENT_BYTES, this.world.chunkBytes);
    this.delivered.push({ untilByte, atMs: this.network.events.nowMs });
  }

  private complete(): void {
    this.completionMs = this.network.events.nowMs;
    for (const piece of this.pieces) if (piece.open) this.close(piece);
    this.connections.forEach((connection, index) => {
      if (connection.serving >= 0) this.network.toProxy(connection.proxy, undefined, ACK_BYTES, index, UP.abort | connection.serving);
    });
  }

  private freeConnection(proxy: number): number {
    for (let i = 0; i < CONNECTIONS; i++) {
      const index = proxy * CONNECTIONS + i;
      if (this.connections[index]!.piece < 0) return index;
    }
    return -1;
  }

  /** split-http: asks this proxy for more, a round trip before it would have nothing to send. */
  private plan(proxy: number): void {
    const free = this.freeConnection(proxy);
    if (free < 0 || this.isQuiet(proxy)) return;
    const rates = this.rates();
    const rate = rates[proxy]!;
    const missing = this.missingOf(proxy);
    const aheadMs = this.views[proxy]!.rttMs + TICK_MS;
    if (missing > 0 && (this.views[proxy]!.arrivalMs.length < RATE_SAMPLES_MIN || missing / rate > aheadMs)) return;
    const left = this.segmentCount - this.unassigned;
    if (left === 0) {
      if (missing > 0 || !this.fillHole(proxy, free)) this.takeOver(proxy, free, rates);
      return;
    }
    const size = Math.min(left, this.pieceSize(proxy, rates, left, Math.max(PIECE_SEGMENTS_MIN, (rate * aheadMs) / (missing === 0 ? 1 : CONNECTIONS - 1))));
    if (size < 1) return;
    const first = this.unassigned;
    this.unassigned += size;
    this.ask(free, first, this.unassigned);
  }

  /** Half of what this proxy may still send so that all end together; the whole of it once that is no more than `least`. */
  private pieceSize(proxy: number, rates: readonly number[], left: number, least: number): number {
    const missing = this.views.map((_, i) => this.missingOf(i));
    const endMs = (left + missing.reduce((a, b) => a + b, 0)) / rates.reduce((a, b) => a + b, 0);
    const fair = endMs * rates[proxy]! - missing[proxy]!;
    return Math.ceil(fair <= least ? Math.max(fair, missing[proxy] === 0 ? 1 : 0) : Math.max(least, fair / 2));
  }

  /** End game: a segment that a proxy fell silent over is asked of one that is idle; sooner than TCP would repeat it. */
  private fillHole(proxy: number, free: number): boolean {
    const { nowMs } = this.network.events;
    const piece = this.pieces.find(({ open, missing, connection }) => {
      if (!open || missing === 0) return false;
      const other = this.connections[connection]!.proxy;
      const { heardMs, rttMs } = this.views[other]!;
      return other !== proxy && heardMs > 0 && nowMs - heardMs > rttMs / 2 + TICK_MS;
    });
    if (!piece) return false;
    let first = piece.first;
    while (!this.isOpen(piece, first)) first++;
    let end = first + 1;
    while (end < piece.end && this.isOpen(piece, end)) end++;
    piece.missing -= end - first;
    this.ask(free, first, end);
    return true;
  }

  /** Splits the last piece of the proxy that would end last so that both halves end together. */
  private takeOver(proxy: number, free: number, rates: readonly number[]): void {
    const ends = this.views.map((_, i) => (i === proxy ? 0 : this.missingOf(i) / rates[i]!));
    const lastMs = Math.max(...ends);
    const other = ends.indexOf(lastMs);
    const piece = this.pieces.findLast(({ open, missing, connection }) => open && missing > 0 && this.connections[connection]!.proxy === other);
    if (!piece || other === proxy) return;
    const [rate, theirs] = [rates[proxy]!, rates[other]!];
    const readyMs = Math.max(this.views[proxy]!.rttMs, this.missingOf(proxy) / rate);
    const underway = this.isQuiet(other) ? 0 : theirs * this.views[other]!.rttMs;
    const fair = this.isQuiet(other) ? piece.missing : (lastMs - readyMs) / (1 / rate + 1 / theirs);
    const count = Math.floor(Math.min(fair, piece.missing, this.missingOf(other) - underway));
    if (count < 1 || lastMs - (readyMs + count / rate) < Math.max(STEAL_GAIN_MS, this.views[proxy]!.rttMs / 5)) return;
    const end = piece.end;
    let first = end;
    for (let wanted = count; first > piece.first && wanted > 0; ) if (this.isOpen(piece, --first)) wanted--;
    piece.missing -= count;
    piece.end = first;
    this.ask(free, first, end);
    if (piece.missing === 0) this.close(piece);
  }

  /** The segment is missing, and this piece is to bring it. */
  private isOpen(piece: Piece, segment: number): boolean {
    return !this.have[segment] && this.pieces[this.owner[segment]!] === piece;
  }

  /** Segments a ms of each proxy, measured; before anything came, the mean of the others; next to nothing from quiet ones. */
  private rates(): number[] {
    const measured = this.views.map(({ arrivalMs }) => {
      if (arrivalMs.length < RATE_SAMPLES_MIN) return 0;
      return (arrivalMs.length - 1) / Math.max(0.01, arrivalMs.at(-1)! - arrivalMs[0]!);
    });
    const known = measured.filter((rate) => rate > 0);
    const mean = known.length > 0 ? known.reduce((a, b) => a + b, 0) / known.length : 1;
    return measured.map((rate, proxy) => (this.isQuiet(proxy) ? 1e-6 : rate || mean));
  }

  /** It owes something and has not been heard for some round trips. */
  private isQuiet(proxy: number): boolean {
    const { rttMs, heardMs } = this.views[proxy]!;
    const { nowMs } = this.network.events;
    for (let i = 0; i < CONNECTIONS; i++) {
      const piece = this.pieces[this.connections[proxy * CONNECTIONS + i]!.piece];
      if (piece && nowMs - Math.max(heardMs, piece.askedMs) > QUIET_ROUND_TRIPS * rttMs + QUIET_MS) this.views[proxy]!.quiet = true;
    }
    return this.views[proxy]!.quiet;
  }

  private missingOf(proxy: number): number {
    let missing = 0;
    for (let i = 0; i < CONNECTIONS; i++) missing += this.pieces[this.connections[proxy * CONNECTIONS + i]!.piece]?.missing ?? 0;
    return missing;
  }
}
