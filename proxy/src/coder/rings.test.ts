/**
 * Shared symbols: every viewer decodes them, nobody gets one twice, few are coded for many viewers, and memory stays
 * bounded, also when generations leave while they are coded.
 */
import {
  CoderLostError,
  CoderService,
  cpuCoder,
  createCoderPool,
  loadNativeCodec,
  type Coder,
} from "@tributary/native-codec";
import { geometryOf, xorshift128, type ChunkSource, type Geometry, type SymbolSupply } from "@tributary/protocol";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { Costs } from "./costs";
import { Ring } from "./ring";
import { SymbolRings } from "./rings";

const codec = loadNativeCodec().codec ?? loadWasmCodec();
const SYMBOL_BYTES = 40;
const GENERATION_SIZE = 24;
const body = Uint8Array.from({ length: 5 * GENERATION_SIZE * SYMBOL_BYTES - 7 }, (_, i) => (i * 31) ^ (i >> 8));
const geometry = geometryOf(body.length, SYMBOL_BYTES, GENERATION_SIZE) as Geometry;
const sourceOf = (name: string): ChunkSource => ({
  name,
  totalBytes: body.length,
  availableBytes: body.length,
  view: (start, end) => body.subarray(start, end),
});
const settled = () => new Promise((resolve) => setImmediate(resolve));

const services: CoderService[] = [];
afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.close()));
});

/** Rings whose batches all go to the service, or none of them. */
function ringsOf(options: { bytesMax?: number; coders?: Coder[]; tasksMax?: number } = {}) {
  const costs = new Costs();
  const { coders, bytesMax = 1e6, tasksMax = 100 } = options;
  if (coders) costs.handoverMs = 0;
  costs.noteInline(1, 1);
  const rings = new SymbolRings({ codec, rng: xorshift128(7), costs, bytesMax });
  if (coders) {
    const service = new CoderService({ codec, coders, tasksMax: () => tasksMax });
    services.push(service);
    rings.setService(service);
  }
  return rings;
}

const pool = (): Coder => cpuCoder(createCoderPool(codec, { threads: 2 }));

class Viewer {
  readonly seeds: number[] = [];
  readonly #supply: SymbolSupply;
  #wake: () => void = () => undefined;

  constructor(rings: SymbolRings, id: number, source = sourceOf("body")) {
    this.#supply = rings.supplyFor(id, geometry, source, () => this.#wake());
  }

  /** Undefined if the symbol is not ready. */
  take(index: number, following = 0): { seed: number; payload: Uint8Array } | undefined {
    const symbol = this.#supply.next(index, (limit) => Math.min(limit, following));
    if (!symbol) return undefined;
    this.seeds.push(symbol.seed);
    return { seed: symbol.seed, payload: Uint8Array.from(symbol.payload) };
  }

  async wait(index: number, following = 0): Promise<{ seed: number; payload: Uint8Array }> {
    for (;;) {
      const woken = new Promise<void>((resolve) => (this.#wake = resolve));
      const symbol = this.take(index, following);
      if (symbol) return symbol;
      await woken;
    }
  }

  /** Takes symbols of the generation until it is decoded. Returns how many it took. */
  async decode(index: number): Promise<number> {
    const symbolCount = Math.min(GENERATION_SIZE, geometry.symbolCount - index * GENERATION_SIZE);
    const decoder = codec.createDecoder(symbolCount, SYMBOL_BYTES);
    let taken = 0;
    while (decoder.rank < symbolCount) {
      const { seed, payload } = await this.wait(index, symbolCount - decoder.rank - 1);
      decoder.addSeeded(seed, payload);
      if (++taken > symbolCount + 20) throw new Error(`generation ${index} does not decode`);
    }
    const out = new Uint8Array(symbolCount * SYMBOL_BYTES);
    decoder.read(0, symbolCount, out);
    decoder.free();
    const start = index * GENERATION_SIZE * SYMBOL_BYTES;
    const wanted = body.subarray(start, start + out.length);
    expect(Buffer.compare(out.subarray(0, wanted.length), wanted)).toBe(0);
    return taken;
  }
}

describe.each([
  ["on the loop", () => ringsOf()],
  ["by the service", () => ringsOf({ coders: [pool(), pool()] })],
] as const)("symbols made %s", (name, make) => {
  test("20 viewers decode every generation, and hardly more is coded than one of them needs", async () => {
    const rings = make();
    const viewers = Array.from({ length: 20 }, (_, id) => new Viewer(rings, id + 1));
    await Promise.all(
      viewers.map(async (viewer) => {
        for (let index = 0; index < geometry.generationCount; index++) await viewer.decode(index);
      }),
    );
    for (const { seeds } of viewers) expect(new Set(seeds).size).toBe(seeds.length);
    const { inlineSymbols, serviceSymbols, sentSymbols } = rings.counts;
    expect(name === "on the loop" ? serviceSymbols : inlineSymbols).toBe(0);
    expect(sentSymbols).toBeGreaterThanOrEqual(20 * geometry.symbolCount);
    expect(inlineSymbols + serviceSymbols).toBeLessThan(3 * geometry.symbolCount);
    rings.close();
    expect(rings.bytes).toBe(0);
  });

  test("one download gets no symbol twice, not by two sessions at once nor after a reconnect", async () => {
    const rings = make();
    const others = [new Viewer(rings, 1), new Viewer(rings, 2)];
    const [first, second] = [new Viewer(rings, 9), new Viewer(rings, 9)];
    for (let i = 0; i < 15; i++) for (const viewer of [...others, first, second]) await viewer.wait(0);
    const third = new Viewer(rings, 9);
    for (let i = 0; i < 15; i++) await third.wait(0);
    const all = [...first.seeds, ...second.seeds, ...third.seeds];
    expect(new Set(all).size).toBe(45);
    expect(others[0]!.seeds).toEqual(others[1]!.seeds);
    rings.close();
  });

  test("bodies with another name, and other generations, share nothing", async () => {
    const rings = make();
    const [one, two] = [new Viewer(rings, 1), new Viewer(rings, 2, sourceOf("another"))];
    for (let index = 0; index < 3; index++) for (const viewer of [one, two]) await viewer.wait(index);
    expect(new Set([...one.seeds, ...two.seeds]).size).toBe(6);
    rings.close();
  });

  test("memory stays within its limit while more is in demand than fits, and everybody decodes", async () => {
    const rings = make();
    const bytesMax = 24_000;
    rings.setLimit(bytesMax);
    const viewers = Array.from({ length: 6 }, (_, id) => new Viewer(rings, id, sourceOf(`body ${id % 3}`)));
    let most = 0;
    await Promise.all(
      viewers.map(async (viewer) => {
        for (let index = 0; index < geometry.generationCount; index++) {
          await viewer.decode(index);
          most = Math.max(most, rings.bytes);
          await settled();
        }
      }),
    );
    // One generation and one batch may exceed the limit.
    expect(most).toBeLessThan(bytesMax + 12_000);
    expect(rings.counts.evictedGenerations).toBeGreaterThan(0);
    for (const { seeds } of viewers) expect(new Set(seeds).size).toBe(seeds.length);
    rings.close();
    await settled();
    expect(rings.bytes).toBe(0);
  });
});

/** A coder that does nothing until the test says so. */
function heldCoder() {
  const ends: ((error?: Error) => void)[] = [];
  const coder: Coder = {
    name: "held",
    slots: 100,
    piecesMax: 100,
    takes: () => true,
    run: (piece) =>
      new Promise((resolve, reject) => {
        ends.push((error) => {
          if (error) return reject(error);
          if (piece.kind === "encode") piece.encoder.encodeSeeds(piece.seeds, piece.out);
          resolve(new Uint8Array(0));
        });
      }),
    close: async () => {
      for (const end of ends.splice(0)) end(new CoderLostError("closed"));
    },
  };
  return { coder, ends };
}

test("a generation that leaves while it is coded frees its memory when that is done, and is made again", async () => {
  const { coder, ends } = heldCoder();
  const rings = ringsOf({ coders: [coder] });
  const viewer = new Viewer(rings, 1);
  expect(viewer.take(0)).toBeUndefined();
  rings.setLimit(0);
  expect(rings.bytes).toBe(0);
  rings.setLimit(1e6);
  expect(viewer.take(0)).toBeUndefined();
  expect(ends).toHaveLength(2);
  for (const end of ends.splice(0)) end();
  await settled();
  expect(viewer.take(0)).toBeDefined();
  rings.close();
});

test("two downloads of one session wait for the same generation, and neither misses its wake-up", async () => {
  const { coder, ends } = heldCoder();
  const rings = ringsOf({ coders: [coder] });
  let wakes = 0;
  const onReady = (): void => void wakes++;
  const [first, second] = [1, 2].map((id) => rings.supplyFor(id, geometry, sourceOf("body"), onReady));
  const take = (supply: SymbolSupply): boolean => supply.next(0, () => 0) !== undefined;
  expect([take(first!), take(second!)]).toEqual([false, false]);
  ends.shift()!();
  await settled();
  expect(wakes).toBe(1);
  while (take(second!));
  expect(take(first!)).toBe(true);
  ends.shift()!();
  await settled();
  expect(wakes).toBe(2);
  expect(take(second!)).toBe(true);
  rings.close();
  for (const end of ends) end();
  await settled();
});

test("when the queue is full, symbols are made on the loop", async () => {
  const { coder, ends } = heldCoder();
  const rings = ringsOf({ coders: [{ ...coder, slots: 0 }], tasksMax: 1 });
  const [first, second] = [new Viewer(rings, 1), new Viewer(rings, 2)];
  expect(first.take(0)).toBeUndefined();
  expect(second.take(1)).toBeUndefined();
  await settled();
  expect(second.take(1)).toBeDefined();
  expect(first.take(0)).toBeUndefined();
  expect(ends).toHaveLength(0);
  rings.close();
  await settled();
});

test("the ring forgets old symbols and old viewers, and still gives nobody a symbol twice", () => {
  const ring = new Ring(4, 1, 0xffff_fffe);
  const seen = new Map<number, Set<number>>();
  const rng = xorshift128(3);
  let [repeated, viewers] = [0, 0];
  for (let step = 0; step < 30_000; step++) {
    const viewer = rng() % 5000;
    const cursor = ring.cursorOf(viewer);
    if (ring.readyFor(cursor) === 0) ring.add(3, new Uint8Array(3), 0);
    const { seed } = ring.take(cursor);
    const had = seen.get(viewer) ?? new Set();
    if (had.has(seed)) repeated++;
    seen.set(viewer, had.add(seed));
    viewers = Math.max(viewers, ring.viewers);
  }
  expect([repeated, viewers]).toEqual([0, 4096]);
});

test("symbols with neighbouring seeds decode as those with random ones (1,000 generations of 16)", () => {
  let missing = 0;
  for (let run = 0; run < 1000; run++) {
    const decoder = codec.createDecoder(16, 1);
    const payload = new Uint8Array(1);
    for (let seed = 0; seed < 16; seed++) decoder.addSeeded((run * 7919 + seed) >>> 0, payload);
    missing += 16 - decoder.rank;
    decoder.free();
  }
  // Random vectors lack 4 degrees of freedom in 1,000 generations.
  expect(missing).toBeLessThan(25);
});

test("costs: the service gets a batch when that takes less of the loop than coding it there", () => {
  const costs = new Costs();
  expect(costs.prefersService(1e9)).toBe(false);
  costs.noteInline(1e6, 0.01);
  expect(costs.prefersService(1e9)).toBe(false);
  costs.handoverMs = 0.03;
  expect(costs.prefersService(2.9e6)).toBe(false);
  expect(costs.prefersService(3.1e6)).toBe(true);
  // One slow sample does not change much.
  costs.noteInline(1e6, 50);
  expect(costs.inlineMsPerMega).toBeLessThan(0.013);
});
