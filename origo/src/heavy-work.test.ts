import { HeavyWork, HeavyWorkFull } from "./heavy-work";

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function setup(waitingMax = 9) {
  const heavy = new HeavyWork({ runningMax: 1, waitingMax });
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const ask = (owner: string, name: string, isWanted = true): Promise<unknown> =>
    heavy.run(
      owner,
      () => isWanted,
      async () => {
        begun.push(name);
        await new Promise<void>((resolve) => ends.push(resolve));
        return name;
      },
    );
  const finish = async (): Promise<void> => {
    ends.shift()!();
    await settled();
  };
  return { begun, ask, finish };
}

test("heavy work: one runs at a time, and owners take turns", async () => {
  const { begun, ask, finish } = setup();
  const all = [ask("ada", "a1"), ask("ada", "a2"), ask("ada", "a3"), ask("bob", "b1")];
  for (let count = 1; count <= 4; count++) {
    expect(begun).toHaveLength(count);
    await finish();
  }
  expect(begun).toEqual(["a1", "a2", "b1", "a3"]);
  expect(await Promise.all(all)).toEqual(["a1", "a2", "a3", "b1"]);
});

test("heavy work: what nobody waits for any more does not run, and the next one does", async () => {
  const { begun, ask, finish } = setup();
  void ask("ada", "a1");
  const gone = ask("ada", "gone", false);
  void ask("ada", "a2");
  await finish();
  expect([await gone, begun]).toEqual([undefined, ["a1", "a2"]]);
  await finish();
});

test("heavy work: too much of one owner is refused, and another owner is not (2 wait)", async () => {
  const { ask } = setup(2);
  for (const name of ["runs", "waits", "waits too"]) void ask("ada", name);
  await expect(ask("ada", "refused")).rejects.toThrow(HeavyWorkFull);
  void ask("bob", "waits");
});
