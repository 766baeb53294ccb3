/** What proxies say late, and what they say by rejecting a request: protocol.md §5.2 and §9.1. */
import type { Rejection } from "@tributary/contract";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { LIMITS, TIMING } from "../limits";
import type { Frame, PlanHead } from "../types";
import { encodeFrame } from "../wire/frames";
import { Receiver } from "./receiver";

const codec = loadWasmCodec();
const SYMBOL_BYTES = 100;
const HEAD: PlanHead = { status: 200, totalBytes: 4000, headers: {}, serverFetchMs: 0 };
const TOO_LONG: Rejection = { kind: "chunkTooLarge", message: "too long", got: 5e7, limit: LIMITS.chunkBytesMax };
const UNKNOWN: Rejection = { kind: "lengthUnknown", message: "unknown" };
const digest = (name: number): Uint8Array => new Uint8Array(LIMITS.digestBytes).fill(name);

/** A number: the symbol with this index of the first generation. */
type Word = PlanHead | Rejection | Uint8Array[] | number;

function frameOf(word: Word): Frame {
  if (typeof word === "number") {
    const coding = { kind: "systematic", symbolIndex: word, grant: 0 } as const;
    const payload = new Uint8Array(SYMBOL_BYTES).fill(word);
    return { type: "data", requestId: 1, sequence: word, generationIndex: 0, coding, payload };
  }
  if (Array.isArray(word)) return { type: "digest", requestId: 1, firstGeneration: 0, digests: word };
  if ("kind" in word) return { type: "reject", requestId: 1, rejection: word };
  return { type: "plan", requestId: 1, head: word };
}

/** Proxies speak in this order. Returns the receiver's events, and each proxy's failure. */
function heard(words: [proxyIndex: number, word: Word][], untilMs = 10) {
  const options = {
    requestId: 1,
    url: "http://o/",
    mode: "uncoded-mutp",
    codec,
    symbolBytes: SYMBOL_BYTES,
    generationSize: 8,
  } as const;
  const receiver = new Receiver({ ...options, proxyCount: 4, nowMs: 0, hash: () => digest(1) });
  for (const index of [0, 1, 2, 3]) receiver.handleProxyReady(index, 0);
  while (receiver.pollTransmit(0)) continue;
  words.forEach(([index, word], at) => receiver.handleFrame(index, encodeFrame(frameOf(word)), at));
  receiver.handleTimeout(untilMs);
  const events: string[] = [];
  for (let event = receiver.pollEvent(); event; event = receiver.pollEvent())
    events.push(event.kind === "failed" ? event.rejection.kind : event.kind);
  const errors = receiver.stats().proxies.map(({ error }) => error?.kind);
  receiver.free();
  return { events, errors };
}

const OTHER = { ...HEAD, totalBytes: 77 };

describe.each([TOO_LONG, UNKNOWN])(
  "receiver: a rejection over the body's length counts as a statement ($kind)",
  (no) => {
    test("of one liar of four, which comes first, it has no effect", () => {
      const { events, errors } = heard([
        [0, no],
        [1, HEAD],
        [2, HEAD],
      ]);
      expect(events).toEqual(["head"]);
      expect(errors).toEqual(["planMismatch", undefined, undefined, undefined]);
    });

    test("of two proxies it ends the request, whatever one liar says first", () => {
      expect(
        heard([
          [0, HEAD],
          [1, no],
        ]).events,
      ).toEqual([]);
      expect(heard([[0, HEAD], [1, no], [2, no]]).events).toEqual([no.kind]); // prettier-ignore
      expect(heard([[1, no], [2, no]]).events).toEqual([no.kind]); // prettier-ignore
    });

    test("of one proxy it ends the request if no other speaks within the time", () => {
      expect(heard([[0, no]]).events).toEqual([]);
      expect(heard([[0, no]], TIMING.confirmMs + 1).events).toEqual([no.kind]);
    });
  },
);

describe("receiver: two liars of four come first", () => {
  const agreed: [number, Word][] = [0, 1].map((index) => [index, OTHER]);

  test("a false plan fails the request when both others contradict it", () => {
    expect(heard([...agreed, [2, HEAD]]).events).toEqual(["head"]);
    expect(heard([...agreed, [2, HEAD], [3, HEAD]]).events).toEqual(["head", "planMismatch"]);
    expect(heard([...agreed, [2, HEAD], [3, UNKNOWN]]).events).toEqual(["head", "planMismatch"]);
  });

  const planned: [number, Word][] = [0, 1, 2, 3].map((index) => [index, HEAD]);
  const lies: [number, Word][] = [0, 1].map((index) => [index, [digest(1), digest(9)]]);

  test("false digests fail the request when both others contradict them", () => {
    const one = heard([...planned, ...lies, [2, [digest(1), digest(2)]]]);
    expect(one).toEqual({ events: ["head"], errors: [undefined, undefined, "bodyDiffers", undefined] });
    const truth: Word = [digest(1), digest(2)];
    expect(heard([...planned, ...lies, [2, truth], [3, truth]]).events).toEqual(["head", "bodyDiffers"]);
  });
});

/** A proxy says all this one after the other. */
const saysAll = (index: number, ...words: Word[]): [number, Word][] => words.map((word) => [index, word]);
const SYMBOLS = [0, 1, 2, 3, 4, 5, 6, 7];

describe("receiver: a body that two of four proxies bring before the others speak", () => {
  const SHORT = { ...HEAD, totalBytes: 8 * SYMBOL_BYTES };
  const brought = [...saysAll(0, SHORT, [digest(1)], ...SYMBOLS), ...saysAll(1, SHORT, [digest(1)])];
  const empty = saysAll(0, { ...HEAD, totalBytes: 0 }).concat(saysAll(1, { ...HEAD, totalBytes: 0 }));

  test("has no end as long as the others may contradict its length", () => {
    expect(heard(brought).events).toEqual(["head"]);
    expect(heard([...brought, [2, HEAD]]).events).toEqual(["head"]);
    expect(heard([...brought, [2, HEAD], [3, HEAD]]).events).toEqual(["head", "planMismatch"]);
    expect(heard(empty).events).toEqual(["head"]);
    expect(heard([...empty, [2, HEAD], [3, HEAD]]).events).toEqual(["head", "planMismatch"]);
  });

  test("ends when a third one agrees, or when the others have had their time", () => {
    expect(heard([...brought, [2, SHORT]]).events).toEqual(["head", "bytes", "complete"]);
    expect(heard(brought, 2 * TIMING.confirmMs).events).toEqual(["head", "bytes", "complete"]);
    expect(heard([...empty, [2, { ...HEAD, totalBytes: 0 }]]).events).toEqual(["head", "complete"]);
    expect(heard(empty, 2 * TIMING.confirmMs).events).toEqual(["head", "complete"]);
  });
});

test("receiver: a proxy that was convicted before it announced digests contradicts the decided ones", () => {
  const planned: [number, Word][] = [0, 1, 2, 3].map((index) => [index, HEAD]);
  const lies: [number, Word][] = [0, 1].map((index) => [index, [digest(9)]]);
  const convicted = [...planned, ...lies, ...saysAll(2, ...SYMBOLS)];
  expect(heard(convicted)).toEqual({ events: ["head"], errors: [undefined, undefined, "digestMismatch", undefined] });
  expect(heard([...convicted, [3, [digest(1)]]]).events).toEqual(["head", "bodyDiffers"]);
});

test("receiver: the last proxy's digests, which outvote the decided ones too, end the request once", () => {
  const gone: Rejection = { kind: "originUnreachable", message: "gone" };
  const planned: [number, Word][] = [0, 1, 2, 3].map((index) => [index, HEAD]);
  const lies: [number, Word][] = [0, 1].map((index) => [index, [digest(9)]]);
  const alone: [number, Word][] = [...planned, ...lies, ...saysAll(2, ...SYMBOLS), [0, gone], [1, gone]];
  expect(heard([...alone, [3, [digest(1)]]]).events).toEqual(["head", "bodyDiffers"]);
});

test("receiver: a proxy that was convicted after it announced the decided digests contradicts nothing", () => {
  const planned: [number, Word][] = [0, 1, 2].map((index) => [index, HEAD]);
  const truth: [number, Word][] = [0, 1].map((index) => [index, [digest(9)]]);
  const { events, errors } = heard([...planned, ...truth, ...saysAll(0, ...SYMBOLS), [2, [digest(8)]]]);
  expect([events, errors[0], errors[2]]).toEqual([["head"], "digestMismatch", "bodyDiffers"]);
});
