/** Tests how the planner notices that fewer packets come: docs/spec/protocol.md §8.7. */
import { Flow } from "./flow";

/** Asks `hasFallen` every 5 ms. Returns true if any answer was true. */
function run(flow: Flow, fromMs: number, toMs: number, packetsPerMs: number): boolean {
  let fallen = false;
  for (let ms = fromMs; ms < toMs; ms += 5) {
    flow.packets += 5 * packetsPerMs;
    fallen ||= flow.hasFallen(ms);
  }
  return fallen;
}

test("flow: the flow has fallen when 100 ms bring less than four fifths of the highest rate", () => {
  const flow = new Flow();
  expect(run(flow, 0, 300, 2)).toBe(false);
  expect(run(flow, 300, 420, 1.7)).toBe(false);
  expect(run(flow, 420, 540, 1.4)).toBe(true);
});

test("flow: the flow has not fallen in the first 100 ms", () => {
  const flow = new Flow();
  run(flow, 0, 50, 4);
  expect(run(flow, 50, 95, 0)).toBe(false);
});
