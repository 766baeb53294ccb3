/** Peers in simulated time: all get the right bytes, and what the schemes promise holds. */
import { loadCodec } from "@tributary/native-codec";
import { mixedTopology } from "@tributary/protocol";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { peers } from "./main";
import { coderTimes } from "./coder-figures";
import { mean, distribute, type DistributionOptions, type DistributionOutcome } from "./distribution";

const codec = loadCodec(loadWasmCodec);

function outcomeOf(changed: Partial<DistributionOptions> & { peers?: number } = {}): DistributionOutcome {
  const { peers: count = 40, seed = 1, ...rest } = changed;
  return distribute({
    nodes: mixedTopology({ peers: count, upstream: 10, seed }),
    scheme: "coding",
    codec,
    blockCount: 40,
    blockBytes: 32_768,
    density: 1,
    aggressiveness: 0.01,
    check: "ahead",
    coderBytesPerSec: 50e9,
    seed,
    stepMs: 50,
    ...rest,
  });
}

test.each([
  ["naive broadcast", { scheme: "naive" }],
  ["rarest first", { scheme: "rarest" }],
  ["coding, the default", {}],
  ["coding, one block", { blockCount: 1 }],
  ["coding, sparse", { density: 0.05 }],
  ["coding, check on arrival", { check: "arrival", aggressiveness: 0.5 }],
  ["coding, no check", { check: "off", aggressiveness: 1, density: 0.1 }],
  ["one peer beside the first", { peers: 1 }],
] as const)("%s: every peer gets the right bytes", (_what, changed) => {
  const { areBytesRight, receivedShare } = outcomeOf(changed);
  expect(areBytesRight).toBe(true);
  expect(receivedShare).toBeGreaterThanOrEqual(1);
});

test("the same seed gives the same outcome, and another seed another one", () => {
  expect(outcomeOf({ seed: 7 })).toEqual(outcomeOf({ seed: 7 }));
  expect(outcomeOf({ seed: 8 }).completeMs).not.toEqual(outcomeOf({ seed: 7 }).completeMs);
});

test("coding with the check ahead is faster than rarest first and receives less that it does not need", () => {
  const seeds = [1, 2];
  const [coded, rarest] = (["coding", "rarest"] as const).map((scheme) => {
    const outcomes = seeds.map((seed) => outcomeOf({ scheme, seed }));
    return {
      ms: mean(outcomes.map(({ completeMs }) => mean(completeMs))),
      received: mean(outcomes.map(({ receivedShare }) => receivedShare)),
    };
  });
  expect(coded!.ms / rarest!.ms).toBeLessThan(0.95);
  expect(coded!.received).toBeLessThan(1.1);
});

test("below a density of 6 % many peers cannot decode as many blocks as there are (Wang, Li 2006, Fig. 4a)", () => {
  const [dense, sparse] = [0.2, 0.02].map((density) =>
    outcomeOf({ check: "off", aggressiveness: 1, density, blockCount: 100 }),
  );
  expect(dense!.decodedAtOnce).toBeGreaterThan(0.95);
  expect(sparse!.decodedAtOnce).toBeLessThan(0.3);
});

test("a slow coder takes longer, also to decode", () => {
  const fast = mean(outcomeOf().completeMs);
  const slow = mean(outcomeOf({ coderBytesPerSec: 10e6 }).completeMs);
  expect(slow - fast).toBeGreaterThan((40 * 40 * 32_768 * 1000) / 10e6);
});

test.each([
  [["--peers", "0"], "--peers: got 0, wanted an integer 1 to 20000"],
  [["--blocks", "257"], "--blocks: got 257, wanted an integer 1 to 256"],
  [["--density", "1.5"], "--density: got 1.5, wanted a number above 0 and at most 1"],
  [["--aggressiveness", "x"], "--aggressiveness: got x, wanted a number above 0 and at most 1"],
  [["--check", "on"], "--check: got on, wanted off, arrival, ahead"],
  [["--schemes", "coding,best"], "--schemes: got coding,best, wanted some of coding,rarest,naive"],
  [["--coder=-1"], "--coder: got -1, wanted 2006, today, or a number of MB/s above 0"],
  [["--figure", "6"], "--figure: got 6, wanted 2, 3, 4, 5"],
  [["--what"], "Unknown option '--what'"],
])("%j is refused", (words, message) => {
  const said = jest.spyOn(console, "error").mockImplementation(() => undefined);
  expect(peers(words)).toBe(2);
  expect(said.mock.calls[0]![0]).toContain(message);
  said.mockRestore();
});

test.each([
  [1, 1],
  [10, 64],
  [256, 70_000],
])("%i blocks of %i bytes are encoded and decoded right for the figures, also in slices", (n, k) => {
  for (const seconds of Object.values(coderTimes(codec, n, k, 1))) expect(seconds).toBeLessThan(Infinity);
});
