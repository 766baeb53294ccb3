/** Tests the channels of the engine's worker. engine.test.ts tests the engine. */
import { encodeFrame, parseFrame, type Codec, type Frame } from "@tributary/protocol";
import { chooseWasmModule, instantiateCodec } from "@tributary/wasm-codec";
import { wasmModulePath } from "@tributary/wasm-codec/node";
import { readFileSync } from "node:fs";
import { pack, unpack, type FromEngine, type ToEngine } from "./messages";
import type { Channel, ChannelOptions, Transport } from "./platform";
import { serveEngine } from "./worker-shell";

const PROXY = { id: "p", name: "p", url: "http://p", udp: { host: "h", port: 1 } };

function setup() {
  const opened: {
    options: ChannelOptions;
    resolve(channel?: Channel): void;
    reject(error: Error): void;
    closed: boolean;
  }[] = [];
  const udp: Transport = {
    name: "udp",
    reaches: (proxy) => proxy.udp !== undefined,
    open: (options) =>
      new Promise((resolve, reject) => {
        const entry = {
          options,
          reject,
          closed: false,
          resolve: (channel?: Channel) =>
            resolve(channel ?? { send: () => true, close: () => void (entry.closed = true) }),
        };
        opened.push(entry);
      }),
  };
  const posted: FromEngine[] = [];
  const handle = serveEngine(
    { post: (message) => posted.push(message) },
    { transports: [udp], makeCodec: (wasm) => instantiateCodec(wasm), defer: (task) => void setImmediate(task) },
  );
  return { handle, posted, opened };
}

const wasm = (): ArrayBuffer => new Uint8Array(readFileSync(wasmModulePath(chooseWasmModule()))).buffer;
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Makes a worker and counts the decoders of its codec. */
function rehearsing() {
  const decoders: { symbolCount: number; rank: number; freed: boolean }[] = [];
  const makeCodec = (module: ArrayBuffer): Codec => {
    const codec = instantiateCodec(module);
    const createDecoder: Codec["createDecoder"] = (...size) => {
      const decoder = codec.createDecoder(...size);
      const seen = { symbolCount: size[0], rank: 0, freed: false };
      decoders.push(seen);
      const free = decoder.free.bind(decoder);
      decoder.free = () => {
        Object.assign(seen, { rank: decoder.rank, freed: true });
        free();
      };
      return decoder;
    };
    return { ...codec, createDecoder };
  };
  const posted: FromEngine[] = [];
  const handle = serveEngine(
    { post: (message) => posted.push(message) },
    { transports: [], makeCodec, defer: (task) => void setImmediate(task) },
  );
  return { handle, posted, decoders };
}

test("worker: rehearses a download before the first packets come, and reports nothing about it", async () => {
  const { handle, posted, decoders } = rehearsing();
  handle({ type: "init", wasm: wasm() });
  expect(decoders).toEqual([]);
  while (decoders.length < 3 || !decoders.every(({ freed }) => freed)) await settle();
  expect(decoders.every(({ symbolCount, rank }) => rank === symbolCount)).toBe(true);
  for (let tick = 0; tick < 10; tick++) await settle();
  expect(posted.map(({ type }) => type)).toEqual(["inited"]);
});

test("worker: the rehearsal ends when a download begins", async () => {
  const { handle, decoders } = rehearsing();
  handle({ type: "init", wasm: wasm() });
  while (decoders.length === 0) await settle();
  handle({ type: "start", requestId: 7, sessions: [5], options: { url: "http://o/file", mode: "coded" } });
  while (!decoders.every(({ freed }) => freed)) await settle();
  expect(decoders.some(({ symbolCount, rank }) => rank < symbolCount)).toBe(true);
  handle({ type: "abort", requestId: 7 });
});

test("worker: opens a channel before the codec is made, and reports its end once", async () => {
  const { handle, posted, opened } = setup();
  handle({ type: "open", channel: 1, session: 5, transport: "udp", proxy: PROXY });
  opened[0]!.resolve();
  await settle();
  opened[0]!.options.onClosed("gone");
  opened[0]!.options.onClosed("gone again");
  expect(posted).toEqual([
    { type: "opened", channel: 1 },
    { type: "channelClosed", channel: 1, reason: "gone" },
  ]);
});

test("worker: closes a channel if its transport is missing, does not reach the proxy, or fails", async () => {
  const { handle, posted, opened } = setup();
  handle({ type: "open", channel: 1, session: 5, transport: "webtransport", proxy: PROXY });
  handle({ type: "open", channel: 2, session: 5, transport: "udp", proxy: { id: "q", name: "q", url: "http://q" } });
  handle({ type: "open", channel: 3, session: 5, transport: "udp", proxy: PROXY });
  opened[0]!.reject(new Error("refused"));
  await settle();
  expect(posted).toEqual([
    { type: "channelClosed", channel: 1, reason: "no webtransport here" },
    { type: "channelClosed", channel: 2, reason: "no udp here" },
    { type: "channelClosed", channel: 3, reason: "refused" },
  ]);
});

test("worker: closes a channel that opens after the main thread gave it up, and reports nothing", async () => {
  const { handle, posted, opened } = setup();
  handle({ type: "open", channel: 1, session: 5, transport: "udp", proxy: PROXY });
  handle({ type: "closeChannel", channel: 1 });
  expect(opened[0]!.options.signal.aborted).toBe(true);
  opened[0]!.resolve();
  await settle();
  expect([posted, opened[0]!.closed]).toEqual([[], true]);
});

test("worker: a channel for a request waits for the codec and takes the request along", async () => {
  const { handle, posted, opened } = setup();
  handle({ type: "start", requestId: 7, sessions: [5], options: { url: "http://o/file", mode: "coded" } });
  handle({ type: "open", channel: 1, session: 5, transport: "udp", proxy: PROXY });
  handle({ type: "open", channel: 2, session: 6, transport: "udp", proxy: PROXY });
  handle({ type: "closeChannel", channel: 2 });
  expect(opened).toHaveLength(0);
  handle({ type: "init", wasm: wasm() });
  expect(opened).toHaveLength(1);
  expect(parseFrame(opened[0]!.options.first!)).toMatchObject({ type: "request", requestId: 7, url: "http://o/file" });
  handle({ type: "abort", requestId: 7 });
  const sent: Uint8Array[] = [];
  opened[0]!.resolve({ send: (bytes) => sent.push(bytes) > 0, close: () => undefined });
  await settle();
  expect(posted.map(({ type }) => type)).toContain("opened");
  expect(sent.map((bytes) => parseFrame(bytes))).toMatchObject([
    { type: "ping", token: 5 },
    { type: "feedback", requestId: 7, final: true },
  ]);
});

const typesOf = (frames: Iterable<Uint8Array>): (Frame["type"] | "parseError")[] =>
  [...frames].map((bytes) => parseFrame(bytes).type);
/** Ends the request and plays the END of its proxy, so that no timer stays. */
const giveUp = (handle: (message: ToEngine) => void): void => {
  handle({ type: "abort", requestId: 7 });
  handle({ type: "frames", session: 5, frames: pack([encodeFrame({ type: "end", requestId: 7, sentPackets: 0 })]) });
};

test.each([
  [2, 1],
  [1, 2],
])("worker: if a session has two open channels and %i is closed, the other one stays in use", async (closed, kept) => {
  const { handle, posted, opened } = setup();
  handle({ type: "init", wasm: wasm() });
  const sent: Uint8Array[][] = [[], []];
  for (const channel of [1, 2]) handle({ type: "open", channel, session: 5, transport: "udp", proxy: PROXY });
  for (const [index, each] of opened.entries())
    each.resolve({ send: (bytes) => sent[index]!.push(bytes) > 0, close: () => undefined });
  await settle();
  handle({ type: "closeChannel", channel: closed });
  handle({ type: "start", requestId: 7, sessions: [5], options: { url: "http://o/file", mode: "coded" } });
  handle({ type: "ready", requestId: 7, proxyIndex: 0 });
  expect(typesOf(sent[kept - 1]!)).toContain("request");
  expect(posted.map(({ type }) => type)).not.toContain("send");
  giveUp(handle);
});

test("worker: asks the first message again if a channel of the main thread replaces the worker's", async () => {
  const { handle, posted, opened } = setup();
  handle({ type: "init", wasm: wasm() });
  handle({ type: "start", requestId: 7, sessions: [5], options: { url: "http://o/file", mode: "coded" } });
  handle({ type: "open", channel: 1, session: 5, transport: "udp", proxy: PROXY });
  opened[0]!.resolve();
  await settle();
  opened[0]!.options.onMessage(
    encodeFrame({ type: "plan", requestId: 7, head: { status: 200, totalBytes: 1000, headers: {}, serverFetchMs: 1 } }),
  );
  handle({ type: "closeChannel", channel: 1 });
  expect(posted.map(({ type }) => type)).toContain("head");
  handle({ type: "ready", requestId: 7, proxyIndex: 0 });
  expect(posted.flatMap((message) => (message.type === "send" ? typesOf(unpack(message.frames)) : []))).toEqual([
    "request",
  ]);
  giveUp(handle);
});

test("worker: collects garbage when the last request is closed, and not before", async () => {
  let collected = 0;
  const environment = {
    transports: [],
    makeCodec: (module: ArrayBuffer) => instantiateCodec(module),
    defer: (task: () => void) => void setImmediate(task),
    collect: () => void collected++,
  };
  const handle = serveEngine({ post: () => undefined }, environment);
  handle({ type: "init", wasm: wasm() });
  for (const requestId of [7, 8]) {
    handle({ type: "start", requestId, sessions: [5], options: { url: "http://o/file", mode: "coded" } });
    handle({ type: "ready", requestId, proxyIndex: 0 });
  }
  const counts: number[] = [];
  for (const requestId of [7, 8]) {
    handle({ type: "abort", requestId });
    handle({ type: "frames", session: 5, frames: pack([encodeFrame({ type: "end", requestId, sentPackets: 0 })]) });
    await settle();
    counts.push(collected);
  }
  expect(counts).toEqual([0, 1]);
});

test("worker: a channel takes nothing along if no request waits for it", async () => {
  const { handle, opened } = setup();
  handle({ type: "init", wasm: wasm() });
  handle({ type: "open", channel: 1, session: 5, transport: "udp", proxy: PROXY });
  expect(opened[0]!.options.first).toBeUndefined();
});

test("worker: passes an offer to the main thread, and the answer back to the right channel", async () => {
  const { handle, posted, opened } = setup();
  for (const channel of [1, 2]) handle({ type: "open", channel, session: channel, transport: "udp", proxy: PROXY });
  const answers = opened.map(({ options }, index) => options.sendOffer(`offer ${index + 1}`));
  expect(posted).toEqual([
    { type: "sendOffer", channel: 1, offer: "offer 1" },
    { type: "sendOffer", channel: 2, offer: "offer 2" },
  ]);
  handle({ type: "closeChannel", channel: 1 });
  for (const channel of [1, 2]) handle({ type: "answer", channel, sdp: `answer ${channel}` });
  expect(await Promise.race(answers)).toBe("answer 2");
});
