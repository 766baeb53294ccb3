/**
 * What a WebAssembly runtime could do at best, to weigh the modules by: multiply-adds of bytes, two look-ups and two
 * XORs for 16 bytes, at the vector unit's peak. The look-ups are `swizzle` or `relaxed-swizzle`, from registers alone,
 * or `sums`, loads from the L1 cache, as the SIMD modules do it. Nothing useful is computed. The modules are put
 * together here, as no compiler would leave such a loop alone.
 */

export type LookUp = "swizzle" | "relaxed-swizzle" | "sums";

interface Runtime {
  validate(bytes: Uint8Array): boolean;
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: Readonly<Record<string, unknown>> };
}

/** Node and browsers have it alike; types that are neither's do not. */
const runtime = (globalThis as unknown as { readonly WebAssembly: Runtime }).WebAssembly;

/** Independent sums: enough to hide what an instruction takes from start to end. */
const CHAINS = 8;
const VECTOR_BYTES = 16;
const LOOK_UPS = 2;
/** Multiply-adds, in bytes, of one turn of the loop. */
const TURN_BYTES = CHAINS * VECTOR_BYTES;
/** Each turn loads from the next of 64 places, 16 KB in all: less than every L1 data cache has. */
const PLACES_MASK = 63 * TURN_BYTES * LOOK_UPS;

const [I32, V128] = [0x7f, 0x7b];
const EMPTY_BLOCK = 0x40;
const op = {
  loop: 0x03,
  end: 0x0b,
  brIf: 0x0d,
  get: 0x20,
  set: 0x21,
  tee: 0x22,
  i32Const: 0x41,
  i32Add: 0x6a,
  i32Sub: 0x6b,
  i32And: 0x71,
  i32Mul: 0x6c,
  load: [0xfd, 0x00],
  splat: [0xfd, 0x0f],
  swizzle: [0xfd, 0x0e],
  relaxedSwizzle: [0xfd, 0x80, 0x02],
  xor: [0xfd, 0x51],
  anyTrue: [0xfd, 0x53],
} as const;

/** LEB128, unsigned. Of signed operands only such are used here as are the same with a zero on top. */
function leb(value: number): number[] {
  return value < 0x40 ? [value] : [(value & 0x7f) | 0x80, ...leb(value >>> 7)];
}

// Locals: turns left, 0; where the loads begin, 1; the sums from 2 on; a table after them.
const [TURNS, PLACE, SUM] = [0, 1, 2];
const TABLE = SUM + CHAINS;
const sums = Array.from({ length: CHAINS }, (_, index) => SUM + index);

function lookUpCode(kind: LookUp, sum: number, index: number): number[] {
  if (kind === "sums") return [op.get, PLACE, ...op.load, 0, ...leb(((sum - SUM) * LOOK_UPS + index) * VECTOR_BYTES)];
  return [op.get, TABLE + index, op.get, sum, ...(kind === "swizzle" ? op.swizzle : op.relaxedSwizzle)];
}

function turnCode(kind: LookUp): number[] {
  const place = [
    op.get,
    TURNS,
    op.i32Const,
    ...leb(TURN_BYTES * LOOK_UPS),
    op.i32Mul,
    op.i32Const,
    ...leb(PLACES_MASK),
    op.i32And,
    op.set,
    PLACE,
  ];
  const chain = (sum: number): number[] => [
    op.get,
    sum,
    ...lookUpCode(kind, sum, 0),
    ...op.xor,
    ...lookUpCode(kind, sum, 1),
    ...op.xor,
    op.set,
    sum,
  ];
  return [...(kind === "sums" ? place : []), ...sums.flatMap(chain)];
}

/** `(turns: i32) => i32`: no value of a local is known when it is compiled. */
function functionBody(kind: LookUp): number[] {
  const vectors = CHAINS + LOOK_UPS;
  const start = Array.from({ length: vectors }, (_, index) => [
    op.get,
    TURNS,
    op.i32Const,
    index,
    op.i32Add,
    ...op.splat,
    op.set,
    SUM + index,
  ]).flat();
  const loop = [
    op.loop,
    EMPTY_BLOCK,
    ...turnCode(kind),
    op.get,
    TURNS,
    op.i32Const,
    1,
    op.i32Sub,
    op.tee,
    TURNS,
    op.brIf,
    0,
    op.end,
  ];
  const result = [...sums.flatMap((sum, index) => [op.get, sum, ...(index > 0 ? op.xor : [])]), ...op.anyTrue, op.end];
  return [2, 1, I32, vectors, V128, ...start, ...loop, ...result];
}

function moduleBytes(kind: LookUp): Uint8Array {
  const section = (id: number, content: readonly number[]): number[] => [id, ...leb(content.length), ...content];
  const body = functionBody(kind);
  return Uint8Array.from([
    0,
    0x61,
    0x73,
    0x6d,
    1,
    0,
    0,
    0,
    ...section(1, [1, 0x60, 1, I32, 1, I32]),
    ...section(3, [1, 0]),
    ...section(5, [1, 0, 1]),
    ...section(7, [1, 1, 0x66, 0, 0]),
    ...section(10, [1, ...leb(body.length), ...body]),
  ]);
}

/**
 * Does so many bytes of multiply-adds, or a few more, each time it is called; undefined where the runtime has not the
 * instructions.
 */
export function wasmRoofline(kind: LookUp, multiplyAdds: number): (() => void) | undefined {
  const bytes = moduleBytes(kind);
  if (!runtime.validate(bytes)) return undefined;
  const run = new runtime.Instance(new runtime.Module(bytes)).exports["f"] as (turns: number) => number;
  const turns = Math.ceil(multiplyAdds / TURN_BYTES);
  return () => void run(turns);
}
