/**
 * What the codec bench measures: cases, grouped so that everything whose ratio matters is measured in turns with the
 * other side of that ratio. Pure: engines come in as names, nothing is run here.
 */

export type Op = "encode" | "decode" | "recode" | "repair";
export type Runtime = "native" | "node-wasm" | "chromium-wasm";
/** Processes that measure: the C++ program, the Rust program, Node with WebAssembly, Chromium, Node with the addon. */
export type RunnerName = "native" | "rust" | "node" | "chromium" | "addon";

/**
 * What a runner is asked for. Some differ from a plain `Op`. `encode-packed`: sources lie back to back, where other
 * cases have rows on 64-byte boundaries. `encode-flow`: results go into 4 MB of buffers in turns, as many as are in
 * flight through the addon, where other cases write into one. `decode-last`: the work that is left when the last packet
 * arrives. `repair-arrival`: all the work before that.
 */
export type Request = Op | "encode-packed" | "encode-flow" | "decode-last" | "repair-arrival";

export interface Case {
  readonly runner: RunnerName;
  /** `ours`, or the rival's name. */
  readonly contender: string;
  /** Our engine, or a rival's code path. `-`: there is only one. */
  readonly path: string;
  readonly request: Request;
  /** Source symbols. */
  readonly g: number;
  readonly symbolBytes: number;
  /** Symbols that one operation produces. */
  readonly outputs: number;
}

export interface Group {
  readonly name: string;
  readonly cases: readonly Case[];
}

/** Engine names that each runner has here, fastest first. A runner that is absent has none. */
export type Engines = Readonly<Record<RunnerName, readonly string[]>>;

/** Repair: symbols of a chunk, and how many of them are missing. */
export const REPAIR = { g: 1430, symbolBytes: 1100, missing: 29 } as const;
/** Outputs of a batch in one encode call of ours. */
export const BATCH = 16;
/** Outputs at which ISA-L is fastest. */
export const ISAL_BATCH = 6;
/** Outputs of batches of 268,800 and 1,075,200 bytes at 1,400. */
export const ADDON_BATCHES = [192, 768] as const;

export const caseKey = (c: Case): string =>
  `${c.runner} ${c.contender} ${c.path} ${c.request} ${c.g} ${c.symbolBytes} ${c.outputs}`;

export function opOf(request: Request): Op {
  return request.split("-")[0] as Op;
}

export function runtimeOf(runner: RunnerName): Runtime {
  return runner === "node" ? "node-wasm" : runner === "chromium" ? "chromium-wasm" : "native";
}

type Shape = readonly [g: number, symbolBytes: number];

const of = (
  runner: RunnerName,
  contender: string,
  path: string,
  request: Request,
  [g, symbolBytes]: Shape,
  outputs: number,
): Case => ({ runner, contender, path, request, g, symbolBytes, outputs });
const ours = (path: string, request: Request, shape: Shape, outputs: number): Case =>
  of("native", "ours", path, request, shape, outputs);
const isaL = (path: string, request: Request, shape: Shape, outputs: number): Case =>
  of("native", "isa-l", path, request, shape, outputs);
const crate = (name: string, request: Request, shape: Shape, outputs: number): Case =>
  of("rust", name, "-", request, shape, outputs);

function wasm(
  engines: Engines,
  request: Request,
  shape: Shape,
  outputs: number,
  runners: readonly RunnerName[] = ["node", "chromium"],
): Case[] {
  return runners.flatMap((runner) => engines[runner].map((path) => of(runner, "ours", path, request, shape, outputs)));
}

/**
 * ISA-L chooses a path by itself; the other GFNI path is measured too, since on some processors it is the faster one.
 */
const ISAL_PATHS = ["best", "avx2_gfni", "avx2"];
export const ISAL_BEST_PATHS = ["best", "avx2_gfni"];

const KEY_SHAPE: Shape = [24, 1400];
const LARGE_SHAPE: Shape = [128, 4096];
/** Too slow for batches. They are measured for comparison. */
const SLOW_ENGINES = ["scalar", "reference"];

function encodeKeyShape(engines: Engines): Group {
  const shape = KEY_SHAPE;
  return {
    name: "encode 24 x 1,400",
    cases: [
      ...engines.native.flatMap((path) =>
        (SLOW_ENGINES.includes(path) ? [4] : [1, 4, BATCH]).map((outputs) => ours(path, "encode", shape, outputs)),
      ),
      ...ISAL_PATHS.flatMap((path) => [1, ISAL_BATCH].map((outputs) => isaL(path, "encode", shape, outputs))),
      ...[1, ISAL_BATCH].map((outputs) => isaL("best", "encode-packed", shape, outputs)),
      crate("rlnc", "encode", shape, 1),
      crate("reed-solomon-simd", "encode", shape, BATCH),
      crate("raptorq", "encode", shape, 24),
      ...["registers", "loads"].map((path) => of("native", "roofline", path, "encode", shape, BATCH)),
      ...wasm(engines, "encode", shape, 1, ["chromium"]),
      ...wasm(engines, "encode", shape, BATCH),
    ],
  };
}

function encodeLargeShape(engines: Engines): Group {
  const shape = LARGE_SHAPE;
  return {
    name: "encode 128 x 4,096",
    cases: [
      ...engines.native
        .filter((path) => !SLOW_ENGINES.includes(path))
        .flatMap((path) => [1, 4, BATCH].map((outputs) => ours(path, "encode", shape, outputs))),
      ...ISAL_PATHS.map((path) => isaL(path, "encode", shape, ISAL_BATCH)),
      isaL("best", "encode", shape, 1),
      crate("rlnc", "encode", shape, 1),
      ...wasm(engines, "encode", shape, BATCH, ["chromium"]),
    ],
  };
}

function decodeKeyShape(engines: Engines): Group {
  const [shape, g] = [KEY_SHAPE, KEY_SHAPE[0]];
  return {
    name: "decode 24 x 1,400",
    cases: [
      ...engines.native.map((path) => ours(path, "decode", shape, g)),
      ...ISAL_PATHS.map((path) => isaL(path, "decode", shape, g)),
      ...["rlnc", "reed-solomon-simd", "raptorq"].map((name) => crate(name, "decode", shape, g)),
      of("native", "roofline", "registers", "decode", shape, g),
      ...wasm(engines, "decode", shape, g),
    ],
  };
}

function decodeShape(engines: Engines, shape: Shape): Group {
  const [g, symbolBytes] = shape;
  return {
    name: `decode ${g} x ${symbolBytes.toLocaleString("en")}`,
    cases: [
      ...engines.native.slice(0, 1).map((path) => ours(path, "decode", shape, g)),
      ...ISAL_BEST_PATHS.map((path) => isaL(path, "decode", shape, g)),
      ...["rlnc", "raptorq"].map((name) => crate(name, "decode", shape, g)),
      of("native", "roofline", "registers", "decode", shape, g),
    ],
  };
}

function afterLastPacket(engines: Engines): Group {
  const g = KEY_SHAPE[0];
  return {
    name: "decode 24 x 1,400, after the last packet",
    cases: [
      ...engines.native
        .filter((path) => !SLOW_ENGINES.includes(path))
        .map((path) => ours(path, "decode-last", KEY_SHAPE, g)),
      ...wasm(engines, "decode-last", KEY_SHAPE, g),
    ],
  };
}

function recode(engines: Engines): Group {
  return {
    name: "recode 24 x 1,400",
    cases: [
      ...engines.native
        .filter((path) => !SLOW_ENGINES.includes(path))
        .map((path) => ours(path, "recode", KEY_SHAPE, 1)),
      crate("rlnc", "recode", KEY_SHAPE, 1),
      ...wasm(engines, "recode", KEY_SHAPE, 1),
    ],
  };
}

function repair(engines: Engines): Group {
  const shape: Shape = [REPAIR.g, REPAIR.symbolBytes];
  const requests: Request[] = ["repair", "repair-arrival"];
  return {
    name: "repair 1,430 x 1,100, 29 missing",
    cases: requests.flatMap((request) => [
      ...engines.native.slice(0, 1).map((path) => ours(path, request, shape, REPAIR.missing)),
      ...wasm(engines, request, shape, REPAIR.missing).filter((c) => !SLOW_ENGINES.includes(c.path)),
    ]),
  };
}

/** The same engine through the addon and without it: into as many buffers, and into one. */
function addon(engines: Engines): Group {
  const both = engines.addon.slice(0, 1).filter((path) => engines.native.includes(path));
  return {
    name: "encode 24 x 1,400 through the addon",
    cases: both.flatMap((path) =>
      ADDON_BATCHES.flatMap((outputs) => [
        ours(path, "encode", KEY_SHAPE, outputs),
        ours(path, "encode-flow", KEY_SHAPE, outputs),
        of("addon", "ours", path, "encode", KEY_SHAPE, outputs),
      ]),
    ),
  };
}

const SYMBOL_BYTES = [256, 1024, 1100, 1400, 4096, 32768];
const GENERATION_SIZES = [16, 24, 32, 48, 64, 128];
const QUICK_SYMBOL_BYTES = [256, 1100, 1400, 4096, 32768];
const QUICK_GENERATION_SIZES = [16, 24, 64, 128];

/** A quick run has only the shapes that share g or the symbol size with 24 x 1,400. */
function gridShapes(quick: boolean): Shape[] {
  const all = (quick ? QUICK_GENERATION_SIZES : GENERATION_SIZES).flatMap((g) =>
    (quick ? QUICK_SYMBOL_BYTES : SYMBOL_BYTES).map((symbolBytes): Shape => [g, symbolBytes]),
  );
  return quick ? all.filter(([g, bytes]) => g === KEY_SHAPE[0] || bytes === KEY_SHAPE[1]) : all;
}

/** Our engines alone: the grid is there to find cliffs. */
function gridGroup(engines: Engines, shape: Shape): Group {
  const [g, symbolBytes] = shape;
  const native = engines.native.filter((path, index) => index === 0 || path === "avx2");
  return {
    name: `grid ${g} x ${symbolBytes.toLocaleString("en")}`,
    cases: [
      ...native.flatMap((path) => [ours(path, "encode", shape, BATCH), ours(path, "decode", shape, g)]),
      ...wasm(engines, "encode", shape, BATCH, ["chromium"]),
      ...wasm(engines, "decode", shape, g, ["chromium"]),
    ].filter(({ path }) => !SLOW_ENGINES.includes(path)),
  };
}

/** Everything that a run measures, in order. */
export function planGroups(engines: Engines, quick: boolean): Group[] {
  const figures = [
    encodeKeyShape(engines),
    encodeLargeShape(engines),
    decodeKeyShape(engines),
    decodeShape(engines, [64, 1400]),
    decodeShape(engines, LARGE_SHAPE),
    afterLastPacket(engines),
    recode(engines),
    repair(engines),
    addon(engines),
  ];
  return [...figures, ...gridShapes(quick).map((shape) => gridGroup(engines, shape))];
}
