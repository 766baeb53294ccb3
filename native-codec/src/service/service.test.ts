/**
 * The coder service: bytes, order, bounds, cancelling and lost coders. Coders whose pieces the test ends show the
 * order; real pools show the bytes.
 */
import { CodecError, type Codec, type Encoder } from "@tributary/protocol";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { createCoderPool, loadNativeCodec, SharedBuffers } from "../index";
import { CoderLostError, cpuCoder, only, slowedCoder, type Coder } from "./coder";
import { CoderService, type CoderServiceOptions } from "./service";
import type { Piece, PieceResult } from "./task";

const wasm = loadWasmCodec();
const native = loadNativeCodec().codec;
const codecs: [string, Codec][] = [["wasm", wasm], ...(native ? [["native", native] as [string, Codec]] : [])];
const buffers = new SharedBuffers();
const settled = () => new Promise((resolve) => setImmediate(resolve));

const services: CoderService[] = [];
function serviceOf(options: CoderServiceOptions): CoderService {
  const service = new CoderService(options);
  services.push(service);
  return service;
}
afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.close()));
});

function encoderOf(codec: Codec, symbolCount: number, symbolBytes: number): Encoder {
  const encoder = codec.createEncoder(symbolCount, symbolBytes);
  encoder.setSymbols(
    0,
    Uint8Array.from({ length: symbolCount * symbolBytes }, (_, i) => (i * 31) ^ (i >> 7)),
  );
  return encoder;
}

const seedsOf = (count: number, first = 1): Uint32Array => Uint32Array.from({ length: count }, (_, i) => first + i);

/** A coder whose pieces wait for the test. */
class HeldCoder implements Coder {
  readonly pieces: { piece: Piece; end: () => void; fail: (error: Error) => void }[] = [];
  isClosed = false;
  constructor(
    readonly name: string,
    readonly slots = 1,
    readonly piecesMax = slots,
  ) {}
  takes = () => true;
  run = (piece: Piece): Promise<PieceResult> =>
    new Promise((resolve, reject) => {
      const end = (): void => {
        if (piece.kind === "encode") piece.encoder.encodeSeeds(piece.seeds, piece.out);
        resolve(new Uint8Array(0));
      };
      this.pieces.push({ piece, end, fail: reject });
    });
  close = async (): Promise<void> => {
    this.isClosed = true;
    for (const { fail } of this.pieces.splice(0)) fail(new CoderLostError("closed"));
  };
  async endNext(): Promise<Piece> {
    const { piece, end } = this.pieces.shift()!;
    end();
    await settled();
    return piece;
  }
}

/** The first seed of each piece tells its task. */
const firstSeed = (piece: Piece): number => (piece.kind === "encode" ? piece.seeds[0]! : -1);

describe.each(codecs)("on threads, codec %s", (_, codec) => {
  const pools = (threads: number) => createCoderPool(codec, { threads });

  test("encodes as the encoder does, whatever coders share the rows", async () => {
    const coders = [cpuCoder(pools(2)), slowedCoder(pools(1), 3)];
    const service = serviceOf({ codec, coders });
    for (const [symbolCount, symbolBytes, rows] of [
      [1, 1, 1],
      [24, 1100, 7],
      [128, 1088, 300],
      [255, 65, 33],
    ] as const) {
      const encoder = encoderOf(codec, symbolCount, symbolBytes);
      const seeds = seedsOf(rows, 77);
      const wanted = new Uint8Array(rows * symbolBytes);
      encoder.encodeSeeds(seeds, wanted);
      for (let again = 0; again < 3; again++) {
        const out = buffers.take(rows * symbolBytes);
        expect(await service.encode({ encoder, seeds, out })).toBe(out);
        expect(Buffer.compare(out, wanted)).toBe(0);
        buffers.give(out);
      }
      encoder.free();
    }
    expect(service.counts).toMatchObject({ doneTasks: 12, shedTasks: 0, failedTasks: 0 });
    expect(service.bytes).toBe(0);
  });

  test("recodes as the recoder does, and decodes what it recoded", async () => {
    const service = serviceOf({ codec, coders: [cpuCoder(pools(2))] });
    const [symbolCount, symbolBytes, heldCount] = [20, 90, 20];
    const encoder = encoderOf(codec, symbolCount, symbolBytes);
    const recoder = codec.createRecoder(symbolCount, symbolBytes);
    const rowBytes = symbolCount + symbolBytes;
    const received = buffers.take(heldCount * rowBytes);
    for (let i = 0; i < heldCount; i++) {
      const row = received.subarray(i * rowBytes, (i + 1) * rowBytes);
      row.set(codec.coefficients(500 + i, symbolCount));
      encoder.encodeSeeds(Uint32Array.of(500 + i), row.subarray(symbolCount));
      expect(recoder.addVector(row.subarray(0, symbolCount), row.subarray(symbolCount))).toBe(true);
    }
    const seeds = seedsOf(40);
    const out = buffers.take(seeds.length * rowBytes);
    await service.recode({ symbolCount, symbolBytes, received, seeds, out });
    const [vector, payload] = [new Uint8Array(symbolCount), new Uint8Array(symbolBytes)];
    seeds.forEach((seed, i) => {
      recoder.recode(seed, vector, payload);
      expect(Buffer.compare(out.subarray(i * rowBytes, (i + 1) * rowBytes), Buffer.concat([vector, payload]))).toBe(0);
    });
    const decoder = codec.createDecoder(symbolCount, symbolBytes);
    const coefficients = buffers.take(seeds.length * symbolCount);
    const payloads = buffers.take(seeds.length * symbolBytes);
    seeds.forEach((_seed, i) => {
      coefficients.set(out.subarray(i * rowBytes, i * rowBytes + symbolCount), i * symbolCount);
      payloads.set(out.subarray(i * rowBytes + symbolCount, (i + 1) * rowBytes), i * symbolBytes);
    });
    const source = buffers.take(symbolCount * symbolBytes);
    const result = await service.decode({ work: { decoder, coefficients, payloads, out: source } });
    expect(result.rank).toBe(symbolCount);
    expect(Uint8Array.from(source)).toEqual(
      Uint8Array.from({ length: source.length }, (_value, i) => (i * 31) ^ (i >> 7)),
    );
    for (const coder of [encoder, recoder, decoder]) coder.free();
  });

  test("refuses bad shapes with typed errors, and goes on", async () => {
    const service = serviceOf({ codec, coders: [cpuCoder(pools(1))] });
    const encoder = encoderOf(codec, 4, 8);
    const out = new Uint8Array(8);
    const refused = async (promise: Promise<unknown>): Promise<string> => {
      const error: unknown = await promise.then(
        () => "no error",
        (reason: unknown) => reason,
      );
      expect(error).toBeInstanceOf(CodecError);
      return (error as CodecError).what;
    };
    const seeds = seedsOf(1);
    expect(await refused(service.encode({ encoder, seeds: new Uint32Array(0), out }))).toBe("seeds");
    expect(await refused(service.encode({ encoder, seeds, out: new Uint8Array(7) }))).toBe("out");
    const recode = { symbolCount: 4, symbolBytes: 4, received: new Uint8Array(8), seeds, out };
    expect(await refused(service.recode({ ...recode, received: new Uint8Array(0) }))).toBe("received");
    expect(await refused(service.recode({ ...recode, received: new Uint8Array(9) }))).toBe("received");
    expect(await refused(service.recode({ ...recode, received: new Uint8Array(5 * 8) }))).toBe("received");
    expect(await refused(service.recode({ ...recode, symbolBytes: 0, out: new Uint8Array(4) }))).toBe("symbolBytes");
    expect(await refused(service.recode({ ...recode, symbolCount: 0, out: new Uint8Array(4) }))).toBe("symbolCount");
    // Two received rows of a generation that no codec has.
    const many = { symbolCount: 257, received: new Uint8Array(2 * 261), out: new Uint8Array(261) };
    expect(await refused(service.recode({ ...recode, ...many }))).toBe("symbolCount");
    const huge = 65_536;
    const long = { symbolBytes: huge, received: new Uint8Array(huge + 4), out: new Uint8Array(huge + 4) };
    expect(await refused(service.recode({ ...recode, ...long }))).toBe("rowBytes");
    for (const symbolCount of [0, 257])
      expect(await refused(service.decode({ work: { symbolCount, symbolBytes: 4, seeds, payloads: out } }))).toBe(
        "symbolCount",
      );
    expect(await refused(service.decode({ work: { symbolCount: 4, symbolBytes: 0, seeds, payloads: out } }))).toBe(
      "symbolBytes",
    );
    expect(await service.encode({ encoder, seeds, out })).toBe(out);
    expect(service.waitingTasks).toBe(0);
    expect(service.bytes).toBe(0);
    encoder.free();
  });

  test("a coder of many threads takes no more pieces than its pool does (63, 64, 200 threads)", async () => {
    for (const threads of [63, 64, 200]) {
      const pool = pools(threads);
      const { slots, piecesMax } = cpuCoder(pool);
      expect(slots).toBe(pool.threads + 1);
      expect(piecesMax).toBe(pool.batchesMax);
      expect(piecesMax).toBeGreaterThanOrEqual(slots);
      await pool.close();
    }
    const few = createCoderPool(codec, { threads: 8, batchesMax: 2 });
    const service = serviceOf({ codec, coders: [cpuCoder(few)] });
    const encoder = encoderOf(codec, 3, 16);
    const tasks = Array.from({ length: 300 }, () =>
      service.encode({ encoder, seeds: seedsOf(1), out: new Uint8Array(16) }),
    );
    await Promise.all(tasks);
    encoder.free();
    expect(service.counts).toMatchObject({ doneTasks: 300, failedTasks: 0 });
  });

  test("symbols of one byte, and groups of 1 and of 256", async () => {
    const service = serviceOf({ codec, coders: [cpuCoder(pools(2)), slowedCoder(pools(1), 2)] });
    for (const symbolCount of [1, 2, 256]) {
      const encoder = encoderOf(codec, symbolCount, 1);
      const seeds = seedsOf(300);
      const wanted = new Uint8Array(300);
      encoder.encodeSeeds(seeds, wanted);
      const payloads = buffers.take(300);
      await service.encode({ encoder, seeds, out: payloads });
      expect(Buffer.compare(payloads, wanted)).toBe(0);
      const out = new Uint8Array(symbolCount);
      const { rank } = await service.decode({ work: { symbolCount, symbolBytes: 1, seeds, payloads, out } });
      expect(rank).toBe(symbolCount);
      expect(out).toEqual(Uint8Array.from({ length: symbolCount }, (_, i) => (i * 31) ^ (i >> 7)));
      encoder.free();
    }
  });

  test("an encoder that is freed, and memory that another task writes, end one task; the queue goes on", async () => {
    const service = serviceOf({ codec, coders: [cpuCoder(pools(1))] });
    const [encoder, freed] = [encoderOf(codec, 64, 1024), encoderOf(codec, 64, 1024)];
    const outs = Array.from({ length: 40 }, () => buffers.take(64 * 1024));
    const tasks = outs.map((out, i) =>
      service.encode({ encoder: i === 30 ? freed : encoder, seeds: seedsOf(64), out }),
    );
    freed.free();
    const outcomes = await Promise.allSettled(tasks);
    outcomes.forEach((outcome, i) => {
      if (i !== 30) expect(outcome.status).toBe("fulfilled");
      else if (outcome.status === "rejected") expect(outcome.reason).toBeInstanceOf(CodecError);
    });
    const [out] = outs;
    const same = await Promise.allSettled(
      [1, 2].map((first) => service.encode({ encoder, seeds: seedsOf(64, first), out: out! })),
    );
    for (const outcome of same)
      if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ what: "bytesInFlight" });
    await service.encode({ encoder, seeds: seedsOf(64), out: out! });
    expect(service.waitingTasks).toBe(0);
    expect(service.bytes).toBe(0);
    encoder.free();
  });

  test("cancels a task in flight, and its memory is free when it rejects", async () => {
    const service = serviceOf({ codec, coders: [cpuCoder(pools(1))] });
    const encoder = encoderOf(codec, 128, 4096);
    const out = buffers.take(512 * 4096);
    const cancel = new AbortController();
    const task = service.encode({ encoder, seeds: seedsOf(512), out, signal: cancel.signal });
    const after = service.encode({ encoder, seeds: seedsOf(1), out: new Uint8Array(4096) });
    cancel.abort(new Error("no longer wanted"));
    await expect(task).rejects.toThrow("no longer wanted");
    await after;
    // The memory can be used again at once.
    await service.encode({ encoder, seeds: seedsOf(512), out });
    encoder.free();
    expect(service.counts).toMatchObject({ cancelledTasks: 1, doneTasks: 2 });
    expect(service.bytes).toBe(0);
  });
});

describe("order and bounds", () => {
  const encoder = encoderOf(wasm, 2, 2);
  const encode = (service: CoderService, seed: number, more: { deadlineMs?: number; signal?: AbortSignal } = {}) =>
    service.encode({ encoder, seeds: Uint32Array.of(seed), out: new Uint8Array(2), ...more });

  test("first come, first served; a task near its deadline comes before others", async () => {
    let nowMs = 0;
    const coder = new HeldCoder("held");
    const service = serviceOf({ codec: wasm, coders: [coder], nowMs: () => nowMs });
    const tasks = [1, 2, 3, 4].map((seed) => encode(service, seed));
    tasks.push(encode(service, 5, { deadlineMs: 15 }), encode(service, 6, { deadlineMs: 200 }), encode(service, 7));
    const order: number[] = [];
    for (let i = 0; i < 7; i++) {
      if (i === 2) nowMs = 190;
      order.push(firstSeed(await coder.endNext()));
    }
    await Promise.all(tasks);
    expect(order).toEqual([1, 5, 2, 6, 3, 4, 7]);
  });

  test("sheds what does not fit: 100,000 tasks leave the queue bounded and in order", async () => {
    const coder = new HeldCoder("held");
    const service = serviceOf({ codec: wasm, coders: [coder], tasksMax: () => 1000 });
    const outcomes = Array.from({ length: 100_000 }, (_, i) =>
      encode(service, i).then(
        () => "done",
        (error: CodecError) => error.what,
      ),
    );
    expect(service.waitingTasks).toBe(1000);
    for (let done = 0; done < 1001; done++) expect(firstSeed(await coder.endNext())).toBe(done);
    const counted = (await Promise.all(outcomes)).reduce(
      (counts, outcome) => counts.set(outcome, (counts.get(outcome) ?? 0) + 1),
      new Map<string, number>(),
    );
    expect(Object.fromEntries(counted)).toEqual({ done: 1001, tasks: 98_999 });
    expect(service.counts).toMatchObject({ shedTasks: 98_999, doneTasks: 1001 });
    expect(service.bytes).toBe(0);
  });

  test.each([-Infinity, -1e308, -1, 0, Number.NaN, 1e308, Infinity])(
    "a deadline of %p is no reason to wait or to fail",
    async (deadlineMs) => {
      const coder = new HeldCoder("held");
      const service = serviceOf({ codec: wasm, coders: [coder], nowMs: () => 1000 });
      const tasks = [1, 2, 3].map((seed) => encode(service, seed, seed === 2 ? { deadlineMs } : {}));
      const order: number[] = [];
      for (let i = 0; i < 3; i++) order.push(firstSeed(await coder.endNext()));
      await Promise.all(tasks);
      expect(order).toEqual([1, 2, 3]);
      expect(service.counts).toMatchObject({ doneTasks: 3 });
    },
  );

  test("10,000 urgent tasks that are cancelled in any order leave nothing behind", async () => {
    const coder = new HeldCoder("held");
    const service = serviceOf({ codec: wasm, coders: [coder], tasksMax: () => 1e6 });
    const cancels = Array.from({ length: 10_000 }, () => new AbortController());
    const tasks = cancels.map(({ signal }, i) => encode(service, i, { deadlineMs: (i * 7919) % 1000, signal }));
    cancels.forEach((_, i) => cancels[(i * 7919) % 10_000]!.abort(new Error("gone")));
    await coder.endNext();
    const outcomes = await Promise.allSettled(tasks);
    expect(outcomes.every(({ status }) => status === "rejected")).toBe(true);
    expect(service.waitingTasks).toBe(0);
    expect(service.bytes).toBe(0);
    const last = encode(service, 7);
    expect(firstSeed(await coder.endNext())).toBe(7);
    await last;
  });

  test("memory that is detached while its task waits ends that task; the others go on", async () => {
    const coder = new HeldCoder("held");
    const service = serviceOf({ codec: wasm, coders: [coder] });
    const first = encode(service, 1);
    const [out, seeds] = [new Uint8Array(2), Uint32Array.of(3)];
    const withoutOut = service.encode({ encoder, seeds: Uint32Array.of(2), out });
    const withoutSeeds = service.encode({ encoder, seeds, out: new Uint8Array(2) });
    const last = encode(service, 4);
    structuredClone(null, { transfer: [out.buffer, seeds.buffer] });
    const failed = Promise.allSettled([withoutOut, withoutSeeds]);
    expect(firstSeed(await coder.endNext())).toBe(1);
    expect(firstSeed(await coder.endNext())).toBe(4);
    await Promise.all([first, last]);
    expect(await failed).toMatchObject([
      { status: "rejected", reason: { what: "out", got: 0, limit: 2 } },
      { status: "rejected", reason: { what: "seeds", got: 0, limit: 1 } },
    ]);
    expect(service.bytes).toBe(0);
    expect(service.counts).toMatchObject({ doneTasks: 2, failedTasks: 2 });
  });

  test("sheds by bytes, too", async () => {
    const coder = new HeldCoder("held");
    const service = serviceOf({ codec: wasm, coders: [coder], bytesMax: () => 4 });
    const fit = [encode(service, 1), encode(service, 2)];
    await expect(encode(service, 3)).rejects.toMatchObject({ what: "bytes", got: 6, limit: 4 });
    await coder.endNext();
    await coder.endNext();
    await Promise.all(fit);
  });

  test("a cancelled task that waits is not coded", async () => {
    const coder = new HeldCoder("held");
    const service = serviceOf({ codec: wasm, coders: [coder] });
    const cancel = new AbortController();
    const tasks = [encode(service, 1), encode(service, 2, { signal: cancel.signal }), encode(service, 3)];
    cancel.abort(new Error("gone"));
    await expect(tasks[1]).rejects.toThrow("gone");
    expect([firstSeed(await coder.endNext()), firstSeed(await coder.endNext())]).toEqual([1, 3]);
    expect(coder.pieces).toHaveLength(0);
    await Promise.all([tasks[0], tasks[2]]);
  });

  test("a closed service cancels what waits, and refuses more", async () => {
    const coder = new HeldCoder("held");
    const service = new CoderService({ codec: wasm, coders: [coder] });
    const tasks = [encode(service, 1), encode(service, 2)].map((task) => task.catch((error: CodecError) => error.what));
    await service.close();
    expect(await Promise.all(tasks)).toEqual(["closed", "closed"]);
    await expect(encode(service, 3)).rejects.toMatchObject({ what: "closed" });
  });
});

test("a coder that is fast takes short pieces ahead, and never more than it may", async () => {
  let nowMs = 0;
  const coder = new HeldCoder("held", 2, 5);
  const service = serviceOf({ codec: wasm, coders: [coder], nowMs: () => nowMs });
  const encoder = encoderOf(wasm, 2, 2);
  const tasks = Array.from({ length: 100 }, (_, i) =>
    service.encode({ encoder, seeds: Uint32Array.of(i), out: new Uint8Array(2) }),
  );
  const order: number[] = [];
  const heldCounts: number[] = [];
  // A task of 0.1 ms leaves room for all 5 pieces, one of 3 ms for no third one.
  for (const spentMs of [...Array<number>(20).fill(0.1), ...Array<number>(80).fill(3)]) {
    heldCounts.push(coder.pieces.length);
    nowMs += spentMs;
    order.push(firstSeed(await coder.endNext()));
  }
  await Promise.all(tasks);
  expect(order).toEqual(Array.from({ length: 100 }, (_, i) => i));
  expect(heldCounts.slice(0, 2)).toEqual([2, 2]);
  expect(Math.max(...heldCounts)).toBe(5);
  expect(heldCounts.slice(88, 96)).toEqual(Array<number>(8).fill(2));
  encoder.free();
});

describe("lost coders", () => {
  const encoder = encoderOf(wasm, 8, 16);

  test("no row is lost or done twice when a coder is lost in the middle of its pieces", async () => {
    const lost: string[] = [];
    const [device, cpu] = [new HeldCoder("gpu", 4), new HeldCoder("cpu", 1)];
    const reserve = () => cpu;
    const options = {
      codec: wasm,
      coders: [only("encode", device), only("decode", new HeldCoder("cpu for decoding"))],
    };
    const onLost = (name: string, reason: string) => void lost.push(`${name}: ${reason}`);
    const service = serviceOf({ ...options, reserve, onLost });
    const seeds = seedsOf(100);
    const out = new Uint8Array(100 * 16);
    const task = service.encode({ encoder, seeds, out });
    const second = service.encode({ encoder, seeds: seedsOf(1, 900), out: new Uint8Array(16) });
    const done = [await device.endNext()];
    for (const { fail } of device.pieces.splice(0)) fail(new CoderLostError("the device is lost"));
    await settled();
    expect(lost).toEqual(["gpu for encoding: the device is lost"]);
    expect(device.isClosed).toBe(true);
    while (cpu.pieces.length > 0) done.push(await cpu.endNext());
    await Promise.all([task, second]);
    const coded = done.flatMap((piece) => (piece.kind === "encode" ? [...piece.seeds] : []));
    expect(coded.sort((a, b) => a - b)).toEqual([...seeds, 900]);
    const wanted = new Uint8Array(out.length);
    encoder.encodeSeeds(seeds, wanted);
    expect(out).toEqual(wanted);
    expect(service.counts).toMatchObject({ lostCoders: 1, doneTasks: 2, failedTasks: 0 });
  });

  test("a coder's other errors end the task, not the coder", async () => {
    const coder = new HeldCoder("cpu");
    const service = serviceOf({ codec: wasm, coders: [coder] });
    const failed = service.encode({ encoder, seeds: seedsOf(1), out: new Uint8Array(16) });
    const next = service.encode({ encoder, seeds: seedsOf(1), out: new Uint8Array(16) });
    coder.pieces.shift()!.fail(new CodecError("memoryBytes", 0, 0));
    await expect(failed).rejects.toMatchObject({ what: "memoryBytes" });
    await coder.endNext();
    await next;
  });
});
