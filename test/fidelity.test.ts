/**
 * Pages see the same with the extension as without it: the quick cases of test/fidelity. Two cases run at a time, each
 * in a pair of browsers and with a fleet of its own, because a case mostly waits.
 */
import { CASES, OPEN } from "./fidelity/cases";
import { FidelityLab } from "./fidelity/run";

/** `maxConcurrency` in jest.config.js. */
const LABS = 2;
const QUICK = CASES.filter(({ name, long }) => !long && !OPEN.has(name));
let labs: FidelityLab[] = [];
const free: FidelityLab[] = [];
beforeAll(async () => {
  labs = await Promise.all(Array.from({ length: LABS }, () => FidelityLab.open(QUICK.length)));
  free.push(...labs);
});
afterAll(() => Promise.all(labs.map((lab) => lab.close())));

test.concurrent.each(QUICK.map((each) => [each.name, each] as const))("fidelity: %s", async (_, each) => {
  const lab = free.pop()!;
  const { faults, seen, asked } = await lab.run(each).finally(() => free.push(lab));
  expect({ faults, ...(faults.length > 0 ? { seen, asked } : {}) }).toEqual({ faults: [] });
});
