import { inTurn } from "./in-turn";

test("in turn: calls run in order, and a failed call does not fail the others", async () => {
  const steps: string[] = [];
  let call = 0;
  const work = inTurn(async () => {
    const number = ++call;
    steps.push(`begins ${number}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
    steps.push(`ends ${number}`);
    if (number === 1) throw new Error("first");
  });
  const calls = [work(), work()];
  expect(await Promise.allSettled(calls)).toMatchObject([{ reason: new Error("first") }, { status: "fulfilled" }]);
  expect(steps).toEqual(["begins 1", "ends 1", "begins 2", "ends 2"]);
});
