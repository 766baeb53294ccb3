/** Measures for a moment what coding costs on this machine: on the event loop, by the service, and by one coder. */
import { performance } from "node:perf_hooks";
import { SharedBuffers, type Coder, type CoderService } from "@tributary/native-codec";
import type { Codec, Encoder } from "@tributary/protocol";
import type { Costs } from "./costs";

/** The shape of a usual generation. */
const SYMBOLS = 128;
const SYMBOL_BYTES = 1088;
const ROWS = 16;
const TRIES = 8;
/** So many small batches go to the service in a row, and the loop does nothing else. */
const BATCHES = 24;
const SERIES = 5;
const RATE_MS = 20;
/** The best of these counts, because the loop has other work when a proxy starts. */
const RATE_TRIES = 3;

function sampleEncoder(codec: Codec, symbolCount: number, symbolBytes: number): Encoder {
  const encoder = codec.createEncoder(symbolCount, symbolBytes);
  encoder.setSymbols(
    0,
    Uint8Array.from({ length: symbolCount * symbolBytes }, (_, index) => (index * 31) ^ (index >> 8)),
  );
  return encoder;
}

const seedsOf = (count: number): Uint32Array => Uint32Array.from({ length: count }, (_, index) => index + 1);

/** `isAlone`: there is one core and no other coder, so a batch that is handed over saves nothing. */
export async function measureCosts(codec: Codec, service: CoderService, costs: Costs, isAlone: boolean): Promise<void> {
  const encoder = sampleEncoder(codec, SYMBOLS, SYMBOL_BYTES);
  const out = new Uint8Array(ROWS * SYMBOL_BYTES);
  let leastMs = Infinity;
  for (let tried = 0; tried < TRIES; tried++) {
    const startMs = performance.now();
    encoder.encodeSeeds(seedsOf(ROWS), out);
    leastMs = Math.min(leastMs, performance.now() - startMs);
  }
  encoder.free();
  costs.noteInline(out.length * SYMBOLS, leastMs);
  if (!isAlone) costs.handoverMs = await handoverMs(codec, service);
}

/** The loop's time for a batch that goes to the service and comes back: the least of some series. */
async function handoverMs(codec: Codec, service: CoderService): Promise<number> {
  const encoder = sampleEncoder(codec, 1, 64);
  const buffers = new SharedBuffers();
  const out = buffers.take(ROWS * 64);
  const seeds = seedsOf(ROWS);
  let leastMs = Infinity;
  for (let tried = 0; tried < SERIES; tried++) {
    const before = performance.eventLoopUtilization();
    for (let batch = 0; batch < BATCHES; batch++) await service.encode({ encoder, seeds, out });
    const { active } = performance.eventLoopUtilization(before);
    leastMs = Math.min(leastMs, active / BATCHES);
  }
  encoder.free();
  return leastMs;
}

/** Million multiplied bytes in a millisecond. */
export async function measureRate(codec: Codec, coder: Coder): Promise<number> {
  const encoder = sampleEncoder(codec, SYMBOLS, SYMBOL_BYTES);
  const buffers = new SharedBuffers();
  if (coder.memory) buffers.useFirst(coder.memory);
  const outs = Array.from({ length: coder.slots }, () => buffers.take(8 * ROWS * SYMBOL_BYTES));
  let best = 0;
  try {
    // The first time makes threads and touches memory. It does not count.
    await rateOnce(coder, encoder, outs, 0);
    for (let tried = 0; tried < RATE_TRIES; tried++)
      best = Math.max(best, await rateOnce(coder, encoder, outs, RATE_MS));
  } finally {
    encoder.free();
  }
  return best;
}

async function rateOnce(coder: Coder, encoder: Encoder, outs: readonly Uint8Array[], ms: number): Promise<number> {
  const seeds = seedsOf(8 * ROWS);
  const startMs = performance.now();
  let done = 0;
  const lane = async (out: Uint8Array): Promise<void> => {
    do {
      await coder.run({ kind: "encode", encoder, seeds, out });
      done += out.length * SYMBOLS;
    } while (performance.now() - startMs < ms);
  };
  await Promise.all(outs.map(lane));
  return done / (performance.now() - startMs) / 1e6;
}
