/** The GPU coder on its driver's stand-in, which runs the kernels on the host. native-codec/test.mjs runs the tests. */
import { createCoderPool, loadNativeCodec, openGpuCoder, SharedBuffers } from "../index";
import { loadAddon } from "../addon";
import { cpuCoder, only, type Coder } from "./coder";
import { CoderService } from "./service";

const codec = loadNativeCodec().codec!;
const library = process.env["TRIBUTARY_GPU_DOUBLE"]!;
const buffers = new SharedBuffers();

/** When the stand-in fails: after so many launches, and at larger allocations. -1: never. */
function setDouble(launchesLeft: number, bytesLeft: number): void {
  const addon = loadAddon() as unknown as { setGpuDouble(library: string, launches: number, bytes: number): void };
  addon.setGpuDouble(library, launchesLeft, bytesLeft);
}

let service: CoderService;
const lost: string[] = [];

function start(): void {
  lost.length = 0;
  const opened = openGpuCoder(codec, library);
  if (!("coder" in opened)) throw new Error(opened.reason);
  const cpu = (): Coder => cpuCoder(createCoderPool(codec, { threads: 1 }));
  service = new CoderService({
    codec,
    coders: [opened.coder, only("decode", cpu())],
    reserve: cpu,
    onLost: (name, reason) => void lost.push(`${name}: ${reason}`),
  });
}
afterEach(async () => {
  await service.close();
  setDouble(-1, -1);
});

/** Encodes groups of several shapes at once, and compares them with the encoder's own symbols. */
async function encodeAll(): Promise<void> {
  const shapes = [
    [1, 1, 3],
    [24, 1088, 16],
    [128, 1088, 40],
    [3, 200, 600],
  ] as const;
  await Promise.all(
    shapes.map(async ([symbolCount, symbolBytes, rows]) => {
      const encoder = codec.createEncoder(symbolCount, symbolBytes);
      encoder.setSymbols(
        0,
        Uint8Array.from({ length: symbolCount * symbolBytes }, (_, i) => (i * 31) ^ (i >> 7)),
      );
      const seeds = Uint32Array.from({ length: rows }, (_, i) => 7 * i);
      const wanted = new Uint8Array(rows * symbolBytes);
      encoder.encodeSeeds(seeds, wanted);
      const out = buffers.take(wanted.length);
      await service.encode({ encoder, seeds, out });
      expect(Buffer.compare(out, wanted)).toBe(0);
      encoder.free();
    }),
  );
}

test("encodes as the encoder does, several groups at once", async () => {
  start();
  await encodeAll();
  buffers.useFirst(service.memory!);
  await encodeAll();
  expect(lost).toEqual([]);
  expect(service.counts).toMatchObject({ doneTasks: 8, lostCoders: 0 });
});

test("an encoder whose symbols changed makes coded symbols of the new ones", async () => {
  start();
  const encoder = codec.createEncoder(8, 200);
  const seeds = Uint32Array.of(3, 4);
  for (let round = 1; round <= 3; round++) {
    encoder.setSymbols(0, new Uint8Array(8 * 200).fill(round));
    const [out, wanted] = [buffers.take(400), new Uint8Array(400)];
    encoder.encodeSeeds(seeds, wanted);
    await service.encode({ encoder, seeds, out });
    expect(Buffer.compare(out, wanted)).toBe(0);
  }
  encoder.free();
});

/** A generation of `symbolCount` symbols that has `heldCount` random ones of them: vectors and payloads. */
function receivedOf(symbolCount: number, symbolBytes: number, heldCount: number) {
  const encoder = codec.createEncoder(symbolCount, symbolBytes);
  const source = Uint8Array.from({ length: symbolCount * symbolBytes }, (_, i) => (i * 31) ^ (i >> 7));
  encoder.setSymbols(0, source);
  const recoder = codec.createRecoder(symbolCount, symbolBytes);
  const rowBytes = symbolCount + symbolBytes;
  const received = buffers.take(heldCount * rowBytes);
  for (let row = 0; row < heldCount; row++) {
    const [vector, payload] = [codec.coefficients(500 + row, symbolCount), new Uint8Array(symbolBytes)];
    encoder.encodeVector(vector, payload);
    received.set(vector, row * rowBytes);
    received.set(payload, row * rowBytes + symbolCount);
    recoder.addVector(vector, payload);
  }
  encoder.free();
  return { source, recoder, received, rowBytes };
}

test.each([
  [1, 1, 1],
  [20, 90, 7],
  [40, 300, 40],
  [130, 5, 130],
])("recodes as the recoder does, and what it recoded decodes (%i x %i bytes, %i held)", async (n, bytes, held) => {
  start();
  const { source, recoder, received, rowBytes } = receivedOf(n, bytes, held);
  const seeds = Uint32Array.from({ length: n + 3 }, (_, i) => 3 * i);
  const out = buffers.take(seeds.length * rowBytes);
  await service.recode({ symbolCount: n, symbolBytes: bytes, received, seeds, out });
  const [vector, payload] = [new Uint8Array(n), new Uint8Array(bytes)];
  const [coefficients, payloads] = [buffers.take(seeds.length * n), buffers.take(seeds.length * bytes)];
  seeds.forEach((seed, i) => {
    recoder.recode(seed, vector, payload);
    const row = out.subarray(i * rowBytes, (i + 1) * rowBytes);
    expect(Buffer.compare(row, Buffer.concat([vector, payload]))).toBe(0);
    coefficients.set(row.subarray(0, n), i * n);
    payloads.set(row.subarray(n), i * bytes);
  });
  const decoder = codec.createDecoder(n, bytes);
  const all = buffers.take(source.length);
  const isWhole = held === n;
  const { rank } = await service.decode({
    work: { decoder, coefficients, payloads, ...(isWhole ? { out: all } : {}) },
  });
  expect(rank).toBe(held);
  if (isWhole) expect(Buffer.compare(all, source)).toBe(0);
  for (const coder of [recoder, decoder]) coder.free();
  expect(lost).toEqual([]);
});

test("a task that is cancelled while the device has it frees its memory, and the device goes on", async () => {
  start();
  const encoder = codec.createEncoder(16, 200);
  const seeds = Uint32Array.from({ length: 16 }, (_, i) => i);
  const outs = Array.from({ length: 6 }, () => buffers.take(16 * 200));
  const cancels = outs.map(() => new AbortController());
  const tasks = outs.map((out, i) => service.encode({ encoder, seeds, out, signal: cancels[i]!.signal }));
  for (const at of [0, 3, 5]) cancels[at]!.abort(new Error("gone"));
  const outcomes = await Promise.allSettled(tasks);
  expect(outcomes.map(({ status }) => status === "fulfilled")).toEqual([false, true, true, false, true, false]);
  await Promise.all(outs.map((out) => service.encode({ encoder, seeds, out })));
  encoder.free();
  expect(service.bytes).toBe(0);
  expect(lost).toEqual([]);
});

test.each([
  ["lost at once", 0, -1],
  ["lost in the middle", 4, -1],
  ["without memory", -1, 4096],
])("a device that is %s: the CPU goes on, and every symbol is right", async (_, launchesLeft, bytesLeft) => {
  start();
  setDouble(launchesLeft, bytesLeft);
  await encodeAll();
  expect(lost).toHaveLength(1);
  expect(lost[0]).toMatch(/^gpu: .{5}/);
  expect(service.counts).toMatchObject({ doneTasks: 4, lostCoders: 1, failedTasks: 0 });
  expect(service.coders.map(({ name }) => name)).toEqual(["cpu for decoding", "cpu"]);
});
