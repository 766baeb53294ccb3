/**
 * CoderPool on every native engine and on WebAssembly: the same bytes as the codec's own calls, the flow of batches,
 * misuse and cancelling.
 */
import { CodecError, type Codec } from "@tributary/protocol";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { nativeCodec } from "../test/codecs";
import { encoderOf as encoderFor, randomBytes, rejectedMisuseOf as misuseOf, same, seedsFrom } from "../test/reference";
import { createCoderPool, nativeEngineNames, SharedBuffers, type CoderPool } from "./index";

const SYMBOL_COUNT = 24;
const SYMBOL_BYTES = 1100;

const SOURCE = randomBytes(SYMBOL_COUNT * SYMBOL_BYTES, 3);
const plain = (bytes: number): Uint8Array => new Uint8Array(bytes);
const shared = (bytes: number): Uint8Array => new Uint8Array(new SharedArrayBuffer(bytes));
const sharedCopy = (from: Uint8Array): Uint8Array => {
  const copy = shared(from.length);
  copy.set(from);
  return copy;
};
const encoderOf = (codec: Codec) => encoderFor(codec, SOURCE, SYMBOL_BYTES);

function coded(codec: Codec, seeds: Uint32Array): Uint8Array {
  const out = plain(seeds.length * SYMBOL_BYTES);
  const encoder = encoderOf(codec);
  encoder.encodeSeeds(seeds, out);
  encoder.free();
  return out;
}

/** A batch that takes tens of milliseconds on the fastest engine, so that a test can see it in flight. */
const LONG_SEEDS = seedsFrom(1, 4096);
const LONG_BYTES = LONG_SEEDS.length * 16_384;
function longEncoder(codec: Codec) {
  return codec.createEncoder(64, 16_384);
}

const CODECS = [...nativeEngineNames().map(nativeCodec), loadWasmCodec()];
const pools: CoderPool[] = [];
function poolOf(codec: Codec, options?: Parameters<typeof createCoderPool>[1]): CoderPool {
  const pool = createCoderPool(codec, options);
  pools.push(pool);
  return pool;
}
afterAll(async () => {
  for (const pool of pools) pool.cancel();
  await Promise.all(pools.map((pool) => pool.close()));
});

describe.each(CODECS.map((codec) => [codec.engine, codec] as const))("pool on %s", (engine, codec) => {
  const pool = poolOf(codec);
  const seeds = seedsFrom(100, 53);
  const expected = coded(codec, seeds);

  test("has the name of the codec's engine", () => expect(pool.engine).toBe(engine));

  test.each([
    ["plain", plain],
    ["shared", shared],
  ] as const)("encodes to the same bytes as the codec, two batches of one encoder, into %s memory", async (_, take) => {
    const outs = [take(expected.length), take(expected.length)] as const;
    const encoder = encoderOf(codec);
    const done = await Promise.all(outs.map((out) => pool.encode({ encoder, seeds, out })));
    expect([done[0] === outs[0], done[1] === outs[1]]).toEqual([true, true]);
    expect(outs.map((out) => same(out, expected))).toEqual([true, true]);
    encoder.free();
  });

  test("writes a view in the middle of its buffer and leaves the neighbours alone", async () => {
    const encoder = encoderOf(codec);
    for (const backing of [plain(3 * SYMBOL_BYTES), shared(3 * SYMBOL_BYTES)]) {
      backing.fill(0xaa);
      const out = backing.subarray(SYMBOL_BYTES - 7, 2 * SYMBOL_BYTES - 7);
      await pool.encode({ encoder, seeds: seedsFrom(100, 1), out });
      expect(same(out, expected.subarray(0, SYMBOL_BYTES))).toBe(true);
      expect(
        backing.filter((byte, i) => byte !== 0xaa && (i < SYMBOL_BYTES - 7 || i >= 2 * SYMBOL_BYTES - 7)),
      ).toHaveLength(0);
    }
    encoder.free();
  });

  test.each([
    ["plain", plain, (bytes: Uint8Array) => bytes],
    ["shared", shared, sharedCopy],
  ] as const)("decodes systematic, seeded and vector symbols together, %s memory", async (_kind, allocate, placed) => {
    const indices = Uint32Array.of(3, 20);
    const vectors = seedsFrom(900, 4);
    const coefficients = placed(Buffer.concat([...vectors].map((seed) => codec.coefficients(seed, SYMBOL_COUNT))));
    const systematic = [...indices].map((i) => SOURCE.subarray(i * SYMBOL_BYTES, (i + 1) * SYMBOL_BYTES));
    const some = seeds.subarray(0, 24);
    const payloads = placed(Buffer.concat([...systematic, coded(codec, some), coded(codec, vectors)]));
    const out = allocate(SOURCE.length);
    const batch = {
      symbolCount: SYMBOL_COUNT,
      symbolBytes: SYMBOL_BYTES,
      indices,
      seeds: some,
      coefficients,
      payloads,
      out,
    };
    expect(await pool.decode(batch)).toEqual({ rank: SYMBOL_COUNT, innovative: SYMBOL_COUNT });
    expect(same(out, SOURCE)).toBe(true);
  });

  test("adds batches to one decoder in order, and reads in a batch of its own", async () => {
    const decoder = codec.createDecoder(SYMBOL_COUNT, SYMBOL_BYTES);
    const parts = Array.from({ length: 9 }, (_, i) => seeds.subarray(3 * i, 3 * i + 3));
    const results = parts.map((part) => pool.decode({ decoder, seeds: part, payloads: coded(codec, part) }));
    const out = plain(2 * SYMBOL_BYTES);
    const read = pool.decode({ decoder, out, firstIndex: 22 });
    expect((await Promise.all(results)).map(({ rank }) => rank)).toEqual([3, 6, 9, 12, 15, 18, 21, 24, 24]);
    expect(await read).toEqual({ rank: SYMBOL_COUNT, innovative: 0 });
    expect(same(out, SOURCE.subarray(22 * SYMBOL_BYTES))).toBe(true);
    decoder.free();
  });

  test("too few symbols reject with the first undetermined symbol and the rank, and write nothing", async () => {
    const out = plain(SOURCE.length);
    const some = seeds.subarray(0, 23);
    const batch = {
      symbolCount: SYMBOL_COUNT,
      symbolBytes: SYMBOL_BYTES,
      seeds: some,
      payloads: coded(codec, some),
      out,
    };
    expect(await misuseOf(pool.decode(batch))).toEqual({ what: "notDecoded", got: 0, limit: 23 });
    expect(out.every((byte) => byte === 0)).toBe(true);
  });

  test("a wrong length is a CodecError with the length and the limit", async () => {
    const encoder = encoderOf(codec);
    const shape = { symbolCount: 4, symbolBytes: 10 };
    const two = seedsFrom(1, 2);
    const cases: [Promise<unknown>, string, number, number][] = [
      [pool.encode({ encoder, seeds: two, out: plain(2199) }), "out", 2199, 2200],
      [pool.encode({ encoder, seeds: two, out: plain(2201) }), "out", 2201, 2200],
      [pool.encode({ encoder, seeds: Uint32Array.of(), out: plain(0) }), "seeds", 0, 1],
      [pool.decode({ ...shape, seeds: two, payloads: plain(21) }), "payloads", 21, 20],
      [pool.decode({ ...shape, coefficients: plain(9), payloads: plain(30) }), "coefficients", 9, 12],
      [pool.decode({ ...shape, indices: Uint32Array.of(4), payloads: plain(10) }), "index", 4, 3],
      [pool.decode({ ...shape, symbolCount: 257, seeds: two, payloads: plain(20) }), "symbolCount", 257, 256],
      [pool.decode({ ...shape, seeds: two, payloads: plain(20), out: plain(39) }), "out", 39, 40],
      [pool.decode(shape), "symbols", 0, 1],
    ];
    for (const [promise, what, got, limit] of cases) expect(await misuseOf(promise)).toEqual({ what, got, limit });
    encoder.free();
  });
});

describe.each([
  ["native", nativeCodec()],
  ["wasm", loadWasmCodec()],
] as const)("pool flow, %s", (_name, codec) => {
  const seeds = seedsFrom(1, 100);
  const encoder = encoderOf(codec);
  const batch = () => ({ encoder, seeds, out: shared(seeds.length * SYMBOL_BYTES) });

  test("the event loop turns between two batches that follow each other", async () => {
    const pool = poolOf(codec, { batchesMax: 8 });
    let turns = 0;
    let isOver = false;
    const turn = (): void => void (isOver || (turns++, setImmediate(turn)));
    turn();
    for (let i = 0; i < 50; i++) {
      const before = turns;
      await pool.encode(batch());
      expect(turns).toBeGreaterThan(before);
    }
    isOver = true;
  });

  test("refuses a batch over the limit", async () => {
    const pool = poolOf(codec, { batchesMax: 2 });
    const first = [pool.encode(batch()), pool.encode(batch())];
    expect(pool.inFlight).toBe(2);
    expect(await misuseOf(pool.encode(batch()))).toEqual({ what: "batches", got: 3, limit: 2 });
    await Promise.all(first);
    expect(pool.inFlight).toBe(0);
    await pool.encode(batch());
  });

  test("a signal drops a waiting batch, stops a running one, and gives its reason to both", async () => {
    const pool = poolOf(codec, { threads: 1 });
    const controller = new AbortController();
    const encoder = longEncoder(codec);
    const [running, waiting] = [0, 1].map(() =>
      pool
        .encode({ encoder, seeds: LONG_SEEDS, out: shared(LONG_BYTES), signal: controller.signal })
        .catch((error: unknown) => error),
    );
    const other = pool.encode(batch());
    await new Promise((resolve) => setTimeout(resolve, 1));
    const reason = new Error("enough");
    controller.abort(reason);
    expect(await Promise.all([running, waiting])).toEqual([reason, reason]);
    expect(await other).toBeInstanceOf(Uint8Array);
    await expect(pool.encode({ ...batch(), signal: controller.signal })).rejects.toBe(reason);
    encoder.free();
  });

  test("cancel() rejects every batch, coders can be freed at once, and the pool still works", async () => {
    const pool = poolOf(codec);
    const encoder = longEncoder(codec);
    const all = Array.from({ length: 6 }, () =>
      misuseOf(pool.encode({ encoder, seeds: LONG_SEEDS, out: shared(LONG_BYTES) })),
    );
    pool.cancel();
    encoder.free();
    expect((await Promise.all(all)).map((misuse) => misuse?.what)).toEqual(new Array(6).fill("cancelled"));
    expect(same(await pool.encode(batch()), coded(codec, seeds))).toBe(true);
  });

  test("close() lets batches in flight finish and refuses new ones", async () => {
    const pool = poolOf(codec);
    const last = pool.encode(batch());
    const closed = pool.close();
    expect(await misuseOf(pool.encode(batch()))).toEqual({ what: "closed", got: 0, limit: 0 });
    await closed;
    expect(same(await last, coded(codec, seeds))).toBe(true);
    await pool.close();
  });

  test.each([
    ["threads", 1, 256],
    ["batchesMax", 1, 65_536],
  ] as const)("%s is refused outside its limits", async (name, least, most) => {
    for (const value of [least, most]) await createCoderPool(codec, { [name]: value }).close();
    for (const value of [least - 1, most + 1, 1.5])
      expect(() => createCoderPool(codec, { [name]: value })).toThrow(CodecError);
  });
});

describe("pool misuse while in flight", () => {
  const codec = nativeCodec();
  const pool = poolOf(codec, { threads: 1 });
  const one = { encoder: encoderOf(codec), seeds: Uint32Array.of(1) };
  afterEach(async () => {
    pool.cancel();
    while (pool.inFlight > 0) await new Promise((resolve) => setImmediate(resolve));
  });
  const long = (out: Uint8Array, signal?: AbortSignal) => {
    const encoder = longEncoder(codec);
    const settled = misuseOf(pool.encode({ encoder, seeds: LONG_SEEDS, out, ...(signal && { signal }) }));
    return { encoder, settled };
  };

  test.each([
    ["plain", plain],
    ["shared", shared],
  ] as const)("two batches with the same %s output are refused", async (_kind, allocate) => {
    const out = allocate(LONG_BYTES);
    const { settled } = long(out);
    const other = misuseOf(pool.encode({ ...one, out: out.subarray(50, 1150) }));
    expect(await other).toEqual({ what: "bytesInFlight", got: 1100, limit: 0 });
    const elsewhere = poolOf(codec);
    const third = misuseOf(elsewhere.encode({ ...one, out: out.subarray(0, 1100) }));
    expect(await third).toEqual({ what: "bytesInFlight", got: 1100, limit: 0 });
    pool.cancel();
    expect((await settled)?.what).toBe("cancelled");
    const again = misuseOf(pool.encode({ ...one, out: out.subarray(0, 1100) }));
    expect(await again).toBeUndefined();
  });

  test("an input that is also the output is refused", async () => {
    const both = sharedCopy(SOURCE);
    const batch = {
      symbolCount: 2,
      symbolBytes: SYMBOL_BYTES,
      indices: Uint32Array.of(0, 1),
      payloads: both.subarray(0, 2 * SYMBOL_BYTES),
      out: both.subarray(0, 2 * SYMBOL_BYTES),
    };
    expect(await misuseOf(pool.decode(batch))).toEqual({ what: "bytesInFlight", got: 2200, limit: 0 });
  });

  test("an encoder refuses free() and setSymbols(), and encodeSeeds() still works", () => {
    const { encoder } = long(shared(LONG_BYTES));
    for (const use of [() => encoder.free(), () => encoder.setSymbols(0, plain(1))]) {
      expect(use).toThrow(expect.objectContaining({ what: "batchesInFlight", got: 1, limit: 0 }));
    }
    encoder.encodeSeeds(Uint32Array.of(1), plain(16_384));
    pool.cancel();
    encoder.free();
    expect(() => encoder.encodeSeeds(Uint32Array.of(1), plain(16_384))).toThrow(
      expect.objectContaining({ what: "freed" }),
    );
  });

  test("a decoder refuses every call", async () => {
    const decoder = codec.createDecoder(2, 4);
    const adding = pool.decode({ decoder, indices: Uint32Array.of(1), payloads: plain(4) });
    const uses = [
      () => decoder.rank,
      () => decoder.isDecoded(0),
      () => decoder.read(1, 1, plain(4)),
      () => decoder.free(),
      () => decoder.addSeeded(1, plain(4)),
    ];
    for (const use of uses) expect(use).toThrow(expect.objectContaining({ what: "batchesInFlight", got: 1, limit: 0 }));
    expect(await adding).toEqual({ rank: 1, innovative: 1 });
    decoder.free();
    expect((await misuseOf(pool.decode({ decoder, indices: Uint32Array.of(1), payloads: plain(4) })))?.what).toBe(
      "freed",
    );
  });

  test("an output that was detached or shrunk is a CodecError when the batch is done", async () => {
    const detached = plain(1100);
    const first = misuseOf(pool.encode({ ...one, out: detached }));
    structuredClone(detached.buffer, { transfer: [detached.buffer] });
    expect(await first).toEqual({ what: "out", got: 0, limit: 1100 });
    // eslint-disable-next-line @typescript-eslint/no-explicit-any
    const resizable = new (ArrayBuffer as any)(2000, { maxByteLength: 4000 });
    const second = misuseOf(pool.encode({ ...one, out: new Uint8Array(resizable, 0, 1100) }));
    resizable.resize(1000);
    expect(await second).toEqual({ what: "out", got: 0, limit: 1100 });
  });

  test("an input may be detached", async () => {
    const seeds = seedsFrom(1, SYMBOL_COUNT + 2);
    const payloads = coded(codec, seeds);
    const out = plain(SOURCE.length);
    const shape = { symbolCount: SYMBOL_COUNT, symbolBytes: SYMBOL_BYTES };
    const decoding = pool.decode({ ...shape, seeds, payloads, out });
    structuredClone(payloads.buffer, { transfer: [payloads.buffer] });
    structuredClone(seeds.buffer, { transfer: [seeds.buffer] });
    await decoding;
    expect(same(out, SOURCE)).toBe(true);
  });

  test("an argument of the wrong type is a CodecError that names it", async () => {
    const encoder = encoderOf(codec);
    const seeds = Uint32Array.of(1);
    for (const value of [
      null,
      5,
      "abc",
      {},
      [1],
      new ArrayBuffer(10),
      new Int8Array(10),
      new Float64Array(2),
    ] as never[]) {
      expect((await misuseOf(pool.encode({ encoder, seeds, out: value })))?.what).toBe("out");
      expect((await misuseOf(pool.encode({ encoder: value, seeds, out: plain(1100) })))?.what).toBe("coder");
      const decode = { symbolCount: 2, symbolBytes: 1, seeds, payloads: value };
      if (value !== null) expect((await misuseOf(pool.decode(decode)))?.what).toBe("payloads");
    }
    for (const value of [0, -1, 1.5, NaN, "1", undefined] as never[]) {
      const decode = { symbolCount: 2, symbolBytes: value, seeds, payloads: plain(1) };
      expect((await misuseOf(pool.decode(decode)))?.what).toBe("symbolBytes");
    }
    const decoder = codec.createDecoder(2, 2);
    expect((await misuseOf(pool.encode({ encoder: decoder as never, seeds, out: plain(2) })))?.what).toBe("coder");
    const foreign = loadWasmCodec().createEncoder(2, 2);
    expect((await misuseOf(pool.encode({ encoder: foreign, seeds, out: plain(2) })))?.what).toBe("coder");
  });
});

test("shared buffers: are used again, refuse foreign buffers, and keep no more than their limit", async () => {
  const buffers = new SharedBuffers(250);
  const [a, b, c] = [buffers.take(100), buffers.take(100), buffers.take(100)];
  for (const view of [a, b, c]) buffers.give(view);
  const again = [buffers.take(100), buffers.take(100), buffers.take(100)];
  expect(again.slice(0, 2)).toEqual([b, a].map((view) => expect.objectContaining({ buffer: view.buffer })));
  expect(again[2]!.buffer).not.toBe(c.buffer);
  buffers.give(a);
  for (const wrong of [a, plain(100)])
    expect(() => buffers.give(wrong)).toThrow(expect.objectContaining({ what: "buffer", got: 100 }));
});
