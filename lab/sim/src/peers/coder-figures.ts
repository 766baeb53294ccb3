/**
 * Figures 2 and 3 of the paper (Wang, Li 2006, section II-A), measured with our codec on one core: how fast `n` blocks
 * of `k` bytes are encoded and decoded. Blocks over the codec's 65,536 bytes are coded in slices with the same
 * coefficients.
 */
import type { Codec, Decoder } from "@tributary/protocol";

/** The codec codes at most 256 blocks together, where the paper goes to 1,500. */
const BLOCK_COUNTS = [10, 20, 50, 100, 150, 200, 256] as const;
const BLOCK_BYTES = [64, 512, 2048, 8192, 32_768, 131_072, 1_048_576] as const;
const SLICE_BYTES = 65_536;
/** The paper's file of 13.8 MB, for Fig. 3(b). */
const FILE_BYTES = 13.8e6;
/** A measurement repeats until it has taken this long. */
const LEAST_MS = 40;

export interface CoderTimes {
  /** Seconds: to draw n x n coefficients, encode n blocks, invert the matrix, and decode with the inversion. */
  readonly draw: number;
  readonly encode: number;
  readonly invert: number;
  readonly decode: number;
}

/** Times for `n` blocks (1..256) of `k` bytes. Throws if a decoded byte is wrong. */
export function coderTimes(codec: Codec, n: number, k: number, leastMs = LEAST_MS): CoderTimes {
  const seeds = independentSeeds(codec, n);
  const slices = Array.from({ length: Math.ceil(k / SLICE_BYTES) }, (_, index) =>
    Math.min(SLICE_BYTES, k - index * SLICE_BYTES),
  );
  let [encode, decode] = [0, 0];
  // All slices of one length take the same time, so each length is measured once.
  for (const bytes of new Set(slices)) {
    const count = slices.filter((each) => each === bytes).length;
    const times = sliceTimes(codec, seeds, n, bytes, leastMs);
    encode += count * times.encode;
    decode += count * times.decode;
  }
  const draw = secondsOf(() => seeds.forEach((seed) => codec.coefficients(seed, n)), leastMs);
  const invert = secondsOf(() => decodeSeeds(codec, seeds, n, 1, new Uint8Array(n)).free(), leastMs);
  return { draw, encode, invert, decode };
}

function sliceTimes(
  codec: Codec,
  seeds: Uint32Array,
  n: number,
  bytes: number,
  leastMs: number,
): Pick<CoderTimes, "encode" | "decode"> {
  const content = Uint8Array.from({ length: n * bytes }, (_, index) => (index * 31 + (index >> 8)) & 0xff);
  const encoder = codec.createEncoder(n, bytes);
  encoder.setSymbols(0, content);
  const coded = new Uint8Array(n * bytes);
  const encode = secondsOf(() => encoder.encodeSeeds(seeds, coded), leastMs);
  encoder.free();
  const whole = new Uint8Array(n * bytes);
  const decode = secondsOf(() => {
    const decoder = decodeSeeds(codec, seeds, n, bytes, coded);
    decoder.read(0, n, whole);
    decoder.free();
  }, leastMs);
  if (Buffer.compare(whole, content) !== 0) throw new Error(`${n} blocks of ${bytes} bytes were decoded wrongly`);
  return { encode, decode };
}

/** Symbols of `bytes` bytes lie in `coded` one after the other. The caller frees the decoder. */
function decodeSeeds(codec: Codec, seeds: Uint32Array, n: number, bytes: number, coded: Uint8Array): Decoder {
  const decoder = codec.createDecoder(n, bytes);
  for (const [index, seed] of seeds.entries())
    decoder.addSeeded(seed, coded.subarray(index * bytes, (index + 1) * bytes));
  return decoder;
}

/** Seeds of `n` independent vectors. */
function independentSeeds(codec: Codec, n: number): Uint32Array {
  const decoder = codec.createDecoder(n, 1);
  const seeds: number[] = [];
  for (let seed = 1; seeds.length < n; seed++) if (decoder.addSeeded(seed, new Uint8Array(1))) seeds.push(seed);
  decoder.free();
  return Uint32Array.from(seeds);
}

/** The least time of a call. */
function secondsOf(work: () => unknown, leastMs: number): number {
  let [best, totalMs] = [Infinity, 0];
  while (totalMs < leastMs) {
    const startMs = performance.now();
    work();
    const ms = performance.now() - startMs;
    best = Math.min(best, ms);
    totalMs += ms;
  }
  return best / 1000;
}

/** Fig. 2: encoded and decoded MB/s, by number of blocks and block size. */
export function figure2(codec: Codec): string {
  const cells = BLOCK_COUNTS.map((n) =>
    BLOCK_BYTES.map((k) => {
      const { encode, decode } = coderTimes(codec, n, k);
      return [(n * k) / encode, (n * k) / decode].map((rate) => (rate / 1e6).toFixed(0));
    }),
  );
  const tables = ["encoded", "decoded"].map((what, index) => {
    const rows = BLOCK_COUNTS.map((n, row) => [String(n), ...cells[row]!.map((cell) => cell[index]!)]);
    const title = `${what} MB/s by number of blocks, for blocks of so many bytes`;
    return `${title}\n${columns([["blocks", ...BLOCK_BYTES.map(String)], ...rows])}`;
  });
  return tables.join("\n\n");
}

/** Fig. 3: (a) nanoseconds a byte, by number of blocks and block size; (b) seconds for a file of 13.8 MB. */
export function figure3(codec: Codec): string {
  const rows = BLOCK_COUNTS.flatMap((n) =>
    [512, 2048, 8192, 32_768].map((k) => [n, k, coderTimes(codec, n, k)] as const),
  );
  const perByte = rows.map(([n, k, times]) => {
    const ns = (seconds: number): string => ((seconds * 1e9) / (n * k)).toFixed(3);
    const { draw, encode, invert, decode } = times;
    return [String(n), String(k), ...[draw, encode, invert, Math.max(0, decode - invert)].map(ns)];
  });
  const file = BLOCK_COUNTS.map((n) => {
    const k = Math.ceil(FILE_BYTES / n);
    const { encode, invert, decode } = coderTimes(codec, n, k);
    return [String(n), String(k), ...[encode, invert, decode, encode + decode].map((seconds) => seconds.toFixed(4))];
  });
  return [
    "(a) nanoseconds a byte",
    columns([["blocks", "block bytes", "coefficients", "encode", "invert", "decode"], ...perByte]),
    "\n(b) seconds for a file of 13.8 MB, computing alone",
    columns([["blocks", "block bytes", "encode", "invert", "decode", "both"], ...file]),
  ].join("\n");
}

function columns(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) => row.map((cell, column) => cell.padStart(widths[column]!)).join("  ")).join("\n");
}
