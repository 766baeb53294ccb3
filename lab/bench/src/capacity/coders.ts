/**
 * The coders of a proxy without network: coders that help themselves beside an even split, their queue beside its
 * model, and symbols that viewers share beside symbols that are coded anew for each. A group has 128 symbols of 4 KB.
 */
import { setTimeout } from "node:timers/promises";
import { capacityOf, Random } from "@tributary/lab-sim";
import {
  CoderService,
  cpuCoder,
  createCoderPool,
  loadCodec,
  only,
  SharedBuffers,
  slowedCoder,
  type Coder,
} from "@tributary/native-codec";
import {
  EncoderPool,
  xorshift128,
  type ChunkSource,
  type Codec,
  type Encoder,
  type Geometry,
} from "@tributary/protocol";
import { Costs, SymbolRings } from "@tributary/proxy";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { median } from "../kit/figures";
import { nextArrivalMs } from "./draws";

export interface CoderResults {
  engine: string;
  /**
   * Rates of output. `fast` and `slow` are one thread each; `slow` stands in for a device. `apart`: both at once, each
   * with a queue of its own and its share of the tasks by the rates alone. It is what the machine lets both do.
   */
  bytesPerSec: { fast: number; slow: number; both: number; apart: number; even: number };
  /** Of the tasks that a server of two coders carries within the limit: the real queue, and the model. */
  queue: { tasksPerSec: number; modelTasksPerSec: number };
  sharing: Sharing;
}

/** Processor time for a group of one viewer, ms. */
export interface Sharing {
  viewers: number;
  /** Groups that each of them watches with shared symbols. */
  watched: number;
  anewMs: number;
  /** Coding, and handing each symbol to the viewer. */
  sharedMs: number;
  /** Of it: handing. */
  handedMs: number;
  /** The channel in less memory and in more than it needs. Its viewers get some packets each, in turns. */
  memory: { bytes: number; anewMs: number; sharedMs: number }[];
}

const SYMBOLS = 128;
const SYMBOL_BYTES = 4096;
export const GROUP_BYTES = SYMBOLS * SYMBOL_BYTES;
const SLOWER_TIMES = 2;
/** So many that the first and the last ones do not count. */
const TASKS = 1200;
/** Enough that no coder waits for the next task. */
const IN_FLIGHT = 32;
const SEEDS = Uint32Array.from({ length: SYMBOLS }, (_, index) => index + 1);

export async function measureCoders(rounds: number): Promise<CoderResults> {
  const codec = loadCodec(loadWasmCodec);
  return {
    engine: codec.engine,
    bytesPerSec: await measureBoth(codec, rounds),
    queue: await measureQueue(codec),
    sharing: measureSharing(codec),
  };
}

function encoderOf(codec: Codec): Encoder {
  const encoder = codec.createEncoder(SYMBOLS, SYMBOL_BYTES);
  encoder.setSymbols(
    0,
    Uint8Array.from({ length: GROUP_BYTES }, (_, index) => (index * 31) ^ (index >> 8)),
  );
  return encoder;
}

/** A service whose queue refuses nothing. Coders that only encode get one beside them for the rest. */
function serviceOf(codec: Codec, coders: readonly Coder[]): CoderService {
  const rest = only("decode", cpuCoder(createCoderPool(codec, { threads: 1 }), "rest"));
  return new CoderService({ codec, coders: [...coders, rest], tasksMax: () => Infinity, bytesMax: () => Infinity });
}

/** A coder has a thread of its own, as a device has. */
const poolOf = (codec: Codec) => createCoderPool(codec, { threads: 1, ownThreads: true });
const fastCoder = (codec: Codec): Coder => only("encode", cpuCoder(poolOf(codec), "fast"));
const slowCoder = (codec: Codec): Coder => slowedCoder(poolOf(codec), SLOWER_TIMES);

/** Seconds until all tasks are done. */
async function secondsFor(service: CoderService, encoder: Encoder, tasks: number): Promise<number> {
  const buffers = new SharedBuffers();
  let left = tasks;
  const lane = async (): Promise<void> => {
    const out = buffers.take(GROUP_BYTES);
    while (left-- > 0) await service.encode({ encoder, seeds: SEEDS, out });
  };
  const startMs = performance.now();
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
  return (performance.now() - startMs) / 1000;
}

/** In turns, so that ratios hold on a busy machine. Medians. */
async function measureBoth(codec: Codec, rounds: number): Promise<CoderResults["bytesPerSec"]> {
  const encoder = encoderOf(codec);
  const [fast, slow] = [serviceOf(codec, [fastCoder(codec)]), serviceOf(codec, [slowCoder(codec)])];
  const both = serviceOf(codec, [fastCoder(codec), slowCoder(codec)]);
  const seconds: Record<keyof CoderResults["bytesPerSec"], number[]> = {
    fast: [],
    slow: [],
    both: [],
    apart: [],
    even: [],
  };
  const sideBySide = async (fastTasks: number): Promise<number> =>
    Math.max(
      ...(await Promise.all([secondsFor(fast, encoder, fastTasks), secondsFor(slow, encoder, TASKS - fastTasks)])),
    );
  // The first round is not counted: the services do not know the rates of their coders yet.
  for (let round = 0; round <= rounds; round++) {
    const alone = { fast: await secondsFor(fast, encoder, TASKS), slow: await secondsFor(slow, encoder, TASKS) };
    const found = {
      ...alone,
      both: await secondsFor(both, encoder, TASKS),
      apart: await sideBySide(Math.round((TASKS * alone.slow) / (alone.fast + alone.slow))),
      even: await sideBySide(TASKS / 2),
    };
    if (round > 0) for (const [who, sec] of Object.entries(found)) seconds[who as keyof typeof found].push(sec);
  }
  await Promise.all([fast, slow, both].map((service) => service.close()));
  encoder.free();
  const rateOf = (who: keyof typeof seconds): number => (TASKS * GROUP_BYTES) / median(seconds[who]);
  return {
    fast: rateOf("fast"),
    slow: rateOf("slow"),
    both: rateOf("both"),
    apart: rateOf("apart"),
    even: rateOf("even"),
  };
}

const LIMIT_MS = 100;
const SHARE = 0.95;
const QUEUE_MS = 1500;
const QUEUE_STEPS = 6;
/** Both coders do their work this often, so that what waits for 100 ms fits the memory of any machine. */
const QUEUE_SLOWER = [8, 16];
/** As the service's own. */
const PIECE_MS = 2;

/** The queue under random arrivals, and the model with the rates that the coders have when they are never idle. */
async function measureQueue(codec: Codec): Promise<CoderResults["queue"]> {
  const encoder = encoderOf(codec);
  const coders = (): Coder[] => QUEUE_SLOWER.map((times) => slowedCoder(poolOf(codec), times, `x${times}`));
  const rates: number[] = [];
  for (const coder of coders()) {
    const alone = serviceOf(codec, [coder]);
    await secondsFor(alone, encoder, IN_FLIGHT);
    rates.push((2 * IN_FLIGHT) / (await secondsFor(alone, encoder, 2 * IN_FLIGHT)) / 1000);
    await alone.close();
  }
  const service = serviceOf(codec, coders());
  await secondsFor(service, encoder, IN_FLIGHT);
  const bothPerMs = (4 * IN_FLIGHT) / (await secondsFor(service, encoder, 4 * IN_FLIGHT)) / 1000;
  // What both make together is less than the sum of each alone. The model is about the queue, so it has the rates.
  const share = bothPerMs / (rates[0]! + rates[1]!);
  let [low, high] = [0.5 * bothPerMs, 1.3 * bothPerMs];
  for (let step = 0; step < QUEUE_STEPS; step++) {
    const middle = (low + high) / 2;
    if (await isCarried(service, encoder, middle)) low = middle;
    else high = middle;
  }
  await service.close();
  encoder.free();
  const model = capacityOf(
    {
      coders: rates.map((tasksPerMs) => ({ slots: 1, rowsPerMs: share * tasksPerMs * SYMBOLS })),
      policy: "self",
      taskRows: SYMBOLS,
      pieceMs: PIECE_MS,
      tasks: Math.round(bothPerMs * QUEUE_MS),
      seed: 1,
    },
    LIMIT_MS,
    SHARE,
  );
  return { tasksPerSec: 1000 * low, modelTasksPerSec: 1000 * model };
}

/** Poisson arrivals for a while: whether enough tasks end within the limit. */
async function isCarried(service: CoderService, encoder: Encoder, tasksPerMs: number): Promise<boolean> {
  const random = new Random(1);
  const buffers = new SharedBuffers(512 * 1024 * 1024);
  const responseMs: number[] = [];
  const running: Promise<void>[] = [];
  const startMs = performance.now();
  const submit = async (arrivalMs: number): Promise<void> => {
    const out = buffers.take(GROUP_BYTES);
    await service.encode({ encoder, seeds: SEEDS, out });
    responseMs.push(performance.now() - arrivalMs);
    buffers.give(out);
  };
  for (let dueMs = startMs; dueMs < startMs + QUEUE_MS; dueMs += nextArrivalMs(random, 1000 * tasksPerMs)) {
    // A loop that looked all the time would take a core from the coders.
    while (performance.now() < dueMs) await setTimeout(1);
    running.push(submit(dueMs));
  }
  await Promise.all(running);
  return responseMs.filter((ms) => ms <= LIMIT_MS).length >= SHARE * responseMs.length;
}

/** Viewers of one channel, all at different places of it. */
const VIEWERS = 1000;
/** How many groups each of them watches, with symbols that are coded for it alone and with shared ones. */
const WATCHED = { anew: 2, shared: 60 };
/** As many groups as 160 MB have. */
const GROUPS = Math.floor(160e6 / GROUP_BYTES);
/** Enough for all groups and all their symbols. */
const MEMORY_BYTES = 1024 * 1024 * 1024;
/** Symbols that are coded at once. */
const PASS = 16;
const MIB = 2 ** 20;
const MEMORIES = [64, 128, 256, 512].map((mib) => mib * MIB);
const MEMORY_WATCHED = 2;

/**
 * With symbols that are coded for each viewer alone, and from rings that begin empty. One thread does all of it, and
 * the times are the processor's. Memory that is used for the first time counts as the coder's.
 */
function measureSharing(codec: Codec): Sharing {
  const body = new Uint8Array(GROUPS * GROUP_BYTES).map((_, index) => (index * 31) ^ (index >> 8));
  const source = {
    name: "channel",
    totalBytes: body.length,
    availableBytes: body.length,
    view: (start: number, end: number) => body.subarray(start, end),
  };
  const geometry: Geometry = {
    totalBytes: body.length,
    symbolBytes: SYMBOL_BYTES,
    generationSize: SYMBOLS,
    symbolCount: GROUPS * SYMBOLS,
    generationCount: GROUPS,
  };
  const pool = new EncoderPool(codec, MEMORY_BYTES);
  const out = new Uint8Array(PASS * SYMBOL_BYTES);
  const anewMs = msOf(WATCHED.anew, (_, group) => {
    const encoder = pool.encoderOf(source, geometry, group);
    for (let at = 0; at < SYMBOLS; at += PASS) encoder.encodeSeeds(SEEDS.subarray(at, at + PASS), out);
  });
  pool.free();
  const rings = new SymbolRings({ codec, rng: xorshift128(1), costs: new Costs(), bytesMax: MEMORY_BYTES });
  const watch = (viewing: number, group: number): void => {
    const supply = rings.supplyFor(viewing, geometry, source, () => undefined);
    for (let left = SYMBOLS - 1; left >= 0; left--) supply.next(group, (limit) => Math.min(limit, left));
  };
  const allMs = msOf(WATCHED.shared, watch);
  const handedMs = msOf(WATCHED.shared, (viewing, group) => watch(viewing + VIEWERS * WATCHED.shared, group));
  rings.close();
  const groups = VIEWERS * WATCHED.shared;
  return {
    viewers: VIEWERS,
    watched: WATCHED.shared,
    anewMs: anewMs / VIEWERS / WATCHED.anew,
    sharedMs: allMs / groups,
    handedMs: handedMs / groups,
    memory: MEMORIES.map((bytes) => measureMemory(codec, bytes, source, geometry)),
  };
}

/** All viewers take their groups in turns, a pass of each, so all groups of the channel are in demand. */
function measureMemory(codec: Codec, bytes: number, source: ChunkSource, geometry: Geometry): Sharing["memory"][0] {
  const passes = SYMBOLS / PASS;
  const groupOf = (turn: number): number => ((turn % VIEWERS) + watchedOf(turn)) % GROUPS;
  const watchedOf = (turn: number): number => Math.floor(turn / VIEWERS / passes);
  const [seeds, out] = [SEEDS.subarray(0, PASS), new Uint8Array(PASS * SYMBOL_BYTES)];
  const pool = new EncoderPool(codec, bytes);
  const anewMs = msOf(passes * MEMORY_WATCHED, (turn) =>
    pool.encoderOf(source, geometry, groupOf(turn)).encodeSeeds(seeds, out),
  );
  pool.free();
  const rings = new SymbolRings({ codec, rng: xorshift128(1), costs: new Costs(), bytesMax: bytes });
  const sharedMs = msOf(passes * MEMORY_WATCHED, (turn) => {
    const viewing = (turn % VIEWERS) + VIEWERS * watchedOf(turn);
    const supply = rings.supplyFor(viewing, geometry, source, () => undefined);
    for (let left = PASS - 1; left >= 0; left--) supply.next(groupOf(turn), (limit) => Math.min(limit, left));
  });
  rings.close();
  const groups = VIEWERS * MEMORY_WATCHED;
  return { bytes, anewMs: anewMs / groups, sharedMs: sharedMs / groups };
}

/** `serve` gives one viewer one group. Each such viewing has its own number, as a download has. */
function msOf(watched: number, serve: (viewing: number, group: number) => void): number {
  const before = process.cpuUsage();
  for (let viewing = 0; viewing < VIEWERS * watched; viewing++)
    serve(viewing, ((viewing % VIEWERS) + Math.floor(viewing / VIEWERS)) % GROUPS);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
