/** The model of the coders' queue beside the product's queue, which runs in simulated time with coders of set rates. */
import { CoderService, type Coder } from "@tributary/native-codec";
import type { Encoder } from "@tributary/protocol";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { capacityOf, type CoderLoad, type ModelCoder } from "./coder-queue";
import { Random } from "./random";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Events at simulated times. */
class Clock {
  nowMs = 0;
  readonly #due: { atMs: number; act: () => void }[] = [];

  at(atMs: number, act: () => void): void {
    const place = this.#due.findLastIndex((other) => other.atMs <= atMs);
    this.#due.splice(place + 1, 0, { atMs, act });
  }

  async run(): Promise<void> {
    for (let next = this.#due.shift(); next; next = this.#due.shift()) {
      this.nowMs = next.atMs;
      next.act();
      // What waits for the event goes on before the next one.
      await turn();
    }
  }
}

/** Takes one piece at a time, and as long for it as its rate says. It writes nothing. */
const coderOf = ({ slots, rowsPerMs }: ModelCoder, name: string, clock: Clock): Coder => {
  const freeMs = new Array<number>(slots).fill(0);
  return {
    name,
    slots,
    piecesMax: 64,
    takes: () => true,
    run: (piece) =>
      new Promise((resolve) => {
        const slot = freeMs.indexOf(Math.min(...freeMs));
        const rows = piece.kind === "encode" ? piece.seeds.length : 1;
        freeMs[slot] = Math.max(clock.nowMs, freeMs[slot]!) + rows / rowsPerMs;
        clock.at(freeMs[slot]!, () => resolve(new Uint8Array(0)));
      }),
    close: () => Promise.resolve(),
  };
};

/** As `simulateCoders`, with the product's queue. */
async function serve(load: Omit<CoderLoad, "policy">): Promise<{ responseMs: number[]; allMs: number }> {
  const clock = new Clock();
  const service = new CoderService({
    codec: loadWasmCodec(),
    coders: load.coders.map((coder, index) => coderOf(coder, `coder ${index}`, clock)),
    tasksMax: () => Infinity,
    bytesMax: () => Infinity,
    nowMs: () => clock.nowMs,
  });
  const encoder = { symbolCount: 128, symbolBytes: 1 } as Encoder;
  const [seeds, out] = [new Uint32Array(load.taskRows), new Uint8Array(load.taskRows)];
  const responseMs: number[] = [];
  const random = new Random(load.seed);
  let arrivalMs = 0;
  for (let index = 0; index < load.tasks; index++) {
    const dueMs = (arrivalMs += load.tasksPerMs === Infinity ? 0 : -Math.log(1 - random.unit()) / load.tasksPerMs);
    clock.at(
      dueMs,
      () => void service.encode({ encoder, seeds, out }).then(() => responseMs.push(clock.nowMs - dueMs)),
    );
  }
  await clock.run();
  await service.close();
  return { responseMs, allMs: clock.nowMs };
}

const LIMIT_MS = 100;
const SHARE = 0.95;

test.each([
  ["two equal coders", [1, 1]],
  ["a coder and one that is half as fast", [1, 0.5]],
  ["a coder and one that is four times as fast", [1, 4]],
])("coder queue: %s carry what the model says, within 10 % (seed 1)", async (_, speeds) => {
  const coders = speeds.map((speed) => ({ slots: 1, rowsPerMs: 20 * speed }));
  const load = { coders, policy: "self", taskRows: 128, pieceMs: 2, tasks: 1000, seed: 1 } as const;
  const modelPerMs = capacityOf(load, LIMIT_MS, SHARE);
  const isCarried = async (tasksPerMs: number): Promise<boolean> => {
    const { responseMs } = await serve({ ...load, tasksPerMs });
    expect(responseMs).toHaveLength(load.tasks);
    return responseMs.filter((ms) => ms <= LIMIT_MS).length >= SHARE * load.tasks;
  };
  expect([await isCarried(0.9 * modelPerMs), await isCarried(1.1 * modelPerMs)]).toEqual([true, false]);
});

test("coder queue: two coders do 97 % of what both do alone, and 1.3 times as much as with an even split", async () => {
  const load = { taskRows: 128, pieceMs: 2, tasks: 300, tasksPerMs: Infinity, seed: 1 };
  const [fast, slow] = [
    { slots: 1, rowsPerMs: 20 },
    { slots: 1, rowsPerMs: 10 },
  ];
  const msOf = async (coders: ModelCoder[], tasks: number): Promise<number> =>
    (await serve({ ...load, coders, tasks })).allMs;
  const [both, aloneFast, aloneSlow] = [
    await msOf([fast, slow], load.tasks),
    await msOf([fast], load.tasks),
    await msOf([slow], load.tasks),
  ];
  expect(1 / both / (1 / aloneFast + 1 / aloneSlow)).toBeGreaterThan(0.97);
  const even = Math.max(await msOf([fast], load.tasks / 2), await msOf([slow], load.tasks / 2));
  expect(even / both).toBeGreaterThan(1.3);
});
