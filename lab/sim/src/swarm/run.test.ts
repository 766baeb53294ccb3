import { readFileSync } from "node:fs";
import path from "node:path";
import { loadCodec } from "@tributary/native-codec";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { PLANTED } from "../planted/bugs";
import { CountingCodec } from "./counting-codec";
import { draw } from "./draw";
import { runSwarm } from "./run";

const codec = loadCodec(loadWasmCodec);

test("swarm: the same seed gives the same run, to the last event; another seed another one", () => {
  const [first, again, other] = [7, 7, 8].map((seed) => runSwarm(draw(seed), codec));
  expect(again).toEqual(first);
  expect(other!.eventHash).not.toBe(first!.eventHash);
});

test.each([1, 2, 3, 4, 5, 6, 7, 8])("swarm: nothing goes wrong with seed %i", (seed) => {
  expect(runSwarm(draw(seed), codec).wrongs).toEqual([]);
});

test("swarm: the longest chunks are whole at the proxies", () => {
  const seed = 119084936;
  expect(draw(seed).chunkBytes + (seed % 1000)).toBeGreaterThan(3_000_000);
  expect(runSwarm(draw(seed), codec).wrongs).toEqual([]);
});

test.each([
  [56745108, 9000, ""],
  [30006126, 2000, ", nor do packets that come twice hide it"],
])(
  "swarm, seed %i: a fast proxy that sends one packet again and again does not keep others from their work for %i ms%s",
  (seed, msMax) => {
    const { endMs, wrongs } = runSwarm(draw(seed), codec);
    expect(wrongs).toEqual([]);
    expect(endMs).toBeLessThan(msMax);
  },
);

test("swarm, seed 212897332: an honest proxy that was cut off before it had answered is asked on, while another one only promises", () => {
  expect(runSwarm(draw(212897332), codec).wrongs).toEqual([]);
});

test("swarm: faults of all kinds are drawn, and all but one proxy may be malicious", () => {
  const draws = Array.from({ length: 2000 }, (_, seed) => draw(seed));
  const links = draws.flatMap(({ proxies }) => proxies.map(({ link }) => link));
  expect(links.some(({ loss = 0 }) => loss > 0.28)).toBe(true);
  expect(links.some(({ burst }) => burst)).toBe(true);
  expect(links.some(({ outages = [] }) => outages.some(({ crash }) => crash))).toBe(true);
  expect(draws.some(({ chunkBytes }) => chunkBytes === 0)).toBe(true);
  expect(
    draws.some(({ proxies }) => proxies.length === 8 && proxies.filter(({ malice }) => malice.length > 0).length === 7),
  ).toBe(true);
  expect(draws.every(({ proxies }) => proxies.some(({ malice }) => malice.length === 0))).toBe(true);
  expect(new Set(draws.flatMap(({ proxies }) => proxies.flatMap(({ malice }) => malice))).size).toBe(17);
});

test("swarm: a coder that is never freed is counted, and one that is freed twice", () => {
  const counting = new CountingCodec(codec);
  const decoder = counting.createDecoder(2, 64);
  counting.createEncoder(2, 64);
  decoder.free();
  decoder.free();
  expect([counting.live, counting.freedTwice]).toEqual([1, 1]);
});

test.each(PLANTED)(
  "planted bug: the text it replaces stands exactly once in the source: $name",
  ({ file, find, replace }) => {
    const source = readFileSync(path.join(__dirname, "../../../../protocol/src", file), "utf8");
    expect(source.split(find)).toHaveLength(2);
    expect(source.replace(find, () => replace)).not.toBe(source);
  },
);
