import { createHash } from "node:crypto";
import type { Rejection } from "@tributary/contract";
import { encodeFrame, LIMITS, parseFrame, type Frame } from "@tributary/protocol";
import { testCodec } from "../test/codec";
import { bytesOf, sha256Of } from "../test/support";
import { Engine } from "./engine";
import { pack, unpack, type FromEngine, type PackedFrames, type StartOptions } from "./messages";

const OPTIONS: StartOptions = { url: "http://o/file", mode: "uncoded-mutp", symbolBytes: 100, generationSize: 4 };

function packed(...frames: (Frame | Uint8Array)[]): PackedFrames {
  return pack(frames.map((frame) => (frame instanceof Uint8Array ? frame : encodeFrame(frame))));
}

function plan(requestId: number, totalBytes: number): Frame {
  return { type: "plan", requestId, head: { status: 200, totalBytes, headers: { etag: '"1"' }, serverFetchMs: 1 } };
}

/** All digests of a body that is cut as in OPTIONS. */
function digests(requestId: number, body: Uint8Array): Frame {
  const count = Math.ceil(body.length / 400);
  const all = Array.from({ length: count }, (_, index) =>
    createHash("sha256")
      .update(body.subarray(index * 400, index * 400 + 400))
      .digest()
      .subarray(0, LIMITS.digestBytes),
  );
  return { type: "digest", requestId, firstGeneration: 0, digests: all };
}

function symbol(requestId: number, index: number, body: Uint8Array): Frame {
  const payload = new Uint8Array(100);
  payload.set(body.subarray(index * 100, index * 100 + 100));
  const coding = { kind: "systematic", symbolIndex: index % 4, grant: 0 } as const;
  return { type: "data", requestId, sequence: index, generationIndex: Math.floor(index / 4), coding, payload };
}

async function build() {
  const posted: FromEngine[] = [];
  const transfers: ArrayBuffer[][] = [];
  const engine = new Engine(await testCodec(), (message, transfer) => {
    posted.push(message);
    transfers.push(transfer);
  });
  const sent = (): [number, Frame["type"] | "parseError"][] =>
    posted.flatMap((message) =>
      message.type === "send"
        ? [...unpack(message.frames)].map(
            (bytes) => [message.session, parseFrame(bytes).type] as [number, Frame["type"]],
          )
        : [],
    );
  const take = <T extends FromEngine["type"]>(type: T) =>
    posted.filter((message) => message.type === type) as Extract<FromEngine, { type: T }>[];
  return { engine, posted, transfers, sent, take };
}

describe("engine", () => {
  test("engine: counts the answer to a first request before the session is reported open", async () => {
    const { engine, sent, take } = await build();
    const body = bytesOf(400);
    engine.handle({ type: "start", requestId: 7, sessions: [3], options: OPTIONS }, 0);
    expect(parseFrame(engine.firstOf(3, 0)!)).toMatchObject({ type: "request", requestId: 7 });
    expect(engine.firstOf(4, 0)).toBeUndefined();
    engine.receive(
      [[3, [plan(7, 400), ...[0, 1].map((index) => symbol(7, index, body))].map((frame) => encodeFrame(frame))]],
      90,
    );
    engine.handle({ type: "ready", requestId: 7, proxyIndex: 0 }, 91);
    engine.handleOpened(3, 92);
    expect(sent().filter(([, type]) => type === "request")).toEqual([]);
    expect(engine.firstOf(3, 92)).toBeUndefined();
    engine.receive([[3, [2, 3].map((index) => encodeFrame(symbol(7, index, body)))]], 95);
    expect(take("complete")).toHaveLength(1);
    expect(Buffer.compare(Buffer.concat(take("bytes").map(({ bytes }) => bytes)), body)).toBe(0);
  });

  test("engine: a ping tells the round trip to a proxy whose session took the request along", async () => {
    const { engine, sent, take } = await build();
    engine.handle({ type: "start", requestId: 7, sessions: [3], options: OPTIONS }, 0);
    engine.firstOf(3, 0);
    engine.receive([[3, [encodeFrame(plan(7, 400))]]], 90);
    engine.handle({ type: "ready", requestId: 7, proxyIndex: 0 }, 91);
    engine.handleOpened(3, 92);
    expect(sent()).toEqual([[3, "ping"]]);
    engine.receive([[3, [encodeFrame({ type: "pong", token: 3 })]]], 122);
    engine.receive([[3, [0, 1, 2, 3].map((index) => encodeFrame(symbol(7, index, bytesOf(400))))]], 140);
    expect(take("stats").at(-1)!.stats.proxies[0]!.rttMs).toBe(30);
    engine.handle({ type: "start", requestId: 8, sessions: [3], options: OPTIONS }, 200);
    engine.handle({ type: "abort", requestId: 8 }, 210);
    expect(take("stats").filter(({ requestId }) => requestId === 8)[0]?.stats.proxies[0]?.rttMs ?? null).toBeNull();
  });

  test("engine: a check ends with any frame of the session, and reports silence after four pings", async () => {
    const { engine, sent, take } = await build();
    engine.handle({ type: "check", session: 3 }, 0);
    engine.handle({ type: "check", session: 3 }, 10);
    engine.handleTimeout(engine.pollTimeout()!);
    expect(sent()).toEqual(Array(2).fill([3, "ping"]));
    engine.receive([[3, [encodeFrame({ type: "pong", token: 3 })]]], 700);
    expect(engine.pollTimeout()).toBeUndefined();
    engine.handle({ type: "check", session: 3 }, 1000);
    engine.handle({ type: "check", session: 4 }, 1000);
    engine.handleOpened(4, 1001);
    const pinged = sent().length;
    for (const nowMs of [1500, 2000, 2500]) engine.handleTimeout(nowMs);
    expect([sent().slice(pinged), take("silent")]).toEqual([Array(3).fill([3, "ping"]), []]);
    engine.handleTimeout(3000);
    expect([take("silent"), engine.pollTimeout()]).toEqual([[{ type: "silent", session: 3 }], undefined]);
  });

  test.each(["uncoded-mutp", "coded"] as const)(
    "engine: asks a proxy again over the remaining channel if the channel of its answer closes (%s)",
    async (mode) => {
      const { engine, sent, take } = await build();
      const body = bytesOf(400);
      const answer = (...symbols: number[]): Uint8Array[] =>
        [plan(7, 400), ...symbols.map((index) => symbol(7, index, body))].map((frame) => encodeFrame(frame));
      engine.handle({ type: "start", requestId: 7, sessions: [3], options: { ...OPTIONS, mode } }, 0);
      engine.firstOf(3, 0);
      engine.receive([[3, answer(0, 1)]], 90);
      engine.handleChannelGone(3, 91);
      engine.handle({ type: "ready", requestId: 7, proxyIndex: 0 }, 92);
      expect(sent()).toEqual([[3, "request"]]);
      engine.receive([[3, answer(0, 1, 2, 3)]], 120);
      expect(take("complete")).toHaveLength(1);
      expect(Buffer.compare(Buffer.concat(take("bytes").map(({ bytes }) => bytes)), body)).toBe(0);
      engine.handle({ type: "frames", session: 3, frames: packed({ type: "end", requestId: 7, sentPackets: 4 }) }, 121);
      expect(take("closed")[0]!.stats.proxies[0]).toMatchObject({ packets: 6, innovative: 4, duplicate: 2 });
    },
  );

  test("engine: pings a session that opens early, and starts a more distant proxy at a later packet", async () => {
    const { engine, posted, sent } = await build();
    for (const session of [3, 4]) {
      expect(engine.firstOf(session, 0)).toBeUndefined();
      engine.handleOpened(session, 100);
    }
    expect(sent()).toEqual([
      [3, "ping"],
      [4, "ping"],
    ]);
    engine.receive([[3, [encodeFrame({ type: "pong", token: 3 })]]], 120);
    engine.receive([[4, [encodeFrame({ type: "pong", token: 4 })]]], 220);
    const ask = (requestId: number): number[] => {
      posted.length = 0;
      engine.handle({ type: "start", requestId, sessions: [3, 4], options: { ...OPTIONS, mode: "coded" } }, 300);
      for (const proxyIndex of [0, 1]) engine.handle({ type: "ready", requestId, proxyIndex }, 300);
      const frames = posted.flatMap((message) =>
        message.type === "send" ? [...unpack(message.frames)].map(parseFrame) : [],
      );
      return frames.flatMap((frame) => (frame.type === "request" && frame.share ? [frame.share.firstGeneration] : []));
    };
    const [near, far] = ask(7) as [number, number];
    expect(near).toBe(0);
    expect(far).toBeGreaterThan(0);
    engine.firstOf(4, 400);
    engine.handleOpened(4, 500);
    expect(ask(8)).toEqual([0, 0]);
  });

  test("engine: counts the packets of all sessions before it grants more to one of them", async () => {
    const { engine, sent } = await build();
    const body = bytesOf(1000);
    engine.handle({ type: "start", requestId: 7, sessions: [3, 4], options: { ...OPTIONS, mode: "coded" } }, 0);
    for (const proxyIndex of [0, 1]) engine.handle({ type: "ready", requestId: 7, proxyIndex }, 1);
    const frames = (index: number) => [plan(7, 1000), symbol(7, index, body)].map((frame) => encodeFrame(frame));
    engine.receive(
      [
        [3, frames(0)],
        [4, frames(1)],
      ],
      20,
    );
    expect(sent()).toEqual([
      [3, "request"],
      [4, "request"],
    ]);
    engine.handleTimeout(25);
    expect(sent().slice(2)).toEqual([
      [3, "grant"],
      [4, "grant"],
    ]);
  });

  test("engine: asks each ready session, delivers bytes in order, sends final feedback and closes", async () => {
    const { engine, sent, take, transfers, posted } = await build();
    const body = bytesOf(1000);
    engine.handle({ type: "start", requestId: 7, sessions: [3, 4], options: OPTIONS }, 0);
    engine.handle({ type: "ready", requestId: 7, proxyIndex: 0 }, 1);
    engine.handle({ type: "ready", requestId: 7, proxyIndex: 1 }, 1);
    expect(sent()).toEqual([
      [3, "request"],
      [4, "request"],
    ]);
    engine.handle(
      {
        type: "frames",
        session: 3,
        frames: packed(plan(7, 1000), digests(7, body), ...[5, 4, 6, 7].map((i) => symbol(7, i, body))),
      },
      2,
    );
    expect(take("head")).toHaveLength(0);
    expect(take("bytes")).toHaveLength(0);
    engine.handle(
      {
        type: "frames",
        session: 4,
        frames: packed(plan(7, 1000), digests(7, body), ...[0, 1, 2, 3, 8, 9].map((i) => symbol(7, i, body))),
      },
      3,
    );
    expect(take("head")).toMatchObject([{ head: { status: 200, totalBytes: 1000 } }]);
    const bytes = take("bytes").map((message) => message.bytes);
    expect(Buffer.compare(Buffer.concat(bytes), body)).toBe(0);
    for (const [index, message] of posted.entries()) {
      if (message.type === "bytes") expect(transfers[index]).toEqual([message.bytes.buffer]);
    }
    expect(take("complete")).toHaveLength(1);
    expect(take("closed")).toHaveLength(0);
    engine.handle({ type: "frames", session: 3, frames: packed({ type: "end", requestId: 7, sentPackets: 4 }) }, 4);
    engine.handle({ type: "frames", session: 4, frames: packed({ type: "end", requestId: 7, sentPackets: 6 }) }, 4);
    expect(take("closed")).toMatchObject([
      {
        stats: {
          deliveredBytes: 1000,
          rank: 10,
          proxies: [
            { packets: 4, innovative: 4 },
            { packets: 6, innovative: 6 },
          ],
        },
      },
    ]);
    expect(engine.openCount).toBe(0);
    expect(engine.pollTimeout()).toBeUndefined();
  });

  test("engine: closes a request even if no proxy answers its final feedback", async () => {
    const { engine, take } = await build();
    engine.handle({ type: "start", requestId: 1, sessions: [1], options: OPTIONS }, 0);
    engine.handle({ type: "ready", requestId: 1, proxyIndex: 0 }, 0);
    engine.handle({ type: "abort", requestId: 1 }, 10);
    for (let at = engine.pollTimeout(), steps = 0; at !== undefined; at = engine.pollTimeout()) {
      expect(++steps).toBeLessThan(50);
      engine.handleTimeout(at);
    }
    expect(take("closed")).toHaveLength(1);
    expect(take("failed")).toHaveLength(0);
    expect(engine.openCount).toBe(0);
  });

  test("engine: counts an unreadable frame as rejected and continues", async () => {
    const { engine, take } = await build();
    const body = bytesOf(100);
    engine.handle({ type: "start", requestId: 1, sessions: [5], options: OPTIONS }, 0);
    engine.handle({ type: "ready", requestId: 1, proxyIndex: 0 }, 0);
    const garbage = [
      new Uint8Array(0),
      new Uint8Array(1),
      bytesOf(30),
      bytesOf(LIMITS.messageBytesMax + 1),
      encodeFrame(symbol(1, 0, body)).subarray(0, 40),
    ];
    engine.handle(
      { type: "frames", session: 5, frames: packed(plan(1, 100), ...garbage, symbol(1, 0, body), symbol(99, 0, body)) },
      1,
    );
    engine.handle({ type: "frames", session: 5, frames: packed({ type: "end", requestId: 1, sentPackets: 1 }) }, 2);
    expect(take("complete")).toHaveLength(1);
    expect(take("closed")[0]!.stats.proxies[0]).toMatchObject({ packets: 6, innovative: 1, rejected: 5 });
  });

  test("engine: ignores frames of a session that takes no part in the request", async () => {
    const { engine, take } = await build();
    engine.handle({ type: "start", requestId: 1, sessions: [5], options: OPTIONS }, 0);
    engine.handle({ type: "ready", requestId: 1, proxyIndex: 0 }, 0);
    engine.handle({ type: "frames", session: 6, frames: packed(plan(1, 100), symbol(1, 0, bytesOf(100))) }, 1);
    expect(take("head")).toHaveLength(0);
    expect(take("bytes")).toHaveLength(0);
  });

  test("engine: answers a ping on its session", async () => {
    const { engine, sent } = await build();
    engine.handle({ type: "frames", session: 2, frames: packed({ type: "ping", token: 9 }) }, 0);
    expect(sent()).toEqual([[2, "pong"]]);
  });

  test("engine: fails when two proxies report that the chunk is too large", async () => {
    const { engine, take } = await build();
    engine.handle({ type: "start", requestId: 1, sessions: [1, 2, 3], options: OPTIONS }, 0);
    for (const proxyIndex of [0, 1]) engine.handle({ type: "ready", requestId: 1, proxyIndex }, 0);
    const rejection: Rejection = { kind: "chunkTooLarge", message: "too large", got: 5e7, limit: LIMITS.chunkBytesMax };
    const frames = (): PackedFrames => packed({ type: "reject", requestId: 1, rejection });
    engine.handle({ type: "frames", session: 1, frames: frames() }, 1);
    expect(take("failed")).toEqual([]);
    engine.handle({ type: "frames", session: 2, frames: frames() }, 1);
    expect(take("failed")).toEqual([{ type: "failed", requestId: 1, rejection }]);
  });

  test.each([undefined, 0, 1000, LIMITS.chunkBytesMax, 1.5e9 + 0.5, Infinity])(
    "engine: only the proxy fails that calls a chunk of %p bytes too large",
    async (got) => {
      const { engine, take } = await build();
      engine.handle({ type: "start", requestId: 1, sessions: [1, 2], options: OPTIONS }, 0);
      for (const proxyIndex of [0, 1]) engine.handle({ type: "ready", requestId: 1, proxyIndex }, 0);
      const rejection: Rejection = {
        kind: "chunkTooLarge",
        message: "too large",
        ...(got === undefined ? {} : { got }),
      };
      engine.handle({ type: "frames", session: 1, frames: packed({ type: "reject", requestId: 1, rejection }) }, 1);
      engine.handleTimeout(100);
      expect(take("failed")).toEqual([]);
      expect(take("stats").at(-1)!.stats.proxies).toMatchObject([
        { state: "failed", error: { kind: "proxyFailed" } },
        { state: "waiting" },
      ]);
    },
  );

  test("engine: reports that a proxy is back before it sends a packet", async () => {
    const { engine, take } = await build();
    engine.handle({ type: "start", requestId: 1, sessions: [1], options: OPTIONS }, 0);
    engine.handle({ type: "ready", requestId: 1, proxyIndex: 0 }, 0);
    const statesAt = (nowMs: number): string[] => {
      engine.handleTimeout(nowMs);
      return take("stats")
        .at(-1)!
        .stats.proxies.map(({ state }) => state);
    };
    expect(statesAt(4000)).toEqual(["failed"]);
    engine.handle({ type: "lost", requestId: 1, proxyIndex: 0, reason: "silent", away: true }, 4001);
    engine.handle({ type: "ready", requestId: 1, proxyIndex: 0 }, 4002);
    expect(statesAt(4100)).toEqual(["waiting"]);
  });

  test("engine: fails with the last reason when every proxy is lost", async () => {
    const { engine, take } = await build();
    engine.handle({ type: "start", requestId: 1, sessions: [1, 2], options: OPTIONS }, 0);
    engine.handle({ type: "lost", requestId: 1, proxyIndex: 0, reason: "one", away: false }, 1);
    expect(take("failed")).toHaveLength(0);
    engine.handle({ type: "lost", requestId: 1, proxyIndex: 1, reason: "two", away: false }, 2);
    expect(take("failed")).toMatchObject([{ rejection: { kind: "proxyLost", message: "two" } }]);
    expect(take("closed")).toHaveLength(1);
  });

  test("engine: a request with values over the limits fails, and no other request does", async () => {
    const { engine, take } = await build();
    engine.handle({ type: "start", requestId: 1, sessions: [1], options: { ...OPTIONS, symbolBytes: 9999 } }, 0);
    expect(take("failed")).toMatchObject([{ requestId: 1, rejection: { kind: "requestInvalid" } }]);
    expect(take("closed")).toHaveLength(1);
    expect(engine.openCount).toBe(0);
  });

  test("engine: reports counts at most every 100 ms while packets come", async () => {
    const { engine, take } = await build();
    const body = bytesOf(40_000);
    engine.handle({ type: "start", requestId: 1, sessions: [1], options: OPTIONS }, 0);
    engine.handle({ type: "ready", requestId: 1, proxyIndex: 0 }, 0);
    engine.handle({ type: "frames", session: 1, frames: packed(plan(1, 40_000)) }, 1);
    for (let i = 0; i < 300; i++)
      engine.handle({ type: "frames", session: 1, frames: packed(symbol(1, i, body)) }, 2 + i);
    expect(take("stats").length).toBeGreaterThanOrEqual(2);
    expect(take("stats").length).toBeLessThanOrEqual(3);
  });

  test("engine: computes several hashes at once", async () => {
    const { engine, take } = await build();
    const [a, b] = [bytesOf(5000, 1), bytesOf(7000, 2)];
    engine.handle({ type: "hash", hashId: 1, bytes: a.subarray(0, 3000) }, 0);
    engine.handle({ type: "hash", hashId: 2, bytes: b }, 0);
    engine.handle({ type: "hash", hashId: 1, bytes: a.subarray(3000) }, 0);
    for (const hashId of [1, 2, 3]) engine.handle({ type: "digest", hashId }, 0);
    expect(take("digested").map(({ hex }) => hex)).toEqual([sha256Of(a), sha256Of(b), sha256Of(new Uint8Array(0))]);
  });
});
