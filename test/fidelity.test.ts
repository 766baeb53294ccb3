/** Pages see the same with the extension as without it: the quick cases of test/fidelity, in one pair of browsers. */
import { CASES, OPEN } from "./fidelity/cases";
import { FidelityLab } from "./fidelity/run";

const QUICK = CASES.filter(({ name, long }) => !long && !OPEN.has(name));
let lab: FidelityLab;
beforeAll(async () => void (lab = await FidelityLab.open(QUICK.length)));
afterAll(() => lab.close());

test.each(QUICK.map((each) => [each.name, each] as const))("fidelity: %s", async (_, each) => {
  const { faults, seen, asked } = await lab.run(each);
  expect({ faults, ...(faults.length > 0 ? { seen, asked } : {}) }).toEqual({ faults: [] });
});
