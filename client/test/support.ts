/**
 * Stand-ins for the client's tests: an origin with selectable faults, a proxy that uses the real Sender, and an Origo
 * that lists proxies and collects reports. A platform joins them in one process over links that lose packets. The
 * engine runs without its worker.
 */
import { givenOf, GrowingSource, liedFrom, trickle, type Given } from "./given";
import { createHash, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
  parseFrame,
  encodeFrame,
  LIMITS,
  Sender,
  xorshift128,
  type Codec,
  type RequestFrame,
} from "@tributary/protocol";
import { Engine } from "../src/engine";
import type { FromEngine, ToEngine } from "../src/messages";
import type { ChannelOptions, Platform } from "../src/platform";

export function bytesOf(count: number, seed = 1): Uint8Array {
  const rng = xorshift128(seed);
  const words = new Uint32Array(Math.ceil(count / 4));
  for (let i = 0; i < words.length; i++) words[i] = rng();
  return new Uint8Array(words.buffer, 0, count);
}

export function sha256Of(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

export async function readAll(stream: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(pieces);
    pieces.push(value);
  }
}

abstract class HttpServer {
  readonly #server: Server;
  readonly requests: { method: string; path: string; range: string | undefined }[] = [];
  url = "";

  constructor() {
    this.#server = createServer((request, response) => {
      this.requests.push({ method: request.method!, path: request.url!, range: request.headers.range });
      response.on("error", () => undefined);
      void this.handle(request, response);
    });
  }

  protected abstract handle(request: IncomingMessage, response: ServerResponse): Promise<void>;

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** Serves `body` at any path. Words in the path select a fault: no-range, no-length, short, stall, loop, status-404. */
export class Origin extends HttpServer {
  etag: string | undefined = '"one"';
  /** What it gives at other paths. */
  readonly pages = new Map<string, string>();

  constructor(public body: Uint8Array) {
    super();
  }

  protected async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url!;
    const page = this.pages.get(path);
    if (page !== undefined) return void response.end(page);
    const status = /status-(\d+)/.exec(path);
    if (status) {
      const text = Buffer.from(`status ${status[1]}`);
      response.writeHead(Number(status[1]), { "content-type": "text/plain", "content-length": text.length }).end(text);
      return;
    }
    if (path.includes("loop")) {
      response.writeHead(302, { location: path }).end();
      return;
    }
    const { start, end, partial } = this.#partOf(request);
    if (start > end && partial) {
      response.writeHead(416, { "content-range": `bytes */${this.body.length}` }).end();
      return;
    }
    const part = this.body.subarray(start, end + 1);
    const headers: Record<string, string | number> = { "content-type": "video/mp4" };
    if (this.etag) headers.etag = this.etag;
    if (partial) headers["content-range"] = `bytes ${start}-${end}/${this.body.length}`;
    if (!path.includes("no-length")) headers["content-length"] = part.length;
    response.writeHead(partial ? 206 : 200, headers);
    if (path.includes("stall")) response.write(part.subarray(0, Math.floor(part.length / 2)));
    else if (path.includes("short"))
      response.write(part.subarray(0, Math.floor(part.length / 2)), () => response.destroy());
    else response.end(part);
  }

  #partOf(request: IncomingMessage): { start: number; end: number; partial: boolean } {
    const match = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "");
    const last = this.body.length - 1;
    if (!match || request.url!.includes("no-range")) return { start: 0, end: last, partial: false };
    return { start: Number(match[1]), end: Math.min(match[2] ? Number(match[2]) : last, last), partial: true };
  }
}

export class Origo extends HttpServer {
  proxies: { id: string; name: string; url: string }[] = [];
  readonly records: Record<string, unknown>[] = [];
  readonly errors: { kind: string; message: string }[] = [];
  status = 202;

  protected async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === "GET") {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ proxies: this.proxies }));
      return;
    }
    const text = (await bodyOf(request)).toString();
    const { records, errors } = JSON.parse(text) as { records?: []; errors?: [] };
    if (this.status === 202) {
      this.records.push(...(records ?? []));
      this.errors.push(...(errors ?? []));
    }
    response.writeHead(this.status).end("{}");
  }
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

interface Attached {
  toClient(bytes: Uint8Array): void;
  closed(reason: string): void;
}

export interface ProxyMoods {
  /** The share of packets that is lost, in each direction. */
  loss?: number;
  seed?: number;
  /** HTTP answers break off after this many bytes in all, and a session after so many. */
  dieAfterBytes?: number;
  /** Accepts sessions and then stays silent. */
  mute?: boolean;
  /** Accepts sessions, but the first one stays silent. */
  muteFirst?: boolean;
  /** A captive portal answers HTTP requests with this status and an endless page. */
  portalStatus?: number;
  /** An HTTP answer stalls after this many bytes. */
  stallAfterBytes?: number;
  /** Milliseconds between packets. At 0 packets come in bursts. */
  packetEveryMs?: number;
  /** A session opens after this long. */
  openAfterMs?: number;
  /** Refuses this many sessions before it accepts one. */
  refuseSessions?: number;
  /** Reports this etag in place of the origin's. */
  etag?: string;
  /** Gives a body of this length. */
  totalBytes?: number;
  /** Gives other bytes from this one on. */
  liesFromByte?: number;
  /** The longest body that it accepts as one chunk. */
  chunkBytesMax?: number;
  /** Rejects every request without a range as too large, and reports this length. */
  tooLargeBytes?: number;
}

/** The endpoints of a proxy: /v1/fetch and /v1/sessions (docs/spec/protocol.md). */
export class StandInProxy extends HttpServer {
  /** What HTTP answers have given, if they break off. */
  #brokenBytes = 0;
  readonly id = randomUUID();
  sessionsMade = 0;
  readonly open = new Map<string, StandInSession>();
  readonly outcomes: (string | undefined)[] = [];

  constructor(
    readonly name: string,
    readonly codec: Codec | undefined,
    readonly moods: ProxyMoods = {},
  ) {
    super();
  }

  get info(): { id: string; name: string; url: string } {
    return { id: this.id, name: this.name, url: this.url };
  }

  attach(sessionId: string, client: Attached): StandInSession {
    const session = new StandInSession(this, client);
    this.open.set(sessionId, session);
    return session;
  }

  /** Breaks all sessions, as the death of the process does. */
  kill(): void {
    for (const session of this.open.values()) session.die("killed");
    this.open.clear();
  }

  override async stop(): Promise<void> {
    for (const session of this.open.values()) session.close();
    await super.stop();
  }

  protected async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url === "/v1/sessions") {
      await bodyOf(request);
      if (this.moods.refuseSessions && this.moods.refuseSessions-- > 0) {
        response.destroy();
        return;
      }
      if (this.moods.openAfterMs) await new Promise((resolve) => setTimeout(resolve, this.moods.openAfterMs));
      this.sessionsMade++;
      response.writeHead(201, { "content-type": "application/json" });
      response.end(JSON.stringify({ sessionId: "s", sdp: `${this.id}/${this.sessionsMade}` }));
      return;
    }
    const { pathname, searchParams } = new URL(request.url!, this.url);
    const target = searchParams.get("url")!;
    const part = searchParams.get("part");
    const gives = pathname === "/v1/digests" ? "digests" : part ? part.split("-").map(Number) : "body";
    await this.#passOn(target, request.headers.range, gives, response);
  }

  async #passOn(target: string, range: string | undefined, gives: Given, response: ServerResponse): Promise<void> {
    if (this.moods.mute) return;
    if (this.moods.portalStatus !== undefined) {
      response
        .writeHead(this.moods.portalStatus, { "content-type": "text/html" })
        .write("<p>Log in first.".repeat(1000));
      return;
    }
    const answer = await fetch(target, { headers: range ? { range } : {} }).catch(() => undefined);
    const whole = await answer?.arrayBuffer().then(Buffer.from, () => undefined);
    const refuse = (error: object): void => void response.writeHead(502).end(JSON.stringify({ error }));
    if (!answer || !whole) return refuse({ kind: "originFailed", message: "no origin" });
    const { chunkBytesMax: limit = LIMITS.chunkBytesMax } = this.moods;
    if (!answer.headers.has("content-length")) return refuse({ kind: "lengthUnknown", message: "no length" });
    if (whole.length > limit) return refuse({ kind: "chunkTooLarge", message: "too long", got: whole.length, limit });
    const headers = Object.fromEntries(answer.headers);
    delete headers["transfer-encoding"];
    delete headers["connection"];
    delete headers["keep-alive"];
    if (this.moods.etag) headers.etag = this.moods.etag;
    const { totalBytes = whole.length, liesFromByte: from } = this.moods;
    const full = Buffer.concat([whole, Buffer.alloc(Math.max(0, totalBytes - whole.length))]).subarray(0, totalBytes);
    const body = givenOf(liedFrom(full, from), gives);
    headers["content-length"] = String(body.length);
    if (gives !== "body") headers["x-origin-content-length"] = String(totalBytes);
    response.writeHead(answer.status, { ...headers, "server-timing": "origin;dur=1.5" });
    const { dieAfterBytes, stallAfterBytes, packetEveryMs } = gives === "digests" ? {} : this.moods;
    const leftBytes = (dieAfterBytes ?? Infinity) - this.#brokenBytes;
    if (dieAfterBytes !== undefined) this.#brokenBytes += Math.min(leftBytes, body.length);
    if (leftBytes < body.length) response.write(body.subarray(0, leftBytes), () => response.destroy());
    else if (stallAfterBytes !== undefined) response.write(body.subarray(0, stallAfterBytes));
    else if (packetEveryMs) await trickle(response, body, packetEveryMs);
    else response.end(body);
  }
}

export class StandInSession {
  readonly #senders = new Map<number, Sender>();
  readonly #rng;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #ended = false;
  #sentBytes = 0;
  readonly #ordinal: number;

  readonly #proxy: StandInProxy;
  readonly #client: Attached;

  constructor(proxy: StandInProxy, client: Attached) {
    this.#proxy = proxy;
    this.#client = client;

    this.#rng = xorshift128((proxy.moods.seed ?? 7) + proxy.sessionsMade);
    this.#ordinal = proxy.sessionsMade;
  }

  fromClient(bytes: Uint8Array): void {
    if (this.#ended || this.#isMute || this.#isLost()) return;
    const frame = parseFrame(bytes);
    if (frame.type === "parseError" || !("requestId" in frame)) return;
    const sender = this.#senders.get(frame.requestId);
    if (sender) sender.handleFrame(frame, performance.now());
    else if (frame.type === "request") this.#accept(frame);
    else if (frame.type === "feedback" && frame.final) {
      this.#client.toClient(encodeFrame({ type: "end", requestId: frame.requestId, sentPackets: 0 }));
    }
    this.#pump();
  }

  /** Breaks the connection. The Sender gets no final feedback. */
  die(reason: string): void {
    if (this.#ended) return;
    this.close();
    this.#client.closed(reason);
  }

  close(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    for (const sender of this.#senders.values()) sender.free();
    this.#senders.clear();
  }

  get openSenders(): number {
    return this.#senders.size;
  }

  get #isMute(): boolean {
    const { mute, muteFirst } = this.#proxy.moods;
    return mute === true || (muteFirst === true && this.#ordinal === 1);
  }

  #isLost(): boolean {
    return this.#rng() / 2 ** 32 < (this.#proxy.moods.loss ?? 0);
  }

  #accept(request: RequestFrame): void {
    const sender = new Sender({ request, codec: this.#proxy.codec!, rng: this.#rng, nowMs: performance.now() });
    this.#senders.set(request.requestId, sender);
    void this.#fetchFor(request, sender);
  }

  async #fetchFor({ url, range }: RequestFrame, sender: Sender): Promise<void> {
    try {
      const answer = await fetch(url, { headers: range ? { range: `bytes=${range.start}-${range.end}` } : {} });
      const length = answer.headers.get("content-length");
      const got = Number(length);
      const { chunkBytesMax: limit = LIMITS.chunkBytesMax, tooLargeBytes } = this.#proxy.moods;
      if (length === null) sender.handleFailure({ kind: "lengthUnknown", message: "no length" });
      else if (tooLargeBytes !== undefined && !range)
        sender.handleFailure({ kind: "chunkTooLarge", message: "too large", got: tooLargeBytes, limit });
      else if (got > limit) sender.handleFailure({ kind: "chunkTooLarge", message: "too large", got, limit });
      else {
        const body = liedFrom(new Uint8Array(await answer.arrayBuffer()), this.#proxy.moods.liesFromByte);
        const headers = Object.fromEntries(
          [...answer.headers].filter(([name]) => /^(etag|content-(type|range))$/.test(name)),
        );
        if (this.#proxy.moods.etag) headers.etag = this.#proxy.moods.etag;
        sender.handlePlan(
          { status: answer.status, totalBytes: body.length, headers, serverFetchMs: 2 },
          new GrowingSource(body),
        );
      }
    } catch (error) {
      sender.handleFailure({ kind: "originFailed", message: String(error) });
    }
    this.#pump();
  }

  #pump(): void {
    if (this.#ended) return;
    const { packetEveryMs = 0, dieAfterBytes = Infinity } = this.#proxy.moods;
    let budget = packetEveryMs > 0 ? 1 : 64;
    for (const [requestId, sender] of this.#senders) {
      const nowMs = performance.now();
      if ((sender.pollTimeout() ?? Infinity) <= nowMs) sender.handleTimeout(nowMs);
      for (let bytes = sender.pollTransmit(nowMs); bytes; bytes = budget > 0 ? sender.pollTransmit(nowMs) : undefined) {
        budget--;
        this.#sentBytes += bytes.length;
        if (!this.#isLost()) this.#client.toClient(bytes);
        if (budget <= 0) break;
      }
      if (!sender.finished) continue;
      this.#proxy.outcomes.push(sender.outcome);
      sender.free();
      this.#senders.delete(requestId);
    }
    if (this.#sentBytes >= dieAfterBytes) return this.die("died");
    clearTimeout(this.#timer);
    if (this.#senders.size > 0) this.#timer = setTimeout(() => this.#pump(), Math.max(1, packetEveryMs));
  }
}

export interface Bench {
  platform: Platform;
  /** The open channels. */
  openChannels: Set<object>;
  /** The engines that are alive. */
  engines: Set<Engine>;
  crashEngine(): void;
}

/** Makes a platform that reaches `proxies` in this process. */
export function createBench(proxies: StandInProxy[], codec: Codec | undefined): Bench {
  const openChannels = new Set<object>();
  const engines = new Set<Engine>();
  let crash: ((reason: string) => void) | undefined;

  const openChannel = async (options: ChannelOptions) => {
    const answer = await options.sendOffer("v=0\r\na=max-message-size:262144\r\n");
    const proxy = proxies.find(({ id }) => answer.startsWith(id))!;
    const channel = {
      send: (bytes: Uint8Array) => {
        const copy = bytes.slice();
        setImmediate(() => session.fromClient(copy));
        return true;
      },
      close: () => {
        openChannels.delete(channel);
        session.close();
      },
    };
    const session = proxy.attach(answer, {
      toClient: (bytes) => setImmediate(() => openChannels.has(channel) && options.onMessage(bytes)),
      closed: (reason) => {
        if (openChannels.delete(channel)) options.onClosed(reason);
      },
    });
    openChannels.add(channel);
    return channel;
  };

  const spawnEngine = () => {
    let alive = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let onMessage: (message: FromEngine) => void = () => undefined;
    const engine = new Engine(codec!, (message) => setImmediate(() => alive && onMessage(message)));
    engines.add(engine);
    const arm = (): void => {
      clearTimeout(timer);
      const at = engine.pollTimeout();
      if (at === undefined || !alive) return;
      timer = setTimeout(
        () => {
          engine.handleTimeout(performance.now());
          arm();
        },
        Math.max(1, at - performance.now()),
      );
    };
    return {
      post: (message: ToEngine) => {
        setImmediate(() => {
          if (!alive || message.type === "init" || "channel" in message) return;
          engine.handle(message, performance.now());
          arm();
        });
      },
      onMessage: (handler: (message: FromEngine) => void) => void (onMessage = handler),
      onFailure: (handler: (reason: string) => void) => void (crash = handler),
      terminate: () => {
        alive = false;
        clearTimeout(timer);
        engines.delete(engine);
      },
    };
  };

  const platform: Platform = {
    now: () => performance.now(),
    epochMs: () => Date.now(),
    describe: () => ({ agent: "test/1", os: "test" }),
    randomUUID,
    fetch: (input, init) => fetch(input, init),
    defer: (task) => void setImmediate(task),
    transports: [{ name: "webrtc", reaches: () => true, open: openChannel }],
    engineTransports: [],
    spawnEngine,
    loadCodec: () => Promise.resolve(new ArrayBuffer(8)),
  };
  return { platform, openChannels, engines, crashEngine: () => crash?.("crashed by the test") };
}
