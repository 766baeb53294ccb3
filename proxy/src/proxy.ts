/**
 * Proxy: one running proxy with all its parts: egress, chunks, shaper, HTTP endpoint, sessions over WebRTC,
 * WebTransport and UDP, and the link to Origo. main.ts reads the environment and ends the process.
 */
import type { Rejection } from "@tributary/contract";
import { randomBytes, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { isIP, type AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { oneByOne } from "@tributary/contract/one-by-one";
import type { ProxyControl, ProxyHello } from "@tributary/contract/schema";
import { xorshift128, type Codec } from "@tributary/protocol";
import { loadNativeTransport, type NativeTransport } from "@tributary/native-transport";
import type { Channel, OpenSession } from "./channel";
import { ChunkStore } from "./chunks";
import { Clients, type Client } from "./clients";
import { ProxyCoder } from "./coder/coder";
import type { ProxyConfig } from "./config";
import { shareConnections } from "./connections";
import { limitsOf, narrowed, type Limits } from "./control";
import { newCounters } from "./counters";
import { canonicalAddress } from "./egress/classify";
import { Egress } from "./egress/fetch";
import { LongBodies } from "./egress/long-bodies";
import type { EgressPolicy } from "./egress/policy";
import { makeApp } from "./http";
import { grantFault } from "./library/grants";
import { Library } from "./library/library";
import { ObjectOrigin } from "./library/object-origin";
import type { ObjectStore } from "./library/objects-http";
import { Uploads } from "./library/uploads";
import type { Log } from "./log";
import { openIdentity } from "./identity";
import { OrigoKeys } from "./origo-keys";
import { OrigoLink } from "./origo-link";
import { findPublished, type PublishedPorts } from "./published";
import { pickUdpPort, startRtc } from "./rtc";
import { OfferError, type Rtc } from "./rtc-server";
import { Seats, type Seat } from "./seats";
import { Session } from "./session";
import { Shaper } from "./shaper";
import { Peers, SharedChunks, withReads } from "./sharing";
import { TokenGate } from "./token";
import { UdpEdge } from "./udp";
import { WebTransportEdge } from "./webtransport";

export const PROXY_VERSION = "0.1.0";

const DRAIN_POLL_MS = 25;

/** A slow head ends its connection. Bodies: http.ts. */
const HTTP_TIMES = { requestTimeout: 0, headersTimeout: 10_000, connectionsCheckingInterval: 2000 };

/** The transports take this many sessions more than there are seats, so that a newcomer can get another's seat. */
const SESSIONS_SPARE = 64;

/** The place of one session, from the offer on if there is one. */
class SessionSeat implements Seat {
  session: Session | undefined;
  readonly #sinceMs = performance.now();
  readonly #giveUp: () => void;

  constructor(
    readonly client: string,
    giveUp: () => void,
  ) {
    this.#giveUp = giveUp;
  }

  idleSinceMs(): number | undefined {
    return this.session ? this.session.idleSinceMs : this.#sinceMs;
  }

  end(): void {
    if (this.session) this.session.close("another client needs the room");
    else this.#giveUp();
  }
}

export class Proxy {
  readonly #startedMs = performance.now();
  readonly #startedAtMs = Date.now();
  /** Origo's clock minus the clock of this process, which does not jump. */
  #clockAheadMs = this.#startedAtMs - this.#startedMs;
  readonly #counters = newCounters();
  readonly #sessions = new Map<string, Session>();
  /** The open sessions, and the clients that were answered and have not come yet. */
  readonly #seats = new Seats<SessionSeat>(() => this.#limits.sessionsMax);
  readonly #clients = new Clients(() => this.#limits);
  readonly #egress: Egress;
  readonly #chunks: ChunkStore;
  readonly #shared: SharedChunks;
  readonly #shaper: Shaper;
  readonly #coder: ProxyCoder;
  readonly #nonce = randomUUID();
  readonly #http: Server;
  #rtc: Rtc | undefined;
  #webTransport: WebTransportEdge | undefined;
  #udp: UdpEdge | undefined;
  #link: OrigoLink | undefined;
  #deliveries = 0;
  #limits: Limits;
  readonly #origoKeys = new OrigoKeys({
    nowMs: () => this.#origosClock(),
    log: (event, fields) => this.#log(event, fields),
  });
  readonly #tokens = new TokenGate({ required: () => this.#limits.requireToken, keys: this.#origoKeys });
  readonly #objects: ObjectStore | undefined;
  #lastReport = { atMs: performance.now(), sentBytes: 0, eventLoop: performance.eventLoopUtilization() };
  #closing = false;
  #status: "starting" | "ok" | "draining" = "starting";
  /** The address that Origo gets. Known when `start` has resolved. */
  url = "";
  /** The port of WebRTC. */
  udpPort = 0;
  webTransportAddress: ProxyHello["webTransport"];
  udpAddress: ProxyHello["udp"];

  readonly #config: ProxyConfig;
  readonly #codec: Codec;
  readonly #log: Log;

  constructor(config: ProxyConfig, codec: Codec, log: Log) {
    this.#config = config;
    this.#codec = codec;
    this.#log = log;

    this.#egress = new Egress({ policy: policyOf(config) });
    this.#limits = limitsOf(config);
    this.#objects = config.LIBRARY_DIR === undefined ? undefined : this.#makeObjects(config.LIBRARY_DIR);
    const origins = new ObjectOrigin(new LongBodies(this.#egress), this.#objects?.library);
    this.#chunks = new ChunkStore({ egress: origins, log, limits: this.#limits });
    const peers = new Peers((ids) => this.#link?.peers(ids));
    this.#shared = new SharedChunks({ origins, peers, whole: this.#chunks, limits: () => this.#limits, log });
    this.#coder = new ProxyCoder({
      codec,
      setting: config.TRIBUTARY_CODER,
      device: config.TRIBUTARY_GPU,
      limits: this.#limits,
      rng: newRng(),
      log,
    });
    this.#shaper = new Shaper(config.RATE_BYTES_PER_SEC);
    const app = makeApp({
      health: () => ({
        status: this.#status,
        name: config.PROXY_NAME,
        engine: codec.engine,
        sessions: this.#sessions.size,
      }),
      metrics: withReads(this.#coder.metrics, () => this.#report()),
      nonce: this.#nonce,
      chunks: this.#chunks,
      shared: this.#shared,
      objects: this.#objects,
      shaper: this.#shaper,
      log,
      admit: (token) => this.#tokens.admit(token),
      openSession: (offer, client) => this.#openSession(offer, client),
      clientAt: (address) => this.#clients.of(address),
      trustedHops: config.TRUSTED_HOPS,
      pageOrigins: config.ALLOW_ORIGINS,
      onDelivery: (change, failure) => this.#countDelivery(change, failure),
    });
    this.#http = createServer(HTTP_TIMES, oneByOne<IncomingMessage, ServerResponse>(app));
    shareConnections(this.#http, () => this.#limits.httpConnectionsMax);
  }

  #makeObjects(dir: string): ObjectStore {
    const log = this.#log;
    const library = new Library({ dir, bytesMax: () => this.#limits.libraryBytes, log });
    const uploads = new Uploads({ library, limits: () => this.#limits, log });
    return { library, uploads, grantFault: (text, id) => grantFault(this.#origoKeys, text, id) };
  }

  /** Rejects when a port is taken or the published ports are not found. The process should then end. */
  async start(): Promise<void> {
    const config = this.#config;
    await this.#objects?.library.open();
    await this.#objects?.uploads.open();
    await listen(this.#http, config.PORT, config.HOST);
    void this.#coder.start().catch((error: Error) => this.#log("coderFailed", { reason: error.message }));
    const { port } = this.#http.address() as AddressInfo;
    this.udpPort = await pickUdpPort(config.UDP_PORT, config.HOST);
    const native = this.#findNative();
    const webTransportPort =
      native && config.WEBTRANSPORT_PORT !== "off"
        ? await pickUdpPort(Number(config.WEBTRANSPORT_PORT), config.HOST)
        : undefined;
    const udpPorts = [this.udpPort, ...(webTransportPort === undefined ? [] : [webTransportPort])];
    const found = config.PROBE_PUBLISHED
      ? await findPublished({ range: config.PROBE_PUBLISHED, nonce: this.#nonce, host: config.HOST, udpPorts })
      : undefined;
    const host = config.PUBLIC_ADDRESS ?? found?.address ?? reachable(config.HOST);
    this.url = config.PUBLIC_URL ?? `http://${urlHost(host)}:${found?.tcpPort ?? port}`;
    this.#startRtc(native, found);
    const publicPort = config.PUBLIC_WEBTRANSPORT_PORT ?? found?.udpPorts[1];
    if (native && webTransportPort !== undefined) {
      if (found && publicPort === undefined)
        this.#log("noWebTransport", { reason: `UDP port ${webTransportPort} is not published` });
      else this.#startWebTransport(native, webTransportPort, host, publicPort);
    }
    if (config.UDP_PLAIN_PORT !== undefined) await this.#startUdp(config.UDP_PLAIN_PORT, host);
    this.#status = "ok";
    if (config.ORIGO_URL !== undefined)
      this.#link = this.#register(config.ORIGO_URL, config.PUBLIC_UDP_PORT ?? found?.udpPorts[0] ?? this.udpPort);
  }

  #startRtc(native: NativeTransport | undefined, found: PublishedPorts | undefined): void {
    const config = this.#config;
    const publicAddress = config.PUBLIC_ADDRESS ?? found?.address;
    const publicUdpPort = config.PUBLIC_UDP_PORT ?? found?.udpPorts[0];
    const edge = { host: config.HOST, udpPort: this.udpPort, publicAddress, publicUdpPort };
    this.#rtc = startRtc(edge, native, (message) => this.#log("rtcError", { message }));
  }

  /** Without the native part the proxy offers only WebRTC, over a library, and logs this. */
  #findNative(): NativeTransport | undefined {
    const loaded = loadNativeTransport();
    if (!loaded.native) this.#log("noWebTransport", { reason: loaded.reason });
    return loaded.native;
  }

  #startWebTransport(native: NativeTransport, port: number, host: string, publicPort: number | undefined): void {
    const config = this.#config;
    const edge = new WebTransportEdge(native, {
      host: config.HOST,
      port,
      name: host,
      sessionsMax: config.MAX_SESSIONS + SESSIONS_SPARE,
      onSession: this.#onSession,
      onRotated: () => {
        this.webTransportAddress = edge.address(`${urlHost(host)}:${publicPort ?? edge.port}`);
        this.#link?.renew();
      },
    });
    this.#webTransport = edge;
    this.webTransportAddress = edge.address(`${urlHost(host)}:${publicPort ?? edge.port}`);
  }

  async #startUdp(port: number, host: string): Promise<void> {
    this.#udp = await UdpEdge.listen({
      host: this.#config.HOST,
      port,
      sessionsMax: this.#config.MAX_SESSIONS + SESSIONS_SPARE,
      onSession: this.#onSession,
    });
    this.udpAddress = { host, port: this.#udp.port };
  }

  /** Takes no new requests, lets running ones finish for up to `drainMs`, and then ends them. */
  async close(drainMs: number): Promise<void> {
    this.#closing = true;
    this.#status = "draining";
    this.#link?.close();
    this.#webTransport?.drain();
    this.#udp?.drain();
    for (const session of this.#sessions.values()) session.drain();
    const endMs = performance.now() + drainMs;
    while (this.#activeRequests() > 0 && performance.now() < endMs)
      await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS));
    for (const session of [...this.#sessions.values()]) session.close("the proxy stops");
    this.#rtc?.close();
    this.#webTransport?.close();
    this.#udp?.close();
    this.#chunks.close();
    this.#shared.close();
    this.#objects?.uploads.close();
    this.#objects?.library.close();
    await this.#coder.close();
    this.#egress.close();
    this.#http.closeAllConnections();
    await new Promise<void>((resolve) => this.#http.close(() => resolve()));
  }

  /**
   * Milliseconds since 1970 by Origo's clock. Tokens expire by the clock that signed them. This machine's clock may be
   * wrong.
   */
  #origosClock(): number {
    return this.#clockAheadMs + performance.now();
  }

  #activeRequests(): number {
    let count = this.#deliveries;
    for (const session of this.#sessions.values()) count += session.activeRequests;
    return count;
  }

  #countDelivery(change: 1 | -1, failure: Rejection | undefined): void {
    this.#deliveries += change;
    if (failure) this.#counters.errors.add(failure.kind);
  }

  /** Makes a WebRTC session of an offer. */
  async #openSession(offer: string, client: Client): Promise<{ sessionId: string; sdp: string } | Rejection> {
    const refused = client.noteOffer();
    if (refused) return refused;
    const sessionId = randomUUID();
    const seat = new SessionSeat(client.name, () => this.#rtc!.giveUp(sessionId));
    if (!this.#seats.take(seat)) return this.#full();
    const leave = (): void => this.#seats.leave(seat);
    try {
      const open: OpenSession = (channel) => (seat.session = this.#makeSession(sessionId, channel, client, leave));
      return { sessionId, sdp: await this.#rtc!.accept(sessionId, offer, open, leave) };
    } catch (error) {
      leave();
      if (!(error instanceof OfferError)) throw error;
      return { kind: "badOffer", message: error.message };
    }
  }

  #full(): Rejection {
    const limit = this.#limits.sessionsMax;
    const got = this.#seats.taken + 1;
    return {
      kind: "tooManySessions",
      message: `This proxy has no free session: got ${got}, limit ${limit}.`,
      got,
      limit,
    };
  }

  /** Opens a session for a transport that needs no signalling. */
  readonly #onSession: OpenSession = (channel, address) => {
    const client = this.#clients.of(address);
    const seat = new SessionSeat(client.name, () => undefined);
    const session = this.#makeSession(randomUUID(), channel, client, () => this.#seats.leave(seat));
    seat.session = session;
    if (!this.#seats.take(seat)) setImmediate(() => session.close(`tooManySessions: ${this.#full().message}`));
    return session;
  };

  #makeSession(id: string, channel: Channel, client: Client, onClosed: () => void): Session {
    const codec = this.#codec;
    const chunks = this.#chunks;
    const coder = this.#coder;
    const shaper = this.#shaper;
    const counters = this.#counters;
    const log = this.#log;
    const rng = newRng();
    const session = new Session({
      id,
      channel,
      codec,
      coder,
      rng,
      chunks,
      shared: this.#shared,
      shaper,
      counters,
      log,
      client,
      onClosed: () => {
        this.#sessions.delete(id);
        onClosed();
      },
      tokenSessionsMax: () => this.#limits.tokenSessionsMax,
      idleMs: this.#limits.sessionIdleMs,
      admit: (token) => this.#tokens.admit(token),
    });
    if (this.#status === "draining") session.drain();
    this.#sessions.set(id, session);
    log("sessionOpened", { session: id, transport: channel.transport, sessions: this.#sessions.size });
    return session;
  }

  #register(origoUrl: string, udpPort: number): OrigoLink {
    const config = this.#config;
    const codec = this.#codec;
    const log = this.#log;
    const hello = (): ProxyHello => ({
      name: config.PROXY_NAME,
      url: this.url,
      version: PROXY_VERSION,
      engine: codec.engine,
      udpPort,
      ...(this.webTransportAddress ? { webTransport: this.webTransportAddress } : {}),
      ...(this.udpAddress ? { udp: this.udpAddress } : {}),
      rateBytesPerSec: config.RATE_BYTES_PER_SEC,
      startedAtMs: this.#startedAtMs,
      capacity: config.MAX_SESSIONS,
      ...(config.PLACE ? { place: config.PLACE } : {}),
      ...(config.OPERATOR ? { operator: config.OPERATOR } : {}),
    });
    const onControl = (control: ProxyControl): void => this.#handleControl(control);
    return new OrigoLink({
      origoUrl,
      prove: openIdentity(config.DATA_DIR!),
      code: () => codeOf(config),
      hello,
      status: () => this.#report(),
      onControl,
      library: this.#objects?.library,
      log,
      onRegistered: (id) => this.#origoKeys.setId(id),
    });
  }

  /** Applies Origo's settings where they are lower than the limits that this proxy was started with. */
  #handleControl({ draining, version, values, keys, nowMs }: ProxyControl): void {
    if (this.#closing) return;
    this.#clockAheadMs = nowMs - performance.now();
    this.#origoKeys.setKeys(keys);
    this.#limits = narrowed(limitsOf(this.#config), values);
    this.#shaper.setRate(this.#limits.rateBytesPerSec);
    this.#chunks.setLimits(this.#limits);
    this.#coder.setLimits(this.#limits);
    this.#egress.setTimes({
      headMs: this.#limits.originHeadMs,
      stallMs: this.#limits.originStallMs,
      totalMs: this.#limits.originTotalMs,
    });
    this.#link?.setHeartbeat(this.#limits.heartbeatMs);
    this.#status = draining ? "draining" : "ok";
    for (const session of this.#sessions.values()) session.drain(draining);
    this.#log("controlled", { draining, version, ...this.#limits });
  }

  /** The largest share in use since the last report: of the rate, of the sessions, or of this thread's time. */
  #load(): number {
    const before = this.#lastReport;
    const atMs = performance.now();
    const { sentBytes } = this.#shaper;
    this.#lastReport = { atMs, sentBytes, eventLoop: performance.eventLoopUtilization() };
    const { rateBytesPerSec, sessionsMax } = this.#limits;
    const rate = ((sentBytes - before.sentBytes) * 1000) / Math.max(1, atMs - before.atMs);
    const busy = performance.eventLoopUtilization(this.#lastReport.eventLoop, before.eventLoop).utilization;
    return Math.max(
      busy,
      rateBytesPerSec > 0 ? rate / rateBytesPerSec : 0,
      sessionsMax > 0 ? this.#sessions.size / sessionsMax : 1,
    );
  }

  #report() {
    const { originBytes, cacheHits, cacheBytes } = this.#chunks.stats;
    const { originBytes: partBytes, sharing } = this.#shared.stats;
    return {
      sessions: this.#sessions.size,
      activeRequests: this.#activeRequests(),
      sentBytes: this.#shaper.sentBytes,
      sentPackets: this.#counters.sentPackets,
      originBytes: originBytes + partBytes,
      ...(sharing && { sharing }),
      cacheBytes,
      cacheHits,
      errors: this.#counters.errors.total,
      latestErrors: this.#counters.errors.latest(),
      rejectedMessages: this.#counters.rejectedFrames + this.#counters.unreadMessages,
      uptimeMs: performance.now() - this.#startedMs,
      load: this.#load(),
      coder: this.#coder.report(),
      ...(this.#objects ? { library: this.#objects.library.status() } : {}),
    };
  }
}

const newRng = () => xorshift128(randomBytes(4).readUInt32LE());

function policyOf(config: ProxyConfig): EgressPolicy {
  const addresses = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .map(({ address }) => address);
  if (config.PUBLIC_ADDRESS !== undefined) addresses.push(config.PUBLIC_ADDRESS);
  const ownAddresses = new Set(addresses.map((address) => canonicalAddress(address) ?? address));
  return { allow: config.ALLOW_HOSTS, allowPrivate: config.ALLOW_PRIVATE_HOSTS, ownAddresses };
}

/** An address under which this machine reaches a server that may listen on all addresses. */
function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  return host === "::" ? "::1" : host;
}

function urlHost(address: string): string {
  return isIP(address) === 6 ? `[${address}]` : address;
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

/** The code of the file, or the one of the environment. A file that cannot be read now may be there later. */
function codeOf({ ORIGO_CODE, ORIGO_CODE_FILE }: ProxyConfig): string | undefined {
  if (ORIGO_CODE_FILE === undefined) return ORIGO_CODE;
  try {
    return readFileSync(ORIGO_CODE_FILE, "utf8").trim() || ORIGO_CODE;
  } catch {
    return ORIGO_CODE;
  }
}
