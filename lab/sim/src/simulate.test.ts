import { loadCodec } from "@tributary/native-codec";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { boundMs } from "./bound";
import { simulateHttp } from "./http-client";
import { even, SCENARIOS } from "./scenarios";
import { simulate, speaks } from "./simulate";
import { HTTP_MODES, PROTOCOL_MODES, type Outcome, type World } from "./world";

const codec = loadCodec(loadWasmCodec);
const MODES = PROTOCOL_MODES.filter((mode) => speaks(mode, codec));
const NAMES = Object.keys(SCENARIOS);
const world = (name: string, seed: number): World => ({ ...SCENARIOS[name]!, seed });
const bound = (name: string, { symbolCount, packetBytes }: Outcome) =>
  boundMs(world(name, 0), symbolCount, packetBytes, SCENARIOS[name]!.chunkBytes);
/** Over HTTP the origin's leg bounds nothing, because a range need not wait for the bytes before it. */
const lowest = (name: string, { symbolCount, packetBytes }: Outcome): number => {
  const links = SCENARIOS[name]!.links.map(({ origin: _, ...link }) => link);
  return boundMs({ ...SCENARIOS[name]!, links }, symbolCount, packetBytes);
};

describe.each(MODES)("simulation: %s", (mode) => {
  test.each(NAMES)("%s: every byte arrives, and the last one not before the bound (seed 1)", (name) => {
    const outcome = simulate(world(name, 1), mode, codec);
    expect(outcome.failure).toBeUndefined();
    expect(outcome.bytesRight).toBe(true);
    expect(outcome.completionMs).toBeLessThan(8 * bound(name, outcome));
    if (!SCENARIOS[name]!.links.some(({ burst, loss }) => burst || loss))
      expect(outcome.completionMs).toBeGreaterThan(bound(name, outcome) - 1e-6);
  });

  test("the same seed gives the same events, and another seed gives others", () => {
    const [first, again, other] = [1, 1, 2].map((seed) => simulate(world("lossy", seed), mode, codec));
    expect(again).toEqual(first);
    expect(other!.eventHash).not.toBe(first!.eventHash);
  });
});

describe.each(HTTP_MODES)("simulation: %s", (mode) => {
  test.each(NAMES)("%s: the chunk arrives (seed 1)", (name) => {
    const outcome = simulateHttp(world(name, 1), mode);
    expect(outcome.completionMs).toBeLessThan(12_000);
    expect(outcome.bytesRight).toBe(true);
    if (!SCENARIOS[name]!.links.some(({ burst, loss }) => burst || loss))
      expect(outcome.completionMs).toBeGreaterThan(lowest(name, outcome) - 1e-6);
  });

  test("the same seed gives the same events, and another seed gives others", () => {
    const [first, again, other] = [1, 1, 2].map((seed) => simulateHttp(world("lossy", seed), mode));
    expect(again).toEqual(first);
    expect(other!.eventHash).not.toBe(first!.eventHash);
  });
});

test("simulation: far proxies cost near ones nothing if the client remembers their paths", () => {
  const known = SCENARIOS["far"]!.links.map(({ bytesPerSec, rttMs }) => ({ bytesPerSec, rttMs, loss: 0 }));
  const outcome = simulate(world("far", 1), "coded", codec, { known });
  expect(outcome.completionMs).toBeLessThan(1.03 * bound("far", outcome));
  expect(outcome.normalizedGoodput).toBeGreaterThan(0.98);
  const unknown = simulate(world("far", 1), "coded", codec);
  expect(unknown.completionMs).toBeLessThan(1.15 * bound("far", unknown));
  expect(unknown.normalizedGoodput).toBeGreaterThan(0.85);
});

test("simulation: growing round trips cost little more than the time by which they grew", () => {
  const outcome = simulate(world("moves", 1), "coded", codec);
  const grownMs = 100;
  expect(outcome.completionMs).toBeLessThan(1.3 * (bound("moves", outcome) + grownMs));
  const congested = simulate({ ...world("moves", 1), congestion: "warm" }, "coded", codec);
  expect(congested.completionMs).toBeLessThan(1.7 * (bound("moves", congested) + grownMs));
});

test("simulation: packets in clumps, as over radio, are not mistaken for a slower link", () => {
  const outcome = simulate(world("radio", 1), "coded", codec);
  const meanMs = 40;
  expect(outcome.completionMs).toBeLessThan(1.4 * (bound("radio", outcome) + meanMs));
  const congested = simulate({ ...world("radio", 1), congestion: "warm" }, "coded", codec);
  expect(congested.completionMs).toBeLessThan(1.6 * (bound("radio", congested) + meanMs));
});

test("simulation: a queue before a full downlink is not mistaken for a longer path", () => {
  const deep: World = {
    seed: 1,
    chunkBytes: 6_000_000,
    links: even(4),
    downlink: { bytesPerSec: 896_000, queueBytes: 896_000 },
  };
  const outcome = simulate(deep, "coded", codec);
  expect(outcome.completionMs).toBeLessThan(1.1 * boundMs(deep, outcome.symbolCount, outcome.packetBytes));
  expect(outcome.normalizedGoodput).toBeGreaterThan(0.9);
});

test("simulation: a trace hook does not change the hash", () => {
  let lines = 0;
  const traced = simulate(world("clean", 3), "coded-mutp", codec, {}, () => lines++);
  expect(traced.eventHash).toBe(simulate(world("clean", 3), "coded-mutp", codec).eventHash);
  expect(lines).toBe(traced.events);
});

test("simulation: one more link does not change the packets of the other links", () => {
  const alone = { ...world("lossy", 5), chunkBytes: 200_000 };
  const lost = (links: World["links"]) => {
    const seen: string[] = [];
    simulate({ ...alone, links }, "coded-mutp", codec, {}, (nowMs, event, link) => {
      if (link === 0 && nowMs < 50) seen.push(`${nowMs} ${event}`);
    });
    return seen;
  };
  expect(lost([...alone.links, alone.links[0]!])).toEqual(lost(alone.links));
});

test("simulation: without loss the ideal TCP of parallel HTTP on one link stays within 1 % of the bound", () => {
  const outcome = simulateHttp(world("single", 1), "parallel-http");
  expect(outcome.completionMs / bound("single", outcome)).toBeLessThan(1.01);
  expect(outcome.normalizedGoodput).toBe(1);
});

test("simulation: 2 % loss slows Cubic down, but not the ideal TCP (seed 1)", () => {
  const [ideal, cubic] = (["parallel-http", "parallel-http-cubic"] as const).map(
    (mode) => simulateHttp(world("lossy", 1), mode).completionMs,
  );
  expect(cubic! / ideal!).toBeGreaterThan(1.5);
});

test("simulation: `speaks` tells the protocol's modes from others", () => {
  expect(speaks("coded-mutp", codec)).toBe(true);
  expect(speaks("carrier-pigeon", codec)).toBe(false);
});
