/** Tests which symbols a sender makes, how many, and when. transfer.test.ts shows that they decode. */
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import type { Codec } from "../codec";
import { parseFrame } from "../wire/frames";
import { BATCH_SYMBOLS_MAX } from "./coded-symbols";
import { xorshift128 } from "../rng";
import { Sender } from "./sender";
import type { DataFrame, GrantedRun, MutpMode, RequestFrame } from "../types";

const wasm = loadWasmCodec();
const SYMBOL_BYTES = 100;
const GENERATION_SIZE = 40;
const body = Uint8Array.from({ length: 5 * GENERATION_SIZE * SYMBOL_BYTES }, (_, i) => (i * 31) >> 3);
const source = {
  totalBytes: body.length,
  availableBytes: body.length,
  view: (start: number, end: number) => body.subarray(start, end),
};

/** A sender whose codec notes the number of seeds of each call, and whose share is empty: all it sends is coded. */
function senderOf(mode: MutpMode) {
  const batches: number[] = [];
  const codec: Codec = {
    ...wasm,
    createEncoder: (symbolCount, symbolBytes) => {
      const encoder = wasm.createEncoder(symbolCount, symbolBytes);
      return {
        symbolCount,
        symbolBytes,
        setSymbols: (firstIndex, bytes) => encoder.setSymbols(firstIndex, bytes),
        encodeVector: (coefficients, out) => encoder.encodeVector(coefficients, out),
        free: () => encoder.free(),
        encodeSeeds: (seeds, out) => {
          batches.push(seeds.length);
          encoder.encodeSeeds(seeds, out);
        },
      };
    },
  };
  const request: RequestFrame = {
    type: "request",
    requestId: 1,
    mode,
    symbolBytes: SYMBOL_BYTES,
    generationSize: GENERATION_SIZE,
    windowPackets: 4096,
    url: "http://o/",
    ...(mode === "coded" ? { share: { start: 0, end: 0, firstGeneration: 5 } } : {}),
  };
  const sender = new Sender({ request, codec, rng: xorshift128(1), nowMs: 0 });
  sender.handlePlan({ status: 200, totalBytes: body.length, headers: {}, serverFetchMs: 0 }, source);
  const data = (count: number): DataFrame[] => {
    const frames: DataFrame[] = [];
    while (frames.length < count) {
      const message = sender.pollTransmit(0);
      if (!message) break;
      const frame = parseFrame(message);
      if (frame.type === "data") frames.push(frame);
    }
    return frames;
  };
  const grant = (grantSequence: number, fromSequence: number, runs: GrantedRun[]) =>
    sender.handleFrame({ type: "grant", requestId: 1, grantSequence, fromSequence, base: 0, runs }, 0);
  return { batches, data, grant };
}

const seedOf = ({ coding }: DataFrame): number => (coding.kind === "seed" ? coding.seed : -1);

test("coded symbols: a generation's packets are made in full batches and one smaller rest", () => {
  const { batches, data, grant } = senderOf("coded");
  grant(1, 0, [{ generationIndex: 0, count: GENERATION_SIZE }]);
  expect(BATCH_SYMBOLS_MAX).toBe(16);
  expect(data(GENERATION_SIZE).map(({ generationIndex }) => generationIndex)).toEqual(Array(GENERATION_SIZE).fill(0));
  expect(batches).toEqual([16, 16, 8]);
});

test("coded symbols: no more symbols are made than the grant allows, at its last packet too", () => {
  const { batches, data, grant } = senderOf("coded");
  grant(
    1,
    0,
    [5, 5, 5, 5, 6].map((count, generationIndex) => ({ generationIndex, count })),
  );
  expect(data(1000)).toHaveLength(5 * 5 + 1);
  expect(batches).toEqual([5, 5, 5, 5, 6]);
  grant(2, 26, [
    { generationIndex: 2, count: 3 },
    { generationIndex: 1, count: 1 },
    { generationIndex: 2, count: 20 },
  ]);
  expect(data(1000)).toHaveLength(24);
  expect(batches.slice(5)).toEqual([3, 1, 16, 4]);
});

test("coded symbols: a new grant for the same generation uses up the batch, and one for another drops it", () => {
  const { batches, data, grant } = senderOf("coded");
  grant(1, 0, [{ generationIndex: 0, count: GENERATION_SIZE }]);
  data(2);
  grant(2, 2, [
    { generationIndex: 0, count: 14 },
    { generationIndex: 3, count: 40 },
  ]);
  data(15);
  expect(batches).toEqual([16, 16]);
  grant(3, 17, [{ generationIndex: 4, count: 2 }]);
  const frames = data(1000);
  expect(frames.map(({ generationIndex }) => generationIndex)).toEqual([4, 4]);
  expect(batches).toEqual([16, 16, 2]);
});

test("coded symbols: each packet has its own seed and bytes, which belong to its generation", () => {
  const { data, grant } = senderOf("coded");
  grant(
    1,
    0,
    [0, 1, 2, 3, 4].map((generationIndex) => ({ generationIndex, count: GENERATION_SIZE })),
  );
  const frames = data(5 * GENERATION_SIZE);
  expect(new Set(frames.map(seedOf)).size).toBe(5 * GENERATION_SIZE);
  for (const frame of frames) {
    const encoder = wasm.createEncoder(GENERATION_SIZE, SYMBOL_BYTES);
    const start = frame.generationIndex * GENERATION_SIZE * SYMBOL_BYTES;
    encoder.setSymbols(0, body.subarray(start, start + GENERATION_SIZE * SYMBOL_BYTES));
    const wanted = new Uint8Array(SYMBOL_BYTES);
    encoder.encodeSeeds(Uint32Array.of(seedOf(frame)), wanted);
    encoder.free();
    expect(frame.payload).toEqual(wanted);
  }
});

test("coded symbols: the paper's scheduler changes generation with each packet and makes one symbol at a time", () => {
  const { batches, data } = senderOf("coded-mutp");
  data(20);
  expect(batches).toEqual(Array(20).fill(1));
});
