/**
 * The contenders that are JavaScript to their caller: a `Codec`, in WebAssembly or behind the addon. Answers the same
 * requests as lab/bench/codec/native.cc. Runs in Node and in a Worker of a browser alike; knows neither.
 */
import type { Codec, Decoder, Encoder, RepairDecoder } from "@tributary/protocol";
import { median } from "../kit/figures";

/** Median seconds of one operation over a slice of so many milliseconds. */
export type Measurement = (sliceMs: number) => number | Promise<number>;

/** Long enough for a browser's clock (steps of 5 us), short enough that few are interrupted. */
const BATCH_MS = 0.3;
const BATCHES_MIN = 5;
/** Decoders that wait for their last packet at once, so that a batch is long enough to be timed. */
const WAITING_DECODERS = 8;

export interface Shape {
  readonly g: number;
  readonly symbolBytes: number;
  readonly outputs: number;
}

const nowMs = (): number => performance.now();

/** Repeats `operation` in batches; how many make a batch is found once and kept. */
function repeated(operation: () => void): Measurement {
  let repeats = 1;
  const batchMs = (): number => {
    const startMs = nowMs();
    for (let i = 0; i < repeats; i++) operation();
    return nowMs() - startMs;
  };
  return (sliceMs) => {
    const startMs = nowMs();
    const seconds: number[] = [];
    while (seconds.length < BATCHES_MIN || nowMs() - startMs < sliceMs) {
      const ms = batchMs();
      if (ms < BATCH_MS / 2) {
        repeats *= 2;
        seconds.length = 0;
      } else seconds.push(ms / 1000 / repeats);
    }
    return median(seconds);
  };
}

/** `lap` prepares, then answers with the seconds of the timed part. */
function laps(lap: () => number): Measurement {
  return (sliceMs) => {
    const startMs = nowMs();
    const seconds: number[] = [];
    while (seconds.length < BATCHES_MIN || nowMs() - startMs < sliceMs) seconds.push(lap());
    return median(seconds);
  };
}

function pseudoRandomBytes(count: number): Uint8Array {
  const bytes = new Uint8Array(count);
  let state = 0x9e3779b9;
  for (let i = 0; i < count; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}

/** A generation and coded symbols of the seeds 1, 2, 3, ... that have full rank. */
interface Coded {
  readonly source: Uint8Array;
  readonly encoder: Encoder;
  readonly payloads: readonly Uint8Array[];
}

function codedGeneration(codec: Codec, { g, symbolBytes }: Shape): Coded {
  const source = pseudoRandomBytes(g * symbolBytes);
  const encoder = codec.createEncoder(g, symbolBytes);
  encoder.setSymbols(0, source);
  const seeds = Uint32Array.from({ length: g + 4 }, (_, index) => index + 1);
  const out = new Uint8Array(seeds.length * symbolBytes);
  encoder.encodeSeeds(seeds, out);
  return {
    source,
    encoder,
    payloads: [...seeds].map((_, index) => out.slice(index * symbolBytes, (index + 1) * symbolBytes)),
  };
}

/** Gives symbols from number `next` on until the rank is reached; returns the number of the next one. */
function receive(decoder: Decoder, coded: Coded, rank: number, next: number): number {
  for (; decoder.rank < rank; next++) decoder.addSeeded(next + 1, coded.payloads[next]!);
  return next;
}

function encode(codec: Codec, shape: Shape): Measurement {
  const { encoder } = codedGeneration(codec, shape);
  const seeds = new Uint32Array(shape.outputs);
  const out = new Uint8Array(shape.outputs * shape.symbolBytes);
  let next = 0;
  return repeated(() => {
    for (let i = 0; i < seeds.length; i++) seeds[i] = ++next;
    encoder.encodeSeeds(seeds, out);
  });
}

function decode(codec: Codec, shape: Shape): Measurement {
  const coded = codedGeneration(codec, shape);
  const out = new Uint8Array(coded.source.length);
  const operation = (): void => {
    const decoder = codec.createDecoder(shape.g, shape.symbolBytes);
    receive(decoder, coded, shape.g, 0);
    decoder.read(0, shape.g, out);
    decoder.free();
  };
  operation();
  if (out.some((byte, index) => byte !== coded.source[index])) throw new Error("the decoder's result is wrong");
  return repeated(operation);
}

function decodeLast(codec: Codec, shape: Shape): Measurement {
  const coded = codedGeneration(codec, shape);
  const out = new Uint8Array(coded.source.length);
  return laps(() => {
    const waiting = Array.from({ length: WAITING_DECODERS }, () => {
      const decoder = codec.createDecoder(shape.g, shape.symbolBytes);
      return { decoder, next: receive(decoder, coded, shape.g - 1, 0) };
    });
    const startMs = nowMs();
    for (const { decoder, next } of waiting) {
      receive(decoder, coded, shape.g, next);
      decoder.read(0, shape.g, out);
    }
    const seconds = (nowMs() - startMs) / 1000 / WAITING_DECODERS;
    for (const { decoder } of waiting) decoder.free();
    return seconds;
  });
}

function recode(codec: Codec, shape: Shape): Measurement {
  const coded = codedGeneration(codec, shape);
  const recoder = codec.createRecoder(shape.g, shape.symbolBytes);
  for (let i = 0; recoder.rank < shape.g; i++) recoder.addSeeded(i + 1, coded.payloads[i]!);
  const coefficients = new Uint8Array(shape.g);
  const payload = new Uint8Array(shape.symbolBytes);
  let seed = 0;
  return repeated(() => recoder.recode(++seed, coefficients, payload));
}

/** Coded symbols from number `next` on until so many are still missing; returns the number of the next one. */
function addCoded(decoder: RepairDecoder, payloads: readonly Uint8Array[], missingCount: number, next: number): number {
  for (; decoder.missingCount > missingCount; next++) decoder.addSeeded(next + 1, payloads[next]!);
  return next;
}

/**
 * A block of which `outputs` symbols are missing, evenly spread. Seconds on arrival, and from the last packet to all
 * bytes.
 */
function repairLap(codec: Codec, { g, symbolBytes, outputs }: Shape): () => { arrival: number; repair: number } {
  const [encoder, source] = [codec.createRepairEncoder(g, symbolBytes), pseudoRandomBytes(g * symbolBytes)];
  encoder.setSymbols(0, source);
  const coded = new Uint8Array((outputs + 4) * symbolBytes);
  encoder.encodeSeeds(
    Uint32Array.from({ length: outputs + 4 }, (_, index) => index + 1),
    coded,
  );
  encoder.free();
  const payloads = Array.from({ length: outputs + 4 }, (_, index) =>
    coded.slice(index * symbolBytes, (index + 1) * symbolBytes),
  );
  const spacing = Math.floor(g / outputs);
  const known = Array.from({ length: g }, (_, index) => index).filter(
    (index) => index % spacing !== 0 || index / spacing >= outputs,
  );
  const out = new Uint8Array(source.length);
  return () => {
    const firstMs = nowMs();
    const decoder = codec.createRepairDecoder(g, symbolBytes);
    for (const index of known)
      decoder.addSource(index, source.subarray(index * symbolBytes, (index + 1) * symbolBytes));
    const next = addCoded(decoder, payloads, 1, 0);
    const lastMs = nowMs();
    addCoded(decoder, payloads, 0, next);
    decoder.read(0, g, out);
    const endMs = nowMs();
    decoder.free();
    if (out[0] !== source[0] || out.at(-1) !== source.at(-1)) throw new Error("the repaired block is wrong");
    return { arrival: (lastMs - firstMs) / 1000, repair: (endMs - lastMs) / 1000 };
  };
}

function repairOf(part: "arrival" | "repair"): (codec: Codec, shape: Shape) => Measurement {
  return (codec, shape) => {
    const lap = repairLap(codec, shape);
    return laps(() => lap()[part]);
  };
}

const REQUESTS: Readonly<Record<string, (codec: Codec, shape: Shape) => Measurement>> = {
  encode,
  decode,
  "decode-last": decodeLast,
  recode,
  repair: repairOf("repair"),
  "repair-arrival": repairOf("arrival"),
};

export class Contenders {
  readonly #prepared = new Map<string, Measurement>();

  readonly #codecs: ReadonlyMap<string, Codec>;
  readonly #overrides: Readonly<Record<string, (codec: Codec, shape: Shape) => Measurement>>;

  /** Codecs by engine name, fastest first. `overrides`: requests that a runner serves in its own way. */
  constructor(
    codecs: ReadonlyMap<string, Codec>,
    overrides: Readonly<Record<string, (codec: Codec, shape: Shape) => Measurement>> = {},
  ) {
    this.#codecs = codecs;
    this.#overrides = overrides;
  }

  async answer(line: string): Promise<string> {
    const [word, ...rest] = line.split(" ");
    try {
      if (word === "engines") return ["engines", ...this.#codecs.keys()].join(" ");
      if (word === "measure") return await this.#measure(rest);
      this.#prepared.clear();
      return "done";
    } catch (error) {
      return `error ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  async #measure(words: readonly string[]): Promise<string> {
    const [, path = "", request = "", g, symbolBytes, outputs, sliceMs] = words;
    const shape: Shape = { g: Number(g), symbolBytes: Number(symbolBytes), outputs: Number(outputs) };
    const key = words.slice(0, -1).join(" ");
    const found = this.#prepared.get(key) ?? this.#prepare(path, request, shape);
    if (typeof found === "string") return `absent ${found}`;
    this.#prepared.set(key, found);
    return `seconds ${await found(Number(sliceMs))}`;
  }

  /** A measurement of ours, or why there is none. */
  #prepare(path: string, request: string, shape: Shape): Measurement | string {
    const codec = this.#codecs.get(path);
    if (!codec) return `no engine ${path} here`;
    const prepare = this.#overrides[request] ?? REQUESTS[request];
    return prepare ? prepare(codec, shape) : `${codec.engine} has no ${request}`;
  }
}
