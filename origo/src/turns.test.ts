import { Turns } from "./turns";

/** Work that ends when the test says so. */
function job(turns: Turns, log: string[], key: string, goesFirst = false) {
  let finish = (): void => undefined;
  const done = turns.run(key, goesFirst, async () => {
    log.push(key);
    await new Promise<void>((resolve) => (finish = resolve));
    return { key };
  });
  return { done, finish: () => finish() };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("turns: two run, two wait, work that goes first is next, and the fifth is refused", async () => {
  const [turns, log] = [new Turns({ runningMax: 2, waitingMax: 2 }), [] as string[]];
  const [a, b] = [job(turns, log, "a"), job(turns, log, "b")];
  const waiting = ["c", "d"].map((key) => job(turns, log, key));
  expect(await job(turns, log, "e").done).toBeUndefined();
  const first = job(turns, log, "first", true);
  await settled();
  expect(log).toEqual(["a", "b"]);
  a.finish();
  expect(await a.done).toEqual({ key: "a" });
  await settled();
  for (const each of [first, b, ...waiting]) {
    each.finish();
    await each.done;
    await settled();
  }
  expect(log).toEqual(["a", "b", "first", "c", "d"]);
});

test("turns: one key has one place, and gets it again after its work has failed", async () => {
  const turns = new Turns({ runningMax: 2, waitingMax: 2 });
  const failing = turns.run("a", false, () => Promise.reject(new Error("no")));
  expect(await turns.run("a", true, async () => ({}))).toBeUndefined();
  await expect(failing).rejects.toThrow("no");
  expect(await turns.run("a", false, async () => ({ n: 1 }))).toEqual({ n: 1 });
});
