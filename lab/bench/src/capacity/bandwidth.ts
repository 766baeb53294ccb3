/** Rates of encoding and decoding by block size on 1 to all cores, as in the paper's Figs 5 and 6. */
import { availableParallelism } from "node:os";
import { createCoderPool, loadCodec, SharedBuffers } from "@tributary/native-codec";
import type { Codec, Encoder } from "@tributary/protocol";
import { loadWasmCodec } from "@tributary/wasm-codec/node";

export interface Bandwidth {
  op: "encode" | "decode";
  engine: string;
  threads: number;
  symbolCount: number;
  symbolBytes: number;
  bytesPerSec: number;
}

/** The paper's numbers of blocks. */
const SYMBOL_COUNTS = [64, 128, 256];
const SYMBOL_BYTES = [128, 512, 1024, 4096, 16_384];

/** Each rate is measured for `ms`. */
export async function measureBandwidths(ms: number): Promise<Bandwidth[]> {
  const codec = loadCodec(loadWasmCodec);
  const found: Bandwidth[] = [];
  for (const threads of new Set([1, availableParallelism()]))
    for (const symbolCount of SYMBOL_COUNTS)
      for (const symbolBytes of SYMBOL_BYTES)
        for (const op of ["encode", "decode"] as const)
          found.push({
            op,
            engine: codec.engine,
            threads,
            symbolCount,
            symbolBytes,
            bytesPerSec: await rateOf(codec, op, threads, symbolCount, symbolBytes, ms),
          });
  return found;
}

async function rateOf(
  codec: Codec,
  op: Bandwidth["op"],
  threads: number,
  symbolCount: number,
  symbolBytes: number,
  ms: number,
): Promise<number> {
  const pool = createCoderPool(codec, { threads });
  const buffers = new SharedBuffers();
  const encoder = filled(codec, symbolCount, symbolBytes);
  const seeds = Uint32Array.from({ length: symbolCount + 2 }, (_, index) => index + 1);
  const payloads = buffers.take(seeds.length * symbolBytes);
  encoder.encodeSeeds(seeds, payloads);
  let bytes = 0;
  const startMs = performance.now();
  const lane = async (): Promise<void> => {
    const out = buffers.take(op === "encode" ? payloads.length : symbolCount * symbolBytes);
    while (performance.now() - startMs < ms) {
      if (op === "encode") await pool.encode({ encoder, seeds, out });
      else await pool.decode({ symbolCount, symbolBytes, seeds, payloads, out });
      bytes += out.length;
    }
  };
  // One batch more than there are threads waits, so that no thread waits for this one.
  await Promise.all(Array.from({ length: threads + 1 }, lane));
  const seconds = (performance.now() - startMs) / 1000;
  await pool.close();
  encoder.free();
  return bytes / seconds;
}

function filled(codec: Codec, symbolCount: number, symbolBytes: number): Encoder {
  const encoder = codec.createEncoder(symbolCount, symbolBytes);
  const bytes = Uint8Array.from({ length: symbolCount * symbolBytes }, (_, index) => (index * 31) ^ (index >> 8));
  encoder.setSymbols(0, bytes);
  return encoder;
}
