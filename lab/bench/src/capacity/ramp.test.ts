import { findCapacity, type Hold } from "./ramp";

const RAMP = { step: 100, exact: 25, most: 500 };

/** A server that carries `limit` viewers. `bad`: the numbers of the holds that something disturbs. */
function serverOf(limit: number, rest: Partial<Hold> = {}, bad: readonly number[] = []) {
  const held: number[] = [];
  const hold = (viewers: number): Promise<Hold> => {
    const isCarried = viewers <= limit && !bad.includes(held.length);
    held.push(viewers);
    return Promise.resolve({ viewers, isCarried, isGeneratorBound: false, ...rest });
  };
  return { held, hold };
}

test.each([
  [260, 250],
  [275, 275],
  [24, 0],
  [25, 25],
])("capacity: a server that carries %d is found to carry %d", async (limit, viewers) => {
  expect(await findCapacity(RAMP, serverOf(limit).hold)).toEqual({ viewers, isAtLeast: false });
});

test("capacity: one disturbed hold is measured again", async () => {
  const { hold, held } = serverOf(200, {}, [0]);
  expect(await findCapacity(RAMP, hold)).toEqual({ viewers: 200, isAtLeast: false });
  expect(held.slice(0, 3)).toEqual([100, 100, 200]);
});

test("capacity: a server that carries all is said to carry at least as many as were tried", async () => {
  expect(await findCapacity(RAMP, serverOf(Infinity).hold)).toEqual({ viewers: 500, isAtLeast: true });
});

test("capacity: where the generator had no time left, the server carries at least the number", async () => {
  const { hold } = serverOf(200, { isGeneratorBound: true });
  expect(await findCapacity(RAMP, hold)).toEqual({ viewers: 200, isAtLeast: true });
});
