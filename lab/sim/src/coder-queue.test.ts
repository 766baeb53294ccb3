import { capacityOf, simulateCoders, type CoderLoad } from "./coder-queue";

/** A fast coder and one that is half as fast, as the paper's GPU beside its CPU. Tasks of 128 rows. */
const LOAD: Omit<CoderLoad, "tasksPerMs" | "policy"> = {
  coders: [
    { slots: 1, rowsPerMs: 200 },
    { slots: 1, rowsPerMs: 100 },
  ],
  taskRows: 128,
  pieceMs: 0.5,
  tasks: 4000,
  seed: 1,
};

test("coder queue: coders that help themselves do as much as both alone", () => {
  const { allMs } = simulateCoders({ ...LOAD, policy: "self", tasksPerMs: Infinity });
  expect((LOAD.tasks * LOAD.taskRows) / allMs / 300).toBeCloseTo(1, 2);
});

test("coder queue: an even split ends with the slower coder, 1.5 times as late", () => {
  const time = (policy: CoderLoad["policy"]): number => simulateCoders({ ...LOAD, policy, tasksPerMs: Infinity }).allMs;
  expect(time("even") / time("self")).toBeCloseTo(1.5, 1);
});

test("coder queue: a task that is alone is divided between the coders", () => {
  const { responseMs } = simulateCoders({ ...LOAD, policy: "self", tasks: 1, tasksPerMs: Infinity });
  expect(responseMs[0]).toBeLessThan(LOAD.taskRows / 200);
});

test("coder queue: it carries nearly what its coders make, and a task waits for less than the limit", () => {
  const tasksPerMs = capacityOf({ ...LOAD, policy: "self" }, 100, 0.95);
  expect((tasksPerMs * LOAD.taskRows) / 300).toBeGreaterThan(0.95);
  expect((tasksPerMs * LOAD.taskRows) / 300).toBeLessThan(1.1);
});
