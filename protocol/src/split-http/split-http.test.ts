import { formatContentRange, type ResponseHead, type Rejection } from "@tributary/contract";
import { ByteStore } from "./byte-store";
import { xorshift128 } from "../rng";
import { SPLIT_CONNECTIONS_MAX, SplitHttp, type SplitHttpOptions } from "../index";

interface Mood {
  bytesPerMs?: number;
  answerMs?: number;
  etag?: string;
  /** The length of the resource that this proxy reports. */
  total?: number;
  /** Refuses every request. */
  refuses?: boolean;
  /** Breaks every answer off after this many bytes. */
  breaksAfter?: number;
  /** Ends every answer after this many bytes, as if it were whole. */
  endsAfter?: number;
  /** Stays silent from this time on. */
  silentFromMs?: number;
  /** Answers another range than the one asked for. */
  shifts?: boolean;
}

interface Open {
  proxy: number;
  head: ResponseHead;
  body: Uint8Array;
  sent: number;
  readyMs: number;
  begun: boolean;
}

/** A world of one millisecond steps: proxies that answer at their rates, and a client that obeys the scheduler. */
class World {
  readonly split: SplitHttp;
  readonly asks: { proxy: number; range: { start: number; end: number } | undefined }[] = [];
  readonly failed: { proxyIndex: number; rejection: Rejection }[] = [];
  readonly open = new Map<number, Open>();
  readonly received: number[];
  head: { whole: { start: number; end: number } | undefined; head: ResponseHead } | undefined;
  end: { kind: "complete" } | { kind: "failed"; rejection: Rejection } | undefined;
  nowMs = 0;
  openMax = 0;
  readonly #pieces: Uint8Array[] = [];
  readonly #heads = new Map<number, ResponseHead>();

  constructor(
    readonly body: Uint8Array,
    readonly moods: Mood[],
    options: Partial<SplitHttpOptions> = {},
    readonly knowsRanges = true,
  ) {
    this.received = moods.map(() => 0);
    this.split = new SplitHttp({ proxyCount: moods.length, nowMs: 0, ...options });
  }

  get delivered(): Uint8Array {
    return Buffer.concat(this.#pieces);
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
      else if (event.kind === "head") this.head = { whole: event.whole, head: this.#heads.get(event.askId)! };
      else if (event.kind === "proxyFailed") this.failed.push(event);
      else this.end = event;
    }
    for (let command = this.split.pollCommand(); command; command = this.split.pollCommand()) {
      if (command.kind === "cancel") this.open.delete(command.askId);
      else this.#ask(command.askId, command.proxyIndex, command.range);
    }
  }

  #ask(askId: number, proxy: number, range: { start: number; end: number } | undefined): void {
    this.asks.push({ proxy, range });
    const { answerMs = 10, etag = '"one"', total = this.body.length, shifts } = this.moods[proxy]!;
    const open = { proxy, sent: 0, readyMs: this.nowMs + answerMs, begun: false };
    const validator: Record<string, string> = etag === "" ? {} : { etag };
    if (!range || !this.knowsRanges)
      this.open.set(askId, {
        ...open,
        body: this.body,
        head: { status: 200, totalBytes: this.body.length, headers: validator },
      });
    else if (range.start >= total)
      this.open.set(askId, { ...open, body: new Uint8Array(0), head: { status: 416, totalBytes: 0, headers: {} } });
    else {
      const start = range.start + (shifts ? 1 : 0);
      const end = Math.min(range.end, total - 1);
      const body = this.body.subarray(start, end + 1);
      const contentRange = formatContentRange({ start, end }, total);
      this.open.set(askId, {
        ...open,
        body,
        head: { status: 206, totalBytes: end - start + 1, headers: { ...validator, "content-range": contentRange } },
      });
    }
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
    } = this.moods[proxy]!;
    if (this.nowMs >= silentFromMs) return;
    const own = [...this.open].filter(([, one]) => one.proxy === proxy && this.nowMs >= one.readyMs);
    for (const [askId, one] of own) {
      if (!this.open.has(askId)) continue;
      if (refuses) {
        this.#fail(askId, "proxyFailed");
        continue;
      }
      if (!one.begun) {
        one.begun = true;
        this.#heads.set(askId, one.head);
        this.split.handleHead(askId, one.head, this.nowMs);
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

function expectWhole(world: World, expected: Uint8Array = world.body): void {
  expect(world.end).toEqual({ kind: "complete" });
  expect(Buffer.compare(world.delivered, expected)).toBe(0);
  expect(world.open.size).toBe(0);
  expect(world.split.pollTimeout()).toBeUndefined();
}

describe("split-http", () => {
  test.each([1, 100, 8192, 8193, 300_000, 1_000_000])(
    "SplitHttp: %i bytes from four proxies arrive once and in order",
    (count) => {
      const world = new World(BODY.subarray(0, count), [{}, {}, {}, {}]).run();
      expectWhole(world);
      expect(world.head).toMatchObject({ whole: { start: 0, end: count - 1 }, head: { status: 206 } });
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

  test("SplitHttp: only the range is delivered, and it ends where the resource ends", () => {
    const inner = new World(BODY, [{}, {}], { range: { start: 1000, end: 500_999 } }).run();
    expectWhole(inner, BODY.subarray(1000, 501_000));
    const beyond = new World(BODY.subarray(0, 20_000), [{}, {}], { range: { start: 1000, end: 500_999 } }).run();
    expectWhole(beyond, BODY.subarray(1000, 20_000));
    expect(beyond.head!.whole).toEqual({ start: 1000, end: 19_999 });
  });

  test("SplitHttp: an empty body has no range, so it is asked for whole", () => {
    const world = new World(new Uint8Array(0), [{}, {}]).run();
    expectWhole(world);
    expect(world.head).toMatchObject({ whole: undefined, head: { status: 200, totalBytes: 0 } });
  });

  test("SplitHttp: a range that begins beyond the end is the origin's answer", () => {
    const world = new World(BODY.subarray(0, 10), [{}, {}], { range: { start: 10, end: 19 } }).run();
    expect(world.end).toEqual({ kind: "complete" });
    expect(world.head).toMatchObject({ whole: undefined, head: { status: 416 } });
  });

  test("SplitHttp: an origin without ranges gives one whole answer, read from one proxy only", () => {
    const world = new World(BODY, [{}, {}, {}], {}, false).run();
    expectWhole(world);
    expect(world.received.filter((bytes) => bytes > 0)).toEqual([BODY.length]);
  });

  test("SplitHttp: when a whole answer breaks off, the next proxy repeats it and no byte is delivered twice", () => {
    const world = new World(BODY, [{ breaksAfter: 200_000 }, {}], {}, false).run();
    expectWhole(world);
    expect(world.failed.map(({ proxyIndex, rejection }) => [proxyIndex, rejection.kind])).toEqual([[0, "proxyLost"]]);
  });

  test.each([
    ["another version", { etag: '"two"' }],
    ["another length", { total: 900_000 }],
    ["another range than asked for", { shifts: true }],
  ])("SplitHttp: a proxy with %s is dropped", (_, mood) => {
    const world = new World(BODY, [{ etag: '"one"' }, { answerMs: 15, ...mood }, { etag: '"one"' }]).run();
    expectWhole(world);
    expect(world.failed.map(({ proxyIndex, rejection }) => [proxyIndex, rejection.kind])).toEqual([
      [1, "planMismatch"],
    ]);
    expect(world.received[1]).toBe(0);
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
    for (const { range } of world.asks) expect(range!.start).toBeLessThan(400_000);
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
          { shifts: true },
        ];
        return { ...links, ...faults[below(faults.length)]! };
      });
      moods.push({ bytesPerMs: 500, answerMs: 10 });
      const start = below(1000);
      const range = below(2) ? { range: { start, end: start + below(150_000) } } : {};
      const world = new World(BODY.subarray(0, 1 + below(200_000)), moods, range, below(4) > 0);
      world.run();
      const isFirstWrong =
        world.failed.some(({ rejection }) => rejection.kind === "planMismatch") && world.end?.kind === "failed";
      if (isFirstWrong || start >= world.body.length) return;
      expect(world.end).toEqual({ kind: "complete" });
      const expected = world.head!.whole
        ? world.body.subarray(world.head!.whole.start, world.head!.whole.end + 1)
        : world.body;
      expect(Buffer.compare(world.delivered, expected)).toBe(0);
    },
  );
});

test("ByteStore: bytes that come in any order and repeatedly are delivered in order and once (seed 3)", () => {
  const rng = xorshift128(3);
  const body = bytesOf(5000);
  const store = new ByteStore(100);
  const taken: Uint8Array[] = [];
  const given = new Uint8Array(5000);
  while (store.prefix < 5000) {
    const start = 100 + (rng() % 4900);
    const bytes = body.subarray(start, start + 1 + (rng() % 400));
    store.insert(start, bytes);
    given.fill(1, start, start + bytes.length);
    expect(store.missing(100, 5000)).toBe(given.subarray(100).filter((one) => one === 0).length);
    taken.push(...store.take());
  }
  expect(Buffer.compare(Buffer.concat(taken), body.subarray(100))).toBe(0);
});
