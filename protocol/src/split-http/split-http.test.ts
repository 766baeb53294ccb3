import { createHash } from "node:crypto";
import type { Rejection } from "@tributary/contract";
import { ByteStore } from "./byte-store";
import { xorshift128 } from "../rng";
import { LIMITS, SPLIT_CONNECTIONS_MAX, SplitHttp, type ByteCheck, type SplitHttpOptions } from "../index";

interface Mood {
  bytesPerMs?: number;
  answerMs?: number;
  /** Refuses every request. */
  refuses?: boolean;
  /** Breaks every answer off after this many bytes. */
  breaksAfter?: number;
  /** Ends every answer after this many bytes, as if it were whole. */
  endsAfter?: number;
  /** Stays silent from this time on, until the other one. */
  silentFromMs?: number;
  silentUntilMs?: number;
  /** Changes every n-th byte of the body. */
  lies?: number;
}

interface Open {
  proxy: number;
  body: Uint8Array;
  sent: number;
  readyMs: number;
  begun: boolean;
}

/** A world of one millisecond steps: proxies that answer at their rates, and a client that obeys the scheduler. */
class World {
  readonly split: SplitHttp;
  readonly asks: { proxy: number; part: { start: number; end: number } }[] = [];
  readonly failed: { proxyIndex: number; rejection: Rejection }[] = [];
  readonly open = new Map<number, Open>();
  readonly received: number[];
  end: { kind: "complete" } | { kind: "failed"; rejection: Rejection } | undefined;
  nowMs = 0;
  openMax = 0;
  readonly #pieces: Uint8Array[] = [];

  constructor(
    readonly body: Uint8Array,
    readonly moods: Mood[],
    options: Partial<SplitHttpOptions> = {},
  ) {
    this.received = moods.map(() => 0);
    this.split = new SplitHttp({ proxyCount: moods.length, nowMs: 0, ...options });
  }

  get delivered(): Uint8Array {
    return Buffer.concat(this.#pieces);
  }

  get faults(): [proxyIndex: number, kind: string][] {
    return this.failed.map(({ proxyIndex, rejection }) => [proxyIndex, rejection.kind]);
  }

  run(untilMs = 60_000): this {
    this.#drain();
    while (!this.end && this.nowMs < untilMs) this.step();
    return this;
  }

  step(): void {
    this.nowMs++;
    this.moods.forEach((_, proxy) => this.#send(proxy));
    this.split.handleTimeout(this.nowMs);
    this.#drain();
  }

  #drain(): void {
    for (let event = this.split.pollEvent(); event; event = this.split.pollEvent()) {
      expect(this.end).toBeUndefined();
      if (event.kind === "bytes") this.#pieces.push(event.bytes);
      else if (event.kind === "proxyFailed") this.failed.push(event);
      else this.end = event;
    }
    for (let command = this.split.pollCommand(); command; command = this.split.pollCommand()) {
      if (command.kind === "cancel") this.open.delete(command.askId);
      else this.#ask(command.askId, command.proxyIndex, command.part);
    }
  }

  #ask(askId: number, proxy: number, part: { start: number; end: number }): void {
    this.asks.push({ proxy, part });
    const { answerMs = 10, lies } = this.moods[proxy]!;
    let body = this.body.subarray(part.start, part.end + 1);
    if (lies) body = body.map((byte, index) => ((part.start + index) % lies === 0 ? byte ^ 1 : byte));
    this.open.set(askId, { proxy, body, sent: 0, readyMs: this.nowMs + answerMs, begun: false });
    this.openMax = Math.max(this.openMax, [...this.open.values()].filter((one) => one.proxy === proxy).length);
  }

  /** A proxy's answers share its rate. */
  #send(proxy: number): void {
    const {
      bytesPerMs = 1000,
      refuses,
      breaksAfter = Infinity,
      endsAfter = Infinity,
      silentFromMs = Infinity,
      silentUntilMs = Infinity,
    } = this.moods[proxy]!;
    if (this.nowMs >= silentFromMs && this.nowMs < silentUntilMs) return;
    const own = [...this.open].filter(([, one]) => one.proxy === proxy && this.nowMs >= one.readyMs);
    for (const [askId, one] of own) {
      if (!this.open.has(askId)) continue;
      if (refuses) {
        this.#fail(askId, "proxyFailed");
        continue;
      }
      if (!one.begun) {
        one.begun = true;
        this.split.handleTotal(this.body.length, this.nowMs);
        this.split.handleHead(askId, this.nowMs);
        this.#drain();
        if (!this.open.has(askId)) continue;
      }
      const until = Math.min(one.body.length, breaksAfter, endsAfter, one.sent + Math.ceil(bytesPerMs / own.length));
      const bytes = one.body.subarray(one.sent, until);
      this.received[proxy]! += bytes.length;
      one.sent = until;
      this.split.handleBytes(askId, bytes, this.nowMs);
      this.#drain();
      if (!this.open.has(askId)) continue;
      if (until === breaksAfter && until < one.body.length) this.#fail(askId, "proxyLost");
      else if (until === one.body.length || until === endsAfter) {
        this.open.delete(askId);
        this.split.handleEnd(askId, this.nowMs);
        this.#drain();
      }
    }
  }

  #fail(askId: number, kind: Rejection["kind"]): void {
    this.open.delete(askId);
    this.split.handleFailure(askId, { kind, message: kind }, this.nowMs);
    this.#drain();
  }
}

function bytesOf(count: number, seed = 1): Uint8Array {
  const rng = xorshift128(seed);
  return Uint8Array.from({ length: count }, () => rng() & 255);
}

const BODY = bytesOf(1_000_000);

/** Knows the digests of `body`, up to the block `known()`. */
function checkOf(body: Uint8Array, known: () => number = () => Infinity): ByteCheck {
  const digest = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
  const blockAt = (index: number) => body.subarray(index * LIMITS.httpBlockBytes, (index + 1) * LIMITS.httpBlockBytes);
  return { isKnown: (index) => index < known(), isTrue: (index, bytes) => digest(bytes) === digest(blockAt(index)) };
}

function expectWhole(world: World, expected: Uint8Array = world.body): void {
  expect(world.end).toEqual({ kind: "complete" });
  expect(Buffer.compare(world.delivered, expected)).toBe(0);
  expect(world.open.size).toBe(0);
  expect(world.split.pollTimeout()).toBeUndefined();
}

describe("split-http", () => {
  test.each([0, 1, 100, 8192, 8193, 300_000, 1_000_000])(
    "SplitHttp: %i bytes from four proxies arrive once and in order",
    (count) => {
      const world = new World(BODY.subarray(0, count), [{}, {}, {}, {}]).run();
      expectWhole(world);
      expect(world.openMax).toBeLessThanOrEqual(SPLIT_CONNECTIONS_MAX);
    },
  );

  test("SplitHttp: proxies share by their rates, and steady links bring no byte twice", () => {
    const world = new World(BODY, [{ bytesPerMs: 3000 }, { bytesPerMs: 1000 }]).run();
    expectWhole(world);
    expect(world.received[0]! / world.received[1]!).toBeGreaterThan(2.2);
    expect(world.received[0]! + world.received[1]!).toBeLessThan(1.02 * BODY.length);
    expect(world.nowMs).toBeLessThan(1.12 * (10 + BODY.length / 4000));
  });

  test("SplitHttp: a dead proxy is asked for nothing after its first answers", () => {
    const world = new World(BODY, [{ refuses: true }, {}, {}]).run();
    expectWhole(world);
    expect(world.failed).toHaveLength(1);
    expect(world.asks.filter(({ proxy }) => proxy === 0)).toHaveLength(5);
  });

  test.each([
    ["breaks every answer off", { breaksAfter: 5000 }, "proxyLost"],
    ["ends every answer early", { endsAfter: 5000 }, "bodyShort"],
  ])("SplitHttp: a proxy that %s costs its share only", (_, mood, kind) => {
    const world = new World(BODY, [mood, {}, {}]).run();
    expectWhole(world);
    expect(world.failed.map(({ rejection }) => rejection.kind)).toEqual([kind]);
  });

  test("SplitHttp: other proxies take over from a proxy that falls silent", () => {
    const world = new World(BODY, [{ silentFromMs: 60 }, {}, {}]).run();
    expectWhole(world);
    expect(world.nowMs).toBeLessThan(2 * (10 + BODY.length / 2000));
  });

  test("SplitHttp: a mute proxy costs only its first pieces", () => {
    const world = new World(BODY, [{ silentFromMs: 0 }, {}, {}]).run();
    expectWhole(world);
    expect(world.nowMs).toBeLessThan(1000);
  });

  test("SplitHttp: a proxy that is a hundred times slower does not delay the end", () => {
    const without = new World(BODY, [{}, {}, {}]).run();
    const world = new World(BODY, [{}, {}, {}, { bytesPerMs: 10 }]).run();
    expectWhole(world);
    expect(world.nowMs).toBeLessThan(1.25 * without.nowMs);
  });

  test("SplitHttp: it fails when no proxy is left, and says why", () => {
    const world = new World(BODY, [{ refuses: true }, { breaksAfter: 4000 }]).run();
    expect(world.end).toEqual({ kind: "failed", rejection: { kind: "proxyLost", message: "proxyLost" } });
    expect(world.open.size).toBe(0);
  });

  test("SplitHttp: without room it asks for nothing new, and blames no proxy for the silence", () => {
    const world = new World(BODY, [{}, {}]);
    world.run(60);
    world.split.handleRoom(false, world.nowMs);
    const asked = world.asks.length;
    for (let i = 0; i < 3000; i++) world.step();
    expect(world.asks).toHaveLength(asked);
    world.split.handleRoom(true, world.nowMs);
    expectWhole(world.run());
    expect(world.failed).toEqual([]);
  });

  test("SplitHttp: no piece begins further ahead of the first missing byte than allowed", () => {
    const world = new World(BODY, [{ silentFromMs: 30 }, {}], { aheadBytesMax: 200_000 });
    world.run(45);
    for (const { part } of world.asks) expect(part.start).toBeLessThan(400_000);
    expectWhole(world.run());
  });

  test("SplitHttp: a stop cancels every answer under way, and no event follows", () => {
    const world = new World(BODY, [{}, {}]);
    world.run(60);
    expect(world.open.size).toBeGreaterThan(0);
    world.split.stop();
    world.run(100);
    expect(world.open.size).toBe(0);
    expect(world.end).toBeUndefined();
  });

  test.each(Array.from({ length: 100 }, (_, i) => i + 1))(
    "SplitHttp: with one sound proxy among broken ones every byte arrives (seed %i)",
    (seed) => {
      const rng = xorshift128(seed);
      const below = (limit: number): number => rng() % limit;
      const moods = Array.from({ length: 1 + below(5) }, (): Mood => {
        const links = { bytesPerMs: 20 + below(2000), answerMs: 1 + below(80) };
        const faults: Mood[] = [
          {},
          { refuses: true },
          { breaksAfter: below(30_000) },
          { endsAfter: below(30_000) },
          { silentFromMs: below(300) },
        ];
        return { ...links, ...faults[below(faults.length)]! };
      });
      moods.push({ bytesPerMs: 500, answerMs: 10 });
      const body = BODY.subarray(0, 1 + below(200_000));
      const world = new World(body, moods, below(2) ? { check: checkOf(body) } : {}).run();
      expectWhole(world);
    },
  );
});

describe("split-http with digests", () => {
  const check = checkOf(BODY);

  test("SplitHttp: nothing is handed on before its digest is known", () => {
    let known = 0;
    const world = new World(BODY, [{}, {}], { check: checkOf(BODY, () => known) });
    world.run(2000);
    expect(world.delivered).toHaveLength(0);
    known = 2;
    world.split.handleKnown(world.nowMs);
    world.run(2100);
    expect(world.delivered).toHaveLength(2 * LIMITS.httpBlockBytes);
    known = Infinity;
    world.split.handleKnown(world.nowMs);
    expectWhole(world.run());
  });

  test.each([1, 50_000, 700_001])("SplitHttp: a liar is found and costs its share only (each byte of %i)", (lies) => {
    for (const liar of [0, 1, 2]) {
      const world = new World(
        BODY,
        [{}, {}, {}].map((mood, index) => (index === liar ? { lies } : mood)),
        { check },
      );
      expectWhole(world.run());
      for (const [proxyIndex, kind] of world.faults) expect([proxyIndex, kind]).toEqual([liar, "bodyDiffers"]);
      if (lies === 1) expect(world.faults).toHaveLength(1);
    }
  });

  test("SplitHttp: three liars of four are found, and the honest one brings the body", () => {
    const world = new World(BODY, [{ lies: 1 }, { lies: 3 }, {}, { lies: 100, bytesPerMs: 5000 }], { check }).run();
    expectWhole(world);
    expect(world.failed.map(({ proxyIndex }) => proxyIndex).sort()).toEqual([0, 1, 3]);
  });

  test("SplitHttp: it fails when all proxies lie, and hands on nothing false", () => {
    const world = new World(BODY, [{ lies: 1 }, { lies: 2 }], { check }).run();
    expect(world.end).toMatchObject({ kind: "failed", rejection: { kind: "bodyDiffers" } });
    expect(world.delivered).toHaveLength(0);
  });

  test("SplitHttp: what a failed proxy brought counts if it is true", () => {
    const world = new World(BODY, [{}, {}], { check });
    world.run(60);
    world.split.handleProxyFailed(0, { kind: "proxyLost", message: "" }, world.nowMs);
    expectWhole(world.run());
    expect(world.received[0]! + world.received[1]!).toBeLessThan(1.2 * BODY.length);
  });

  test.each(Array.from({ length: 60 }, (_, i) => i + 1))(
    "SplitHttp: while the only honest proxy and others are silent now and then, every byte arrives (seed %i)",
    (seed) => {
      const rng = xorshift128(seed);
      const below = (limit: number): number => rng() % limit;
      const pause = (): Mood => {
        const silentFromMs = below(150);
        return { silentFromMs, silentUntilMs: silentFromMs + below(400) };
      };
      const moods = Array.from({ length: 3 }, (): Mood => {
        const [lies, faults] = [[1, 100, 10_000][below(3)]!, [{}, pause(), { silentFromMs: below(150) }]];
        return { bytesPerMs: 20 + below(2000), answerMs: 1 + below(80), lies, ...faults[below(3)]! };
      });
      const honest = below(4);
      moods.splice(honest, 0, { bytesPerMs: 500, answerMs: 10, ...pause() });
      const body = BODY.subarray(0, 1 + below(200_000));
      const world = new World(body, moods, { check: checkOf(body) }).run(20_000);
      expectWhole(world);
      expect(world.failed.map(({ proxyIndex }) => proxyIndex)).not.toContain(honest);
    },
  );

  test.each(Array.from({ length: 60 }, (_, i) => i + 1))(
    "SplitHttp: with one honest proxy among liars and broken ones every byte arrives (seed %i)",
    (seed) => {
      const rng = xorshift128(seed);
      const below = (limit: number): number => rng() % limit;
      const moods = Array.from({ length: 1 + below(5) }, (): Mood => {
        const faults: Mood[] = [
          { lies: 1 + below(40_000) },
          { lies: 1 },
          { breaksAfter: below(30_000) },
          { refuses: true },
        ];
        return { bytesPerMs: 20 + below(2000), answerMs: 1 + below(80), ...faults[below(faults.length)]! };
      });
      moods.splice(below(moods.length + 1), 0, { bytesPerMs: 500, answerMs: 10 });
      const body = BODY.subarray(0, 1 + below(200_000));
      const world = new World(body, moods, { check: checkOf(body) }).run();
      expectWhole(world);
      for (const { proxyIndex } of world.failed)
        expect(moods[proxyIndex]).not.toEqual({ bytesPerMs: 500, answerMs: 10 });
    },
  );
});

test("ByteStore: bytes that come in any order, repeatedly and falsely are delivered once and in order (seed 3)", () => {
  const rng = xorshift128(3);
  const body = bytesOf(5000);
  const store = new ByteStore();
  const taken: Uint8Array[] = [];
  for (let i = 0; store.prefix < 5000; i++) {
    const start = rng() % 5000;
    const bytes = body.subarray(start, start + 1 + (rng() % 400));
    const isFalse = i % 3 === 0;
    store.insert(start, isFalse ? bytes.map((byte) => byte ^ 1) : bytes, isFalse ? 1 : 0);
    if (isFalse) store.forget(({ source }) => source === 1);
    expect(store.missing(0, 5000)).toBeLessThanOrEqual(5000 - store.prefix);
    const end = Math.min(store.prefix, rng() % 5000);
    taken.push(...store.take(end).map((part) => part.bytes));
  }
  taken.push(...store.take(5000).map((part) => part.bytes));
  expect(Buffer.compare(Buffer.concat(taken), body)).toBe(0);
});
