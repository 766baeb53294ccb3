/**
 * The addon as its caller in Node sees it: batches on its pool, one thread, so that the ratio to one thread of the core
 * is what the way through Node costs. Several batches are in flight, as a proxy keeps them, and the flow does not stop
 * between measurements of a slice; buffers are shared memory, which the pool reads and writes in place.
 */
import { createCoderPool, loadNativeCodec, nativeEngineNames, type CoderPool } from "@tributary/native-codec";
import type { Codec, Encoder } from "@tributary/protocol";
import { Contenders, type Measurement, type Shape } from "./contenders";

/** Enough batches that the pool has work while results wait to be reported together. */
const IN_FLIGHT_BYTES = 4 * 1024 * 1024;
const IN_FLIGHT_MIN = 2;
const BATCHES_MIN = 96;

interface Lane {
  readonly seeds: Uint32Array;
  readonly out: Uint8Array;
}

function lanesOf({ symbolBytes, outputs }: Shape): Lane[] {
  const count = Math.max(IN_FLIGHT_MIN, Math.round(IN_FLIGHT_BYTES / (outputs * symbolBytes)));
  return Array.from({ length: count }, (_, lane) => ({
    seeds: Uint32Array.from({ length: outputs }, (_, index) => lane * outputs + index + 1),
    out: new Uint8Array(new SharedArrayBuffer(outputs * symbolBytes)),
  }));
}

/**
 * Mean seconds of a batch, while every lane submits its next batch as soon as its last one is back, from when each has
 * been back once. Not the median of short laps: batches come back several at a time, and laps that end with such a
 * group are too short.
 */
async function flow(pool: CoderPool, encoder: Encoder, lanes: readonly Lane[], sliceMs: number): Promise<number> {
  const overMs = performance.now() + sliceMs;
  let [done, firstMs, lastMs] = [0, 0, 0];
  const isOver = (): boolean => done >= BATCHES_MIN && lastMs >= overMs;
  await Promise.all(
    lanes.map(async ({ seeds, out }) => {
      while (!isOver()) {
        await pool.encode({ encoder, seeds, out });
        if (isOver()) return;
        lastMs = performance.now();
        if (++done === lanes.length) firstMs = lastMs;
      }
    }),
  );
  return (lastMs - firstMs) / 1000 / (done - lanes.length);
}

function encodeOnPool(codec: Codec, shape: Shape): Measurement {
  const { g, symbolBytes } = shape;
  const pool = createCoderPool(codec, { threads: 1 });
  const encoder = codec.createEncoder(g, symbolBytes);
  encoder.setSymbols(
    0,
    Uint8Array.from({ length: g * symbolBytes }, (_, index) => (index * 31 + (index >> 8)) & 0xff),
  );
  const lanes = lanesOf(shape);
  return (sliceMs) => flow(pool, encoder, lanes, sliceMs);
}

export function addonContenders(): Contenders {
  const codecs = new Map<string, Codec>();
  for (const name of nativeEngineNames()) {
    const { codec } = loadNativeCodec(name);
    if (codec) codecs.set(name, codec);
  }
  return new Contenders(codecs, { encode: encodeOnPool });
}
