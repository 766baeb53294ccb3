/** Tests a session with the real sender, receiver and codec. The test plays the network and the origin. */
import { createHash } from "node:crypto";
import { CoderLostError, CoderService, cpuCoder, createCoderPool, only, type Coder } from "@tributary/native-codec";
import {
  encodeFrame,
  EncoderPool,
  LIMITS,
  parseFrame,
  Receiver,
  xorshift128,
  type Frame,
  type MutpMode,
  type ReceiverEvent,
} from "@tributary/protocol";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import type { ChunkListener, ChunkRequest, Lease } from "./chunks";
import { Clients } from "./clients";
import { newCounters } from "./counters";
import { egressError } from "./egress/error";
import type { Channel } from "./channel";
import { Costs } from "./coder/costs";
import { CoderMetrics } from "./coder/metrics";
import { SymbolRings } from "./coder/rings";
import { Session, type SessionOptions } from "./session";
import { Shaper } from "./shaper";

const codec = loadWasmCodec();
const QUEUE_BYTES_MAX = 64 * 1024;
const WRITABLE_BYTES = 32 * 1024;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** A chunk store whose answers the test gives. */
class FakeChunks {
  opened: { url: string; listener: ChunkListener; closed: boolean }[] = [];
  open = ({ url }: ChunkRequest, listener: ChunkListener): Lease => {
    if (url.includes("refused")) throw egressError("egressRefused", "not allowed");
    const entry = { url, listener, closed: false };
    this.opened.push(entry);
    return { take: () => undefined, close: () => void (entry.closed = true) };
  };
  answer(index: number, body: Uint8Array): { grow(bytes: number): void } {
    const source = {
      name: "chunk",
      totalBytes: body.length,
      availableBytes: 0,
      view: (start: number, end: number) => body.subarray(start, end),
    };
    const { listener } = this.opened[index]!;
    listener.onHead({ status: 200, totalBytes: body.length, headers: { etag: '"1"' }, serverFetchMs: 1 }, source);
    return {
      grow: (bytes) => {
        source.availableBytes = Math.min(body.length, source.availableBytes + bytes);
        listener.onGrowth();
      },
    };
  }
}

/** Keeps the sent messages. `drain` empties the queue as a network would. */
class FakeChannel implements Channel {
  readonly transport = "webrtc";
  sent: Uint8Array[] = [];
  bufferedAmount = 0;
  closed = false;
  peakBytes = 0;
  queues = false;
  onSend: (bytes: Uint8Array) => void = () => undefined;
  send(bytes: Uint8Array): boolean {
    const copy = bytes.slice();
    this.sent.push(copy);
    if (this.queues) this.bufferedAmount += bytes.length;
    this.peakBytes = Math.max(this.peakBytes, this.bufferedAmount);
    this.onSend(copy);
    return true;
  }
  get room(): number {
    return QUEUE_BYTES_MAX - this.bufferedAmount;
  }
  stats(): undefined {
    return undefined;
  }
  close(): void {
    this.closed = true;
  }
  frames(type: Frame["type"]): Frame[] {
    return this.sent.map(parseFrame).filter((frame): frame is Frame => frame.type === type);
  }
}

const limits = { addressBytes: 1e9, addressOffers: 100, controlPerMille: 1000 };

function setup(
  options: Pick<SessionOptions, "coder"> & { idleMs?: number; bytesPerSec?: number; controlPerMille?: number } = {},
) {
  const chunks = new FakeChunks();
  const channel = new FakeChannel();
  const counters = newCounters();
  const logged: string[] = [];
  const ends: string[] = [];
  const session = new Session({
    id: "s",
    channel,
    codec,
    chunks,
    counters,
    rng: xorshift128(1),
    shaper: new Shaper(options.bytesPerSec ?? 0),
    log: (event, fields) => logged.push(`${event} ${JSON.stringify(fields)}`),
    client: new Clients(() => ({ ...limits, ...options })).of("203.0.113.1"),
    onClosed: () => ends.push("closed"),
    ...(options.idleMs === undefined ? {} : { idleMs: options.idleMs }),
    ...(options.coder ? { coder: options.coder } : {}),
  });
  open.push(session);
  return { session, chunks, channel, counters, logged, ends };
}

const open: Session[] = [];
afterEach(() => {
  for (const session of open.splice(0)) session.close("test over");
});

function request(requestId: number, url = "http://o.test/a?secret=1"): Uint8Array {
  return encodeFrame({
    type: "request",
    requestId,
    mode: "coded-mutp",
    symbolBytes: 1100,
    generationSize: 24,
    windowPackets: 240,
    url,
  });
}

/** Runs a receiver with the session until it is done. Returns the bytes and the events. */
async function download(at: ReturnType<typeof setup>, mode: MutpMode, requestId: number, answer: () => void) {
  const url = "http://o.test/a";
  const receiver = new Receiver({ requestId, url, mode, proxyCount: 1, codec, nowMs: performance.now() });
  const received: Buffer[] = [];
  const events: ReceiverEvent["kind"][] = [];
  const previous = at.channel.onSend;
  at.channel.onSend = (bytes) => {
    previous(bytes);
    setImmediate(() => receiver.handleFrame(0, bytes, performance.now()));
  };
  receiver.handleProxyReady(0, performance.now());
  for (let started = false; !receiver.finished;) {
    const nowMs = performance.now();
    if ((receiver.pollTimeout() ?? Infinity) <= nowMs) receiver.handleTimeout(nowMs);
    for (let next = receiver.pollTransmit(nowMs); next; next = receiver.pollTransmit(nowMs))
      at.session.handleMessage(next.bytes);
    for (let event = receiver.pollEvent(); event; event = receiver.pollEvent()) {
      events.push(event.kind);
      if (event.kind === "bytes") received.push(Buffer.from(event.bytes));
    }
    if (!started) answer();
    started = true;
    await pause(1);
  }
  const stats = receiver.stats();
  receiver.free();
  return { bytes: Buffer.concat(received), events, stats };
}

function body(bytes: number): Uint8Array {
  const rng = xorshift128(bytes);
  return Uint8Array.from({ length: bytes }, () => rng());
}

const digest = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

test.each<[MutpMode, number]>([
  ["coded-mutp", 1_000_000],
  ["uncoded-mutp", 1_000_000],
  ["coded-mutp", 1],
  ["uncoded-mutp", 1],
  ["coded-mutp", 0],
  ["uncoded-mutp", 0],
])("session: %s brings %i bytes while the chunk is still arriving, then forgets all", async (mode, bytes) => {
  const at = setup();
  const original = body(bytes);
  const {
    bytes: received,
    events,
    stats,
  } = await download(at, mode, 7, () => {
    const { grow } = at.chunks.answer(0, original);
    let steps = 11;
    const timer = setInterval(() => {
      grow(100_000);
      if (--steps === 0) clearInterval(timer);
    }, 2);
  });
  expect(digest(received)).toBe(digest(original));
  expect(events.at(-1)).toBe("complete");
  expect(stats.proxies[0]!.rejected).toBe(0);
  expect(at.session.activeRequests).toBe(0);
  expect(at.chunks.opened[0]!.closed).toBe(true);
  expect(at.channel.frames("data").every((frame) => encodeFrame(frame).length <= LIMITS.dataFrameBytesMax)).toBe(true);
});

test("session: waits while the queue of the channel is full (64 KiB) and continues when it is short", async () => {
  const at = setup();
  at.channel.queues = true;
  const original = body(400_000);
  const network = setInterval(() => {
    at.channel.bufferedAmount = Math.max(0, at.channel.bufferedAmount - 20_000);
    if (at.channel.bufferedAmount < WRITABLE_BYTES) at.session.handleWritable();
  }, 1);
  const { bytes: received } = await download(at, "coded-mutp", 1, () => at.chunks.answer(0, original).grow(400_000));
  clearInterval(network);
  expect(digest(received)).toBe(digest(original));
  expect(at.channel.peakBytes).toBeLessThan(64 * 1024 + LIMITS.messageBytesMax);
});

test("session: a full channel keeps the shaper asleep, and a channel with room wakes it", async () => {
  const at = setup();
  at.channel.bufferedAmount = QUEUE_BYTES_MAX;
  at.session.handleMessage(request(1));
  const { grow } = at.chunks.answer(0, body(100_000));
  await new Promise((resolve) => setImmediate(resolve));
  const wake = jest.spyOn(Shaper.prototype, "wake");
  for (let i = 0; i < 100; i++) grow(100);
  at.session.handleMessage(request(1));
  expect(wake).not.toHaveBeenCalled();
  at.channel.bufferedAmount = 0;
  grow(100);
  expect(wake).toHaveBeenCalledTimes(1);
  wake.mockRestore();
});

test("session: keeps the rate (250 kB at 500 kB/s takes at least 0.4 s)", async () => {
  const at = setup({ bytesPerSec: 500_000 });
  const startMs = performance.now();
  await download(at, "uncoded-mutp", 1, () => at.chunks.answer(0, body(250_000)).grow(250_000));
  expect(performance.now() - startMs).toBeGreaterThan(400);
});

test("session: two requests at the same time take turns", async () => {
  const at = setup();
  const [one, two] = [body(300_000), body(300_001)];
  const results = await Promise.all([
    download(at, "coded-mutp", 1, () => at.chunks.answer(0, one).grow(300_000)),
    download(at, "coded-mutp", 2, () => at.chunks.answer(1, two).grow(300_001)),
  ]);
  expect(results.map(({ bytes }) => digest(bytes))).toEqual([digest(one), digest(two)]);
});

test("session: 16 requests at the same time are served, and the 17th is rejected with the limit", async () => {
  const at = setup();
  for (let id = 1; id <= 17; id++) at.session.handleMessage(request(id));
  expect(at.session.activeRequests).toBe(16);
  expect(at.channel.frames("reject")).toEqual([
    {
      type: "reject",
      requestId: 17,
      rejection: expect.objectContaining({ kind: "tooManyRequests", got: 17, limit: 16 }),
    },
  ]);
  expect(at.chunks.opened).toHaveLength(16);
});

test("session: a repeated request opens nothing new, while it runs and after it ended", async () => {
  const at = setup();
  at.session.handleMessage(request(1));
  at.session.handleMessage(request(1));
  const final = {
    type: "feedback",
    requestId: 1,
    feedbackSequence: 0,
    epoch: 0,
    final: true,
    reason: "aborted",
    nextSequence: 0,
    receivedPackets: 0,
    base: 0,
    received: { kind: "symbols", count: 0, bitmap: new Uint8Array(0) },
  } as const;
  at.session.handleMessage(encodeFrame(final));
  await pause(10);
  expect(at.session.activeRequests).toBe(0);
  expect(at.chunks.opened[0]!.closed).toBe(true);
  at.session.handleMessage(request(1));
  expect(at.chunks.opened).toHaveLength(1);
  expect(at.channel.frames("end")).toHaveLength(2);
});

test("session: final feedback for an unknown request is answered with END, and other feedback is not", () => {
  const at = setup();
  const feedback = (final: boolean) =>
    encodeFrame({
      type: "feedback",
      requestId: 9,
      feedbackSequence: 0,
      epoch: 0,
      final,
      reason: "none",
      nextSequence: 0,
      receivedPackets: 0,
      base: 0,
      received: { kind: "symbols", count: 0, bitmap: new Uint8Array(0) },
    });
  at.session.handleMessage(feedback(false));
  expect(at.channel.sent).toHaveLength(0);
  at.session.handleMessage(feedback(true));
  expect(at.channel.frames("end")).toEqual([{ type: "end", requestId: 9, sentPackets: 0 }]);
});

test("session: a ping is answered with its token, also by an idle session", () => {
  const at = setup();
  at.session.handleMessage(encodeFrame({ type: "ping", token: 77 }));
  expect(at.channel.frames("pong")).toEqual([{ type: "pong", token: 77 }]);
});

test("session: a refused URL and a failed origin become REJECT, and the log has no path and no query", async () => {
  const at = setup();
  at.session.handleMessage(request(1, "http://refused.test/path?secret=1"));
  at.session.handleMessage(request(2));
  at.chunks.opened[0]!.listener.onFailure({ kind: "shortBody", message: "short", got: 1, limit: 2 });
  await pause(10);
  const kinds = at.channel.frames("reject").map((frame) => frame.type === "reject" && frame.rejection.kind);
  expect(kinds.sort()).toEqual(["egressRefused", "shortBody"]);
  expect(at.counters.errors.total).toBe(2);
  expect(at.logged.join()).toContain("refused.test");
  expect(at.logged.join()).not.toMatch(/secret|path|\?/);
});

test("session: a request over a limit is rejected with the limit and the value", () => {
  const at = setup();
  const bytes = request(5);
  new DataView(bytes.buffer).setUint16(7, 5000);
  at.session.handleMessage(bytes);
  expect(at.channel.frames("reject")).toEqual([
    {
      type: "reject",
      requestId: 5,
      rejection: expect.objectContaining({ kind: "symbolBytesTooLarge", got: 5000, limit: 1140 }),
    },
  ]);
  expect(at.session.activeRequests).toBe(0);
});

test("session: 20,000 random, cut and changed frames are counted and do no harm (seed 3)", async () => {
  const at = setup();
  const rng = xorshift128(3);
  for (let i = 0; i < 20_000; i++) {
    const template = i % 2 === 0 ? request(rng() % 4, "http://refused.test/") : body(rng() % 60);
    const bytes = template.slice(0, rng() % (template.length + 1));
    if (bytes.length > 0) bytes[rng() % bytes.length] = rng();
    at.session.handleMessage(bytes);
    if (i % 1000 === 0) await pause(0);
  }
  expect(at.counters.rejectedFrames).toBeGreaterThan(5000);
  at.session.handleMessage(encodeFrame({ type: "ping", token: 1 }));
  expect(at.channel.frames("pong").at(-1)).toEqual({ type: "pong", token: 1 });
});

test("session: frames that only a proxy may send are dropped and counted", () => {
  const at = setup();
  at.session.handleMessage(encodeFrame({ type: "end", requestId: 1, sentPackets: 1 }));
  at.session.handleMessage(encodeFrame({ type: "pending", requestId: 1 }));
  expect(at.counters.rejectedFrames).toBe(2);
  expect(at.channel.sent).toHaveLength(0);
});

test("session: when the channel is gone, every lease is closed once", () => {
  const at = setup();
  at.session.handleMessage(request(1));
  at.session.handleMessage(request(2));
  at.session.handleClosed("gone");
  at.session.handleClosed("gone");
  at.session.handleMessage(request(3));
  expect(at.chunks.opened.map(({ closed }) => closed)).toEqual([true, true]);
  expect(at.ends).toEqual(["closed"]);
  expect(at.session.activeRequests).toBe(0);
});

test("session: closes when it is idle, but not during a request (60 ms)", async () => {
  const at = setup({ idleMs: 60 });
  for (let i = 0; i < 4; i++) {
    await pause(30);
    at.session.handleMessage(encodeFrame({ type: "ping", token: i }));
  }
  expect(at.channel.closed).toBe(false);
  await pause(150);
  expect(at.channel.closed).toBe(true);
  expect(at.ends).toEqual(["closed"]);
});

test("session: a draining session finishes running requests and rejects new ones", async () => {
  const at = setup();
  const original = body(50_000);
  const { bytes: received } = await download(at, "coded-mutp", 1, () => {
    at.session.drain();
    at.session.handleMessage(request(2));
    at.chunks.answer(0, original).grow(50_000);
  });
  expect(digest(received)).toBe(digest(original));
  expect(at.channel.frames("reject")).toEqual([
    { type: "reject", requestId: 2, rejection: expect.objectContaining({ kind: "draining" }) },
  ]);
});

test("session: time in which other processes have the processor does not count as the client's work", () => {
  const { session, channel, counters } = setup({ controlPerMille: 400 });
  const now = performance.now.bind(performance);
  let stolenMs = 0;
  jest.spyOn(performance, "now").mockImplementation(() => now() + (stolenMs += 20));
  for (let token = 0; token < 50; token++) session.handleMessage(encodeFrame({ type: "ping", token }));
  jest.restoreAllMocks();
  expect([channel.frames("pong").length, counters.unreadMessages]).toEqual([50, 0]);
});

/** Shared symbols that all come from the queue. `lastPieces`: a coder that is lost after so many pieces comes first. */
function sharing(options: { lastPieces?: number; heldUntil?: Promise<unknown> } = {}) {
  const cpu = (): Coder => cpuCoder(createCoderPool(codec, { threads: 1 }));
  const [own, rest] = [cpu(), only("decode", cpu())];
  let left = options.lastPieces ?? Infinity;
  const first: Coder = {
    ...only("encode", own),
    run: async (piece, signal) => {
      if (left-- <= 0) throw new CoderLostError("the device is lost");
      await options.heldUntil;
      return own.run(piece, signal);
    },
  };
  const service = new CoderService({ codec, coders: [first, rest], reserve: cpu });
  const costs = new Costs();
  costs.handoverMs = 0;
  costs.noteInline(1, 1);
  const rings = new SymbolRings({ codec, rng: xorshift128(5), costs, bytesMax: 1e6 });
  rings.setService(service);
  const coder: SessionOptions["coder"] = {
    encoders: new EncoderPool(codec),
    supplyFor: (requestId, onReady) => (geometry, source) => rings.supplyFor(requestId, geometry, source, onReady),
    metrics: new CoderMetrics(() => {
      throw new Error("nobody reads");
    }),
  };
  const close = async (): Promise<void> => {
    rings.close();
    await service.close();
    expect(rings.bytes).toBe(0);
    expect(service.bytes).toBe(0);
  };
  return { rings, service, coder, close };
}

test.each([0, 1, 63, 64, 65, 1100 * 24, 1100 * 24 + 1, 300_000])(
  "session: %i bytes from shared symbols, two downloads at once, also with one request id",
  async (bytes) => {
    const { service, rings, coder, close } = sharing();
    const original = body(bytes);
    const sessions = [7, 7, 8].map((requestId) => ({ requestId, at: setup({ coder }) }));
    const results = await Promise.all(
      sessions.map(({ requestId, at }) =>
        download(at, "coded-mutp", requestId, () => at.chunks.answer(0, original).grow(bytes)),
      ),
    );
    for (const result of results) expect(digest(result.bytes)).toBe(digest(original));
    expect(service.counts).toMatchObject({ failedTasks: 0, shedTasks: 0 });
    expect(rings.counts.inlineSymbols).toBe(0);
    await close();
  },
);

test("session: when the coder is lost in the middle of a download, another one goes on", async () => {
  const { service, coder, close } = sharing({ lastPieces: 2 });
  const original = body(400_000);
  const at = setup({ coder });
  const { bytes } = await download(at, "coded-mutp", 7, () => at.chunks.answer(0, original).grow(original.length));
  expect(digest(bytes)).toBe(digest(original));
  expect(service.counts).toMatchObject({ lostCoders: 1, failedTasks: 0, cancelledTasks: 0 });
  await close();
});

test("session: a viewer that leaves while its symbol is coded leaves nothing, and another one gets it", async () => {
  let go: (value?: unknown) => void = () => undefined;
  const { service, coder, close } = sharing({ heldUntil: new Promise((resolve) => (go = resolve)) });
  const original = body(50_000);
  const [leaving, staying] = [setup({ coder }), setup({ coder })];
  leaving.session.handleMessage(request(7));
  leaving.chunks.answer(0, original).grow(original.length);
  while (service.bytes === 0) await pause(1);
  leaving.session.handleClosed("gone");
  const sentBefore = leaving.channel.sent.length;
  const staysOn = download(staying, "coded-mutp", 7, () => staying.chunks.answer(0, original).grow(original.length));
  go();
  expect(digest((await staysOn).bytes)).toBe(digest(original));
  expect(leaving.channel.sent).toHaveLength(sentBefore);
  expect(leaving.chunks.opened[0]!.closed).toBe(true);
  await close();
});
