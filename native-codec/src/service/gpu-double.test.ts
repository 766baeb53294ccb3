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
  expect(lost).toEqual([]);
  expect(service.counts).toMatchObject({ doneTasks: 4, lostCoders: 0 });
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
