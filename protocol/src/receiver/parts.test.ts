import { beginningsOf } from "../planner/known";
import type { RequestFrame } from "../types";
import { partsOf } from "./parts";

const sharing = ["d", "b", "a", "c"];
const request = { mode: "coded", symbolBytes: 1088, generationSize: 8 } as RequestFrame;

/** `rates`: of the proxies in bytes per second, as far as they are known. */
function partsWith(
  rates: (number | undefined)[],
  { expectedBytes = undefined as number | undefined, range = false } = {},
) {
  const known = rates.map((bytesPerSec) => (bytesPerSec === undefined ? undefined : { rttMs: 20, bytesPerSec }));
  const beginnings = beginningsOf(known, { windowPackets: 256, generationSize: 8 }, 1104);
  const reading = { sharing, ...(expectedBytes === undefined ? {} : { expectedBytes }) };
  return partsOf(reading, range ? { ...request, range: { start: 0, end: 9 } } : request, beginnings, known)!;
}

test("parts: readers are in the order of their ids, whatever the order of the proxies", () => {
  const { readers, places } = partsWith([]);
  expect([readers.map(({ id }) => id), places]).toEqual([
    ["a", "b", "c", "d"],
    [3, 1, 0, 2],
  ]);
});

test("parts: clients that measured slightly different rates cut a chunk alike", () => {
  const weights = (rates: number[]) => partsWith(rates).readers.map(({ weight }) => weight);
  expect(weights([1e6, 0.9e6, 0.95e6, 1.05e6])).toEqual(weights([1e6, 1e6, 1e6, 1e6]));
  const [a, , , d] = weights([1e6, 1e6, 0.5e6, 1e6]);
  expect(a! / d!).toBeCloseTo(0.5, 2);
});

test.each([
  ["no rate is known", [], {}, 2],
  ["proxies send 1 MB/s", [1e6, 1e6, 1e6, 1e6], {}, 2],
  ["proxies send 10 MB/s", [1e7, 1e7, 1e7, 1e7], {}, 16],
  ["proxies send 10 GB/s", [1e10, 1e10, 1e10, 1e10], {}, 64],
  ["proxies send 1 KB/s", [1e3, 1e3, 1e3, 1e3], {}, 1],
  ["the last body of the series had 30 KB", [], { expectedBytes: 30_000 }, 1],
  ["the last body of the series was empty", [], { expectedBytes: 0 }, 1],
  ["the last body of the series had 3 MB", [], { expectedBytes: 3_000_000 }, 2],
  ["the request names a range", [1e7, 1e7, 1e7, 1e7], { range: true }, 0],
])("parts: if %s, a proxy reads first what that makes likely", (_what, rates, given, count) => {
  expect(
    partsWith(
      Array.from({ length: 4 }, (_, at) => rates[at]),
      given,
    ).firstGenerations,
  ).toBe(count);
});
