/** Frames: every layout of protocol.md §4 there and back, both sides of each limit, and garbage. */
import { encodeData, encodeFrame, parseFrame, requestIdOf } from "./frames";
import { LIMITS } from "../limits";
import { xorshift128 } from "../rng";
import type { Frame, RequestFrame } from "../types";

const request: RequestFrame = {
  type: "request",
  requestId: 7,
  mode: "coded-mutp",
  symbolBytes: 1100,
  generationSize: 24,
  windowPackets: 240,
  url: "https://example.org/v/seg-1.m4s?token=é",
  range: { start: 2 ** 40, end: 2 ** 40 + 99 },
};
const payload = Uint8Array.from({ length: 64 }, (_, i) => i);
const data = { type: "data", requestId: 1, sequence: 9, generationIndex: 3, payload } as const;
const feedback = {
  type: "feedback",
  requestId: 5,
  feedbackSequence: 6,
  epoch: 0,
  nextSequence: 12,
  receivedPackets: 11,
  base: 4,
} as const;

const frames: [string, Frame][] = [
  ["request with a range", request],
  ["request with a token", { ...request, token: "a.b.c" }],
  ["request past the caches", { ...request, cache: "no-cache" }],
  ["request that nobody may store", { ...request, cache: "no-store" }],
  ["request for digests", { ...request, digests: true }],
  [
    "request without a range",
    {
      type: "request",
      requestId: 1,
      mode: "uncoded-mutp",
      symbolBytes: 64,
      generationSize: 1,
      windowPackets: 1,
      url: "http://a/",
    },
  ],
  ["pending", { type: "pending", requestId: 0xffffffff }],
  [
    "plan",
    {
      type: "plan",
      requestId: 2,
      head: { status: 206, totalBytes: 100, headers: { etag: '"x"', "content-type": "video/mp4" }, serverFetchMs: 12 },
    },
  ],
  [
    "reject with numbers",
    { type: "reject", requestId: 2, rejection: { kind: "chunkTooLarge", message: "too large", got: 5e9, limit: 1 } },
  ],
  ["reject without numbers", { type: "reject", requestId: 2, rejection: { kind: "egressRefused", message: "" } }],
  ["end", { type: "end", requestId: 2, sentPackets: 77 }],
  ["systematic data", { ...data, coding: { kind: "systematic", symbolIndex: 23, grant: 7 } }],
  ["seeded data", { ...data, coding: { kind: "seed", seed: 0xdeadbeef, grant: 200 } }],
  ["vector data", { ...data, coding: { kind: "vector", coefficients: Uint8Array.of(1, 2, 3) } }],
  [
    "symbol feedback",
    {
      ...feedback,
      final: false,
      reason: "none",
      received: { kind: "symbols", count: 9, bitmap: Uint8Array.of(255, 1) },
    },
  ],
  [
    "DoF feedback",
    {
      ...feedback,
      final: true,
      reason: "complete",
      received: { kind: "degreesOfFreedom", counts: Uint8Array.of(24, 3) },
    },
  ],
  ["request for a page", { ...request, token: "t", pageOrigin: "https://page.example" }],
  ["request in mode coded", { ...request, mode: "coded", share: { start: 16383, end: 32767, firstGeneration: 7 } }],
  [
    "grant",
    {
      type: "grant",
      requestId: 5,
      grantSequence: 9,
      fromSequence: 256,
      base: 3,
      runs: [
        { generationIndex: 3, count: 255 },
        { generationIndex: 4, count: 1 },
      ],
    },
  ],
  [
    "digest",
    {
      type: "digest",
      requestId: 3,
      firstGeneration: 65_534,
      digests: [new Uint8Array(LIMITS.digestBytes).fill(1), new Uint8Array(LIMITS.digestBytes).fill(255)],
    },
  ],
  ["digestsHeard", { type: "digestsHeard", requestId: 3, digestCount: 65_535 }],
  ["empty grant", { type: "grant", requestId: 5, grantSequence: 1, fromSequence: 0, base: 0, runs: [] }],
  [
    "plan of a part",
    {
      type: "plan",
      requestId: 3,
      head: {
        status: 200,
        totalBytes: 1,
        serverFetchMs: 0,
        headers: { etag: '"1"' },
        reads: [
          { from: 0, end: 2 },
          { from: 65_534, end: 65_535 },
        ],
      },
    },
  ],
  [
    "request for a part",
    {
      ...request,
      mode: "coded",
      share: { start: 0, end: 65_535, firstGeneration: 0 },
      sharing: {
        ownIndex: 1,
        firstGenerations: 2,
        readers: [
          { id: "first", weight: 1 },
          { id: "é", weight: 65_535 },
        ],
      },
    },
  ],
  ["ping", { type: "ping", token: 1 }],
  ["pong", { type: "pong", token: 2 }],
];

test.each(frames)("frames: a %s is read as it was written", (_name, frame) => {
  expect(parseFrame(encodeFrame(frame))).toEqual(frame);
});

test.each(frames)("frames: a truncated %s is an error at every length", (_name, frame) => {
  const bytes = encodeFrame(frame);
  const shortest = frame.type === "data" ? bytes.length - frame.payload.length + LIMITS.symbolBytesMin : bytes.length;
  for (let length = 0; length < shortest; length++) expect(parseFrame(bytes.slice(0, length)).type).toBe("parseError");
});

test.each(frames.filter(([, frame]) => frame.type !== "data"))(
  "frames: a %s with one byte too many is an error",
  (_name, frame) => {
    const bytes = encodeFrame(frame);
    expect(parseFrame(Uint8Array.from([...bytes, 0])).type).toBe("parseError");
  },
);

test("frames: the request id of each frame can be read without parsing", () => {
  for (const [, frame] of frames) {
    expect(requestIdOf(encodeFrame(frame))).toBe("requestId" in frame ? frame.requestId : undefined);
  }
  expect(requestIdOf(new Uint8Array(0))).toBeUndefined();
  expect(requestIdOf(Uint8Array.of(0x02, 0, 0, 0))).toBeUndefined();
});

const edges: [string, Partial<RequestFrame>, boolean][] = [
  ["symbolBytes at its least", { symbolBytes: LIMITS.symbolBytesMin }, true],
  ["symbolBytes under its least", { symbolBytes: LIMITS.symbolBytesMin - 1 }, false],
  ["symbolBytes at its most", { symbolBytes: LIMITS.symbolBytesMax }, true],
  ["symbolBytes over its most", { symbolBytes: LIMITS.symbolBytesMax + 1 }, false],
  ["generationSize 0", { generationSize: 0 }, false],
  ["generationSize at its most", { generationSize: LIMITS.generationSizeMax }, true],
  ["generationSize over its most", { generationSize: LIMITS.generationSizeMax + 1 }, false],
  ["windowPackets at its most", { windowPackets: LIMITS.windowPacketsMax }, true],
  ["windowPackets over its most", { windowPackets: LIMITS.windowPacketsMax + 1 }, false],
  ["a one-byte range", { range: { start: 5, end: 5 } }, true],
  ["mode coded and no share", { mode: "coded" }, false],
  ["an inverted share", { mode: "coded", share: { start: 2, end: 1, firstGeneration: 0 } }, false],
  ["an inverted range", { range: { start: 5, end: 4 } }, false],
  ["the longest URL", { url: "h".repeat(LIMITS.urlBytesMax) }, true],
  ["a URL one byte longer", { url: "h".repeat(LIMITS.urlBytesMax + 1) }, false],
  ["the longest page origin", { pageOrigin: "h".repeat(LIMITS.pageOriginBytesMax) }, true],
  ["a page origin one byte longer", { pageOrigin: "h".repeat(LIMITS.pageOriginBytesMax + 1) }, false],
];
test.each(edges)("frames: a request with %s", (_name, change, allowed) => {
  const parsed = parseFrame(encodeFrame({ ...request, ...change }));
  expect(parsed.type).toBe(allowed ? "request" : "parseError");
  if (parsed.type === "parseError") {
    expect(parsed.requestId).toBe(request.requestId);
    expect(parsed.rejection.message).toMatch(/got \d+, limit \d+/);
  }
});

test("frames: another protocol version is refused with its number", () => {
  const bytes = encodeFrame(request);
  bytes[1] = 1;
  expect(parseFrame(bytes)).toMatchObject({
    type: "parseError",
    requestId: 7,
    rejection: { kind: "versionUnsupported", got: 1, limit: 2 },
  });
});

const sharing = { ownIndex: 0, firstGenerations: 0, readers: [{ id: "a", weight: 1 }] };
const readers = Array.from({ length: LIMITS.readersMax + 1 }, () => sharing.readers[0]!);
test.each([
  ["no readers", { readers: [] }],
  ["too many readers", { readers }],
  ["a place that no reader has", { ownIndex: 1 }],
  ["a reader without weight", { readers: [{ id: "a", weight: 0 }] }],
  ["a reader with a long id", { readers: [{ id: "a".repeat(LIMITS.readerIdBytesMax + 1), weight: 1 }] }],
])("frames: a request for a part with %s is refused", (_name, change) => {
  const share = { start: 0, end: 1, firstGeneration: 0 };
  const asked: RequestFrame = { ...request, mode: "coded", share, sharing: { ...sharing, ...change } };
  expect(parseFrame(encodeFrame(asked))).toMatchObject({
    type: "parseError",
    rejection: { limit: expect.any(Number) },
  });
});

test("frames: the longest request for a part fits a message", () => {
  const share = { start: 0, end: 1, firstGeneration: 0 };
  const reader = { id: "a".repeat(LIMITS.readerIdBytesMax), weight: 1 };
  const most = { ...sharing, readers: readers.slice(1).map(() => reader) };
  const texts = { url: "h".repeat(LIMITS.urlBytesMax), token: "t".repeat(LIMITS.tokenBytesMax) };
  const asked: RequestFrame = { ...request, ...texts, mode: "coded", share, sharing: most };
  asked.pageOrigin = "p".repeat(LIMITS.pageOriginBytesMax);
  expect(parseFrame(encodeFrame(asked)).type).toBe("request");
});

test("frames: a plan of a part without a span reads nothing, and an inverted span is refused", () => {
  const head = { status: 200, totalBytes: 1, headers: {}, serverFetchMs: 0 };
  const planOf = (reads: { from: number; end: number }[]) =>
    parseFrame(encodeFrame({ type: "plan", requestId: 1, head: { ...head, reads } }));
  expect(planOf([])).toMatchObject({ head: { reads: [{ from: 0, end: 0 }] } });
  expect(planOf([{ from: 2, end: 1 }])).toMatchObject({ type: "parseError", rejection: { kind: "spanInverted" } });
});

test("frames: a data frame over the limit is refused, and the longest allowed one is accepted", () => {
  const coding = { kind: "vector", coefficients: new Uint8Array(4) } as const;
  const longest = encodeFrame({ ...data, coding, payload: new Uint8Array(LIMITS.symbolBytesMax) });
  expect(longest.length).toBe(LIMITS.dataFrameBytesMax);
  expect(parseFrame(longest).type).toBe("data");
  const over = encodeFrame({
    ...data,
    coding: { kind: "vector", coefficients: new Uint8Array(5) },
    payload: new Uint8Array(LIMITS.symbolBytesMax),
  });
  expect(parseFrame(over).type).toBe("parseError");
});

test("frames: a data frame is written to the memory that the caller gives", () => {
  const memory = new Uint8Array(LIMITS.dataFrameBytesMax);
  const frame = { ...data, coding: { kind: "seed", seed: 4, grant: 2 } } as const;
  const bytes = encodeData(frame, (byteCount) => memory.subarray(0, byteCount));
  expect(bytes.buffer).toBe(memory.buffer);
  expect(bytes).toEqual(encodeFrame(frame));
});

test("frames: a reject's message is cut at its limit, between two characters", () => {
  const message = "é".repeat(LIMITS.rejectMessageBytesMax);
  const parsed = parseFrame(encodeFrame({ type: "reject", requestId: 1, rejection: { kind: "internal", message } }));
  expect(parsed).toMatchObject({
    type: "reject",
    rejection: { message: "é".repeat(LIMITS.rejectMessageBytesMax / 2) },
  });
});

test("frames: 200,000 mutated frames and random bytes never throw (seed 1)", () => {
  const rng = xorshift128(1);
  const samples = frames.map(([, frame]) => encodeFrame(frame));
  for (let i = 0; i < 200_000; i++) {
    const base = rng() % 4 === 0 ? new Uint8Array(rng() % 64) : samples[rng() % samples.length]!.slice();
    for (let k = rng() % 6; k > 0 && base.length > 0; k--) base[rng() % base.length] = rng();
    const bytes = rng() % 3 === 0 ? base.subarray(0, rng() % (base.length + 1)) : base;
    parseFrame(bytes);
  }
});

test("frames: the longest frame of digests fits a data channel's packet, and a longer one is refused", () => {
  const digests = Array.from({ length: LIMITS.digestsPerFrameMax }, () => new Uint8Array(LIMITS.digestBytes));
  const longest = encodeFrame({ type: "digest", requestId: 1, firstGeneration: 0, digests });
  expect(longest.length).toBeLessThanOrEqual(LIMITS.channelMessageBytesMax);
  expect(parseFrame(longest).type).toBe("digest");
  for (const count of [0, LIMITS.digestsPerFrameMax + 1]) {
    const bytes = encodeFrame({
      type: "digest",
      requestId: 1,
      firstGeneration: 0,
      digests: Array(count).fill(digests[0]),
    });
    expect(parseFrame(bytes)).toMatchObject({ type: "parseError", rejection: { got: count } });
  }
});
