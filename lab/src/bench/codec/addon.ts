/**
 * The addon as its caller in Node sees it: batches on its pool, one thread, so that the ratio to one thread of the core
 * is what the way through Node costs. Several batches are in flight, as a proxy keeps them; buffers are shared memory,
 * which the pool reads and writes in place.
 */
import { createCoderPool, loadNativeCodec, nativeEngineNames } from "@tributary/native-codec";
import type { Codec } from "@tributary/protocol";
import { Contenders, type Measurement, type Shape } from "./contenders";
import { median } from "./samples";

const IN_FLIGHT = 4;
/** Batches from one reading of the clock to the next. */
const BATCHES_A_LAP = 32;
const LAPS_MIN = 3;

function encodeOnPool(codec: Codec, { g, symbolBytes, outputs }: Shape): Measurement {
  const pool = createCoderPool(codec, { threads: 1 });
  const encoder = codec.createEncoder(g, symbolBytes);
  encoder.setSymbols(0, Uint8Array.from({ length: g * symbolBytes }, (_, index) => (index * 31 + (index >> 8)) & 0xff));
  const lanes = Array.from({ length: IN_FLIGHT }, (_, lane) => ({
    seeds: Uint32Array.from({ length: outputs }, (_, index) => lane * outputs + index + 1),
    out: new Uint8Array(new SharedArrayBuffer(outputs * symbolBytes)),
  }));
  const lap = async (): Promise<number> => {
    const startMs = performance.now();
    let left = BATCHES_A_LAP;
    await Promise.all(
      lanes.map(async ({ seeds, out }) => {
        while (left-- > 0) await pool.encode({ encoder, seeds, out });
      }),
    );
    return (performance.now() - startMs) / 1000 / BATCHES_A_LAP;
  };
  return async (sliceMs) => {
    const startMs = performance.now();
    const laps: number[] = [];
    while (laps.length < LAPS_MIN || performance.now() - startMs < sliceMs) laps.push(await lap());
    return median(laps);
  };
}

export function addonContenders(): Contenders {
  const codecs = new Map<string, Codec>();
  for (const name of nativeEngineNames()) {
    const { codec } = loadNativeCodec(name);
    if (codec) codecs.set(name, codec);
  }
  return new Contenders(codecs, { encode: encodeOnPool });
}
