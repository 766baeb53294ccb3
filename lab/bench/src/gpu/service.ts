/**
 * The GPU of this machine in the proxy's coder service: every symbol compared with the CPU's, then the rates of the
 * CPU, of the GPU and of both, from the proxy's kind of memory. `npm run bench -- gpu` runs it after the C++ program.
 * A machine with Node and the compiled packages runs it alone: node lab/bench/dist/gpu/service.js [LIBRARY [--small]]
 */
import { availableParallelism } from "node:os";
import {
  CoderService,
  cpuCoder,
  createCoderPool,
  loadNativeCodec,
  only,
  openGpuCoder,
  SharedBuffers,
  type Coder,
} from "@tributary/native-codec";
import type { Codec, Encoder } from "@tributary/protocol";

/** Symbols, bytes of a symbol, rows. */
type Shape = readonly [symbolCount: number, symbolBytes: number, rows: number];

interface Scale {
  compared: readonly Shape[];
  timed: Shape;
  /** Groups that are coded in turns: those of a busy proxy, and more than stay on the device. */
  groups: readonly number[];
  tasksInFlight: number;
  rateMs: number;
}

const SMALL: Scale = {
  compared: [
    [1, 1, 3],
    [24, 188, 16],
  ],
  timed: [8, 64, 8],
  groups: [4, 40],
  tasksInFlight: 4,
  rateMs: 50,
};
const WHOLE: Scale = {
  compared: [...SMALL.compared, [128, 1088, 128], [128, 4096, 600], [256, 333, 40]],
  timed: [128, 4096, 128],
  groups: [128, 2400],
  tasksInFlight: 128,
  rateMs: 1500,
};

function encodersOf(codec: Codec, count: number, [symbolCount, symbolBytes]: Shape): Encoder[] {
  const bytes = Uint8Array.from({ length: symbolCount * symbolBytes }, (_, i) => (i * 31) ^ (i >> 8));
  return Array.from({ length: count }, () => {
    const encoder = codec.createEncoder(symbolCount, symbolBytes);
    encoder.setSymbols(0, bytes);
    return encoder;
  });
}

const seedsOf = (count: number): Uint32Array => Uint32Array.from({ length: count }, (_, i) => 7 * i + 1);

/** Throws if a symbol differs, or if the GPU did not make all. */
async function compare(codec: Codec, gpu: Coder, shapes: readonly Shape[]): Promise<void> {
  const buffers = new SharedBuffers();
  if (gpu.memory) buffers.useFirst(gpu.memory);
  await Promise.all(
    shapes.map(async (shape) => {
      const [symbolCount, symbolBytes, rows] = shape;
      const encoder = encodersOf(codec, 1, shape)[0]!;
      const [wanted, out] = [new Uint8Array(rows * symbolBytes), buffers.take(rows * symbolBytes)];
      encoder.encodeSeeds(seedsOf(rows), wanted);
      await gpu.run({ kind: "encode", encoder, seeds: seedsOf(rows), out });
      encoder.free();
      if (Buffer.compare(out, wanted) !== 0)
        throw new Error(`the GPU's symbols differ at ${symbolCount} x ${symbolBytes} bytes`);
    }),
  );
}

/** GB/s of output, and how many cores this process used. */
async function rateOf(
  codec: Codec,
  coders: Coder[],
  scale: Scale,
  groups: number,
): Promise<{ gbPerSec: number; cores: number }> {
  const rest = only("decode", cpuCoder(createCoderPool(codec, { threads: 1 })));
  const limits = { tasksMax: () => Infinity, bytesMax: () => Infinity };
  const service = new CoderService({ codec, coders: [...coders, rest], ...limits });
  const [, symbolBytes, rows] = scale.timed;
  const encoders = encodersOf(codec, groups, scale.timed);
  const [seeds, buffers] = [seedsOf(rows), new SharedBuffers()];
  if (service.memory) buffers.useFirst(service.memory);
  let bytes = 0;
  let next = 0;
  const before = process.cpuUsage();
  const startMs = performance.now();
  const lane = async (): Promise<void> => {
    const out = buffers.take(rows * symbolBytes);
    while (performance.now() - startMs < scale.rateMs) {
      await service.encode({ encoder: encoders[next++ % groups]!, seeds, out });
      bytes += out.length;
    }
  };
  await Promise.all(Array.from({ length: scale.tasksInFlight }, lane));
  const ms = performance.now() - startMs;
  const { user, system } = process.cpuUsage(before);
  await service.close();
  for (const encoder of encoders) encoder.free();
  return { gbPerSec: bytes / ms / 1e6, cores: (user + system) / 1000 / ms };
}

/** Prints the rates, or why there is no GPU. Returns the exit status. */
export async function measureService(isSmall: boolean, library?: string): Promise<number> {
  const scale = isSmall ? SMALL : WHOLE;
  const native = loadNativeCodec();
  if (!native.codec) {
    console.log(`the service was not measured: ${native.reason}`);
    return 0;
  }
  const { codec } = native;
  const open = (): Coder => {
    const opened = openGpuCoder(codec, library);
    if ("coder" in opened) return opened.coder;
    throw new Error(opened.reason);
  };
  const threads = Math.max(1, availableParallelism() - 2);
  const cpu = (): Coder => only("encode", cpuCoder(createCoderPool(codec, { threads, ownThreads: true })));
  let gpu: Coder;
  try {
    gpu = open();
  } catch (error) {
    console.log(`no GPU in the service: ${(error as Error).message}`);
    return 0;
  }
  await compare(codec, gpu, scale.compared);
  await gpu.close();
  console.log(`the GPU's symbols are the CPU's, through the service (${scale.compared.length} shapes)`);
  const [symbolCount, symbolBytes] = scale.timed;
  for (const groups of scale.groups) {
    const rates = {
      [`CPU, ${threads} threads`]: await rateOf(codec, [cpu()], scale, groups),
      GPU: await rateOf(codec, [open()], scale, groups),
      both: await rateOf(codec, [open(), cpu()], scale, groups),
    };
    console.log(`${groups} groups of ${symbolCount} x ${symbolBytes} bytes in turns`);
    for (const [name, { gbPerSec, cores }] of Object.entries(rates))
      console.log(`${name.padEnd(18)} ${gbPerSec.toFixed(2).padStart(7)} GB/s, ${cores.toFixed(1)} cores`);
  }
  return 0;
}

if (require.main === module)
  measureService(process.argv.includes("--small"), process.argv[2]).then(
    (status) => (process.exitCode = status),
    (error: unknown) => {
      console.error(`gpu bench: ${(error as Error).message}`);
      process.exitCode = 1;
    },
  );
