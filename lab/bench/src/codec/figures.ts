/**
 * The figures that the codec is to reach, from the samples of a run. Pure. Nothing is estimated: a figure is not
 * measured if one of its cases was not.
 */
import { ADDON_BATCHES, BATCH, ISAL_BATCH, ISAL_BEST_PATHS, type Request } from "./cases";
import { groupBy, median } from "../kit/figures";
import { atLeast, atMost, type Figure } from "../kit/verdict";
import { GroupSamples, outputBytesPerSec, speedRatio, type Measured } from "./samples";

type Value = number | undefined;

/** A ratio, `x`. undefined: not measured here. */
const factor = (what: string, value: Value, limits: readonly number[], note: string): Figure =>
  atLeast(what, value ?? NaN, limits, { unit: "x", note });
const duration = (what: string, value: Value, unit: "us" | "ms", limits: readonly number[], note: string): Figure =>
  atMost(what, value ?? NaN, limits, { unit: ` ${unit}`, note });

const ratio = (a: Measured | undefined, b: Measured | undefined): number | undefined =>
  a && b ? speedRatio(a, b) : undefined;
const secondsOf = (measured: Measured | undefined, unit: number): number | undefined =>
  measured ? median(measured.seconds) * unit : undefined;
const times = (value: number | undefined): string => (value === undefined ? "not measured" : `${value.toFixed(2)}x`);
const megabytes = (measured: Measured | undefined): string =>
  measured ? `${Math.round(outputBytesPerSec(measured) / 1e6).toLocaleString("en")} MB/s` : "not measured";

/** The share of a roofline that was reached. */
function share(measured: Measured | undefined, roofline: Measured | undefined): string {
  const value = ratio(measured, roofline);
  return value === undefined ? "an unknown part" : `${Math.round(value * 100)} %`;
}

/** Cases of one group, by short names. */
class View {
  readonly #samples: GroupSamples;

  constructor(samples: GroupSamples) {
    this.#samples = samples;
  }

  ours(request: Request, outputs: number, path?: string): Measured | undefined {
    return this.#samples.fastest({ runner: "native", contender: "ours", request, outputs, ...(path ? { path } : {}) });
  }

  isaL(request: Request, outputs: number, path: string | readonly string[] = ISAL_BEST_PATHS): Measured | undefined {
    return this.#samples.fastest({ contender: "isa-l", request, outputs, path });
  }

  roofline(path: "registers" | "loads"): Measured | undefined {
    return this.#samples.fastest({ contender: "roofline", path });
  }

  crate(contender: string, request: Request): Measured | undefined {
    return this.#samples.fastest({ contender, request });
  }

  chromium(path: string, request: Request, outputs: number): Measured | undefined {
    return this.#samples.fastest({ runner: "chromium", path, request, outputs });
  }

  addon(outputs: number): Measured | undefined {
    return this.#samples.fastest({ runner: "addon", outputs });
  }
}

function encodeFigures(key: View, large: View): Figure[] {
  const [one, batch] = [key.ours("encode", 1), key.ours("encode", BATCH)];
  const six = key.isaL("encode", ISAL_BATCH);
  const largeSix = large.isaL("encode", ISAL_BATCH);
  const isaLPath = six?.case.path === "best" ? "its own choice of path" : `its path ${six?.case.path ?? "?"}`;
  return [
    factor(
      "encode 24 x 1,400, 1 output, over ISA-L with 1",
      ratio(one, key.isaL("encode", 1)),
      [1.6, 1.75],
      `${megabytes(one)}, ${share(one, key.roofline("loads"))} of the roofline with a load for each ` +
        "multiply-add; ISA-L given aligned rows, as the core makes itself; over ISA-L with symbols back to " +
        `back ${times(ratio(one, key.isaL("encode-packed", 1, "best")))}`,
    ),
    factor(
      `encode 24 x 1,400, ${BATCH} outputs, over ISA-L with ${ISAL_BATCH}`,
      ratio(batch, six),
      [1.2, 1.35],
      `${megabytes(batch)}, ${share(batch, key.roofline("registers"))} of the vector unit's roofline; ` +
        `with 4 outputs ${times(ratio(key.ours("encode", 4), six))}; ISA-L by ${isaLPath}, with symbols ` +
        `back to back ${times(ratio(batch, key.isaL("encode-packed", ISAL_BATCH, "best")))}`,
    ),
    factor(
      `encode 128 x 4,096, ${BATCH} outputs, over ISA-L with ${ISAL_BATCH}`,
      ratio(large.ours("encode", BATCH), largeSix),
      [1.15, 1.25],
      `${megabytes(large.ours("encode", BATCH))}; with 4 outputs ` +
        `${times(ratio(large.ours("encode", 4), largeSix))}`,
    ),
    factor(
      `AVX2 engine, 24 x 1,400, ${BATCH} outputs, over ISA-L's AVX2 path with ${ISAL_BATCH}`,
      ratio(key.ours("encode", BATCH, "avx2"), key.isaL("encode", ISAL_BATCH, "avx2")),
      [0.95, 1.1],
      `${megabytes(key.ours("encode", BATCH, "avx2"))}; with 4 outputs ` +
        `${times(ratio(key.ours("encode", 4, "avx2"), key.isaL("encode", ISAL_BATCH, "avx2")))}`,
    ),
    factor(
      "encode 24 x 1,400 over the rlnc crate",
      ratio(batch, key.crate("rlnc", "encode")),
      [15, 18],
      `${BATCH} outputs; with 1 ${times(ratio(one, key.crate("rlnc", "encode")))}; rlnc ` +
        `${megabytes(key.crate("rlnc", "encode"))}`,
    ),
  ];
}

/**
 * What was reached of the rate at which a dense product alone would run, and what that rate would be over the rival.
 */
function decodeNote(view: View, g: number, rival: string): string {
  const [decoded, other, roofline] = [view.ours("decode", g), view.crate(rival, "decode"), view.roofline("registers")];
  return (
    `${megabytes(decoded)}; ${rival} ${megabytes(other)}; ${share(decoded, roofline)} of the vector ` +
    `unit's roofline for a dense code, which itself is ${times(ratio(roofline, other))}`
  );
}

function decodeFigures(key: View, medium: View, large: View): Figure[] {
  const over = (view: View, g: number, rival: string): number | undefined =>
    ratio(view.ours("decode", g), view.crate(rival, "decode"));
  return [
    factor("decode 24 x 1,400 over the rlnc crate", over(key, 24, "rlnc"), [13, 16], decodeNote(key, 24, "rlnc")),
    factor(
      "decode 24 x 1,400 over ISA-L invert + encode",
      ratio(key.ours("decode", 24), key.isaL("decode", 24)),
      [5, 6],
      `ISA-L ${megabytes(key.isaL("decode", 24))}`,
    ),
    factor("decode 64 x 1,400 over raptorq", over(medium, 64, "raptorq"), [10, 12], decodeNote(medium, 64, "raptorq")),
    factor(
      "decode 128 x 4,096 over raptorq",
      over(large, 128, "raptorq"),
      [1.7, 2.2],
      decodeNote(large, 128, "raptorq"),
    ),
  ];
}

function wasmFigures(encode: View, decode: View): Figure[] {
  const modules = [
    { name: "plain SIMD", path: "simd128", encode: [0.27, 0.33], decode: [1.8, 2.2] },
    { name: "relaxed SIMD", path: "relaxed-simd", encode: [0.38, 0.5], decode: [2.3, 3.2] },
  ] as const;
  return [
    ...modules.map(({ name, path, encode: [floor, aim] }): Figure => {
      const measured = encode.chromium(path, "encode", BATCH);
      return factor(
        `WASM encode in Chromium, 24 x 1,400, over ISA-L's AVX2 path with ${ISAL_BATCH}: ${name}`,
        ratio(measured, encode.isaL("encode", ISAL_BATCH, "avx2")),
        [floor, aim],
        `${megabytes(measured)}, copies in and out included`,
      );
    }),
    ...modules.map(({ name, path, decode: [floor, aim] }): Figure => {
      const measured = decode.chromium(path, "decode", 24);
      return factor(
        `WASM decode in Chromium, 24 x 1,400, over the rlnc crate run natively: ${name}`,
        ratio(measured, decode.crate("rlnc", "decode")),
        [floor, aim],
        megabytes(measured),
      );
    }),
  ];
}

/** The fastest of the modules that Chromium can run. */
function fastestInChromium(samples: GroupSamples, request: Request): Measured | undefined {
  return samples.fastest({ runner: "chromium", request });
}

function lastPacketFigures(last: GroupSamples): Figure[] {
  const native = new View(last).ours("decode-last", 24);
  const wasm = fastestInChromium(last, "decode-last");
  return [
    duration(
      "work left after the last packet, 24 x 1,400: native",
      secondsOf(native, 1e6),
      "us",
      [6, 4],
      `engine ${native?.case.path ?? "?"}`,
    ),
    duration(
      "work left after the last packet, 24 x 1,400: WASM in Chromium",
      secondsOf(wasm, 1e6),
      "us",
      [60, 40],
      `module ${wasm?.case.path ?? "?"}`,
    ),
  ];
}

function otherFigures(groups: { addon: GroupSamples; repair: GroupSamples }): Figure[] {
  const addon = new View(groups.addon);
  const over = (request: Request): (number | undefined)[] =>
    ADDON_BATCHES.map((outputs) => ratio(addon.addon(outputs), addon.ours(request, outputs)));
  const [batch, larger] = over("encode-flow");
  const [oneBuffer, largerOneBuffer] = over("encode");
  const repair = fastestInChromium(groups.repair, "repair");
  const arrival = secondsOf(fastestInChromium(groups.repair, "repair-arrival"), 1e3);
  return [
    factor(
      "through the Node addon, batches of 268,800 bytes, over the C++ core",
      batch,
      [0.85, 0.95],
      `${megabytes(addon.addon(ADDON_BATCHES[0]))}, pool of one thread, 16 batches in flight, the core ` +
        `into as many buffers in turns; over the core into a single buffer ${times(oneBuffer)}; batches of ` +
        `1,075,200 bytes ${times(larger)} and ${times(largerOneBuffer)}`,
    ),
    duration(
      "whole-chunk repair, 1,430 x 1,100, 29 missing, WASM in Chromium, after the last packet",
      secondsOf(repair, 1e3),
      "ms",
      [6, 3],
      arrival === undefined ? "" : `work on arrival, apart: ${arrival.toFixed(1)} ms in all`,
    ),
  ];
}

interface Cliff {
  readonly ratio: number;
  readonly where: string;
}

/** Rates along one line of the grid; the worst point against the geometric mean of its two neighbours. */
function worstOf(line: readonly { at: string; rate: number }[]): Cliff[] {
  return line
    .slice(1, -1)
    .map(({ at, rate }, index) => ({ where: at, ratio: rate / Math.sqrt(line[index]!.rate * line[index + 2]!.rate) }));
}

/** Looks along both axes of the grid, in multiply-adds a second so that the axis itself does not slope. */
export function findCliff(groups: readonly GroupSamples[]): Cliff | undefined {
  const points = groups
    .flatMap((group) => group.all())
    .filter(({ case: c }) => c.contender === "ours")
    .flatMap(({ case: c, seconds }) => {
      const at = `${c.request} ${c.g} x ${c.symbolBytes}, ${c.runner} ${c.path}`;
      const rate = (c.outputs * c.symbolBytes * c.g) / median(seconds);
      const key = `${c.runner} ${c.path} ${c.request}`;
      return [
        { at, rate, line: `${key} g ${c.g}`, along: c.symbolBytes },
        { at, rate, line: `${key} bytes ${c.symbolBytes}`, along: c.g },
      ];
    });
  const lines = groupBy(points, ({ line }) => line).values();
  const all = [...lines].flatMap((line) => worstOf(line.sort((a, b) => a.along - b.along)));
  return all.sort((a, b) => a.ratio - b.ratio)[0];
}

export function figuresOf(samples: readonly GroupSamples[]): Figure[] {
  const groups = new Map(samples.map((group) => [group.name, group]));
  const group = (name: string): GroupSamples => groups.get(name) ?? new GroupSamples(name, []);
  const [key, decode] = [new View(group("encode 24 x 1,400")), new View(group("decode 24 x 1,400"))];
  const encode = encodeFigures(key, new View(group("encode 128 x 4,096")));
  const cliff = findCliff(samples.filter(({ name }) => name.startsWith("grid ")));
  return [
    ...encode,
    ...decodeFigures(decode, new View(group("decode 64 x 1,400")), new View(group("decode 128 x 4,096"))),
    ...wasmFigures(key, decode),
    ...lastPacketFigures(group("decode 24 x 1,400, after the last packet")),
    ...otherFigures({
      addon: group("encode 24 x 1,400 through the addon"),
      repair: group("repair 1,430 x 1,100, 29 missing"),
    }),
    factor(
      "no cliff: worst point of the grid over the geometric mean of its neighbours",
      cliff?.ratio,
      [0.5, 0.5],
      cliff?.where ?? "",
    ),
  ];
}
