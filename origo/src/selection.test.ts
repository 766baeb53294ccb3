/** Tests which proxies come first, and that equal proxies get equally many clients. */
import { distanceKm } from "./geo";
import type { FleetProxy } from "@tributary/contract/schema";
import { inOrder, type SelectionInput } from "./selection";
import { helloOf, statusOf } from "../../contract/test/samples";

function rngOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state ^ (state >>> 16)) >>> 0;
  };
}

const proxy = (id: string, fields: Partial<FleetProxy> = {}): FleetProxy => ({
  ...helloOf(),
  id,
  name: id,
  connectedAtMs: 0,
  lastSeenMs: 0,
  status: null,
  sentBytesPerSec: null,
  originBytesPerSec: null,
  state: "live",
  ...fields,
});
const rng = rngOf(7);
const order = (proxies: FleetProxy[], input: Partial<SelectionInput> & Pick<SelectionInput, "select">): string =>
  inOrder(proxies, { nearKm: 3000, ...input }, rng)
    .map(({ id }) => id)
    .join("");

const BUDAPEST = { lat: 47, lon: 19 };
const PLACED = [
  proxy("t", { place: { lat: 35.7, lon: 139.7 } }),
  proxy("v", { place: { lat: 48.2, lon: 16.4 } }),
  proxy("u"),
  proxy("l", { place: { lat: 51.5, lon: -0.1 } }),
  proxy("n", { place: { lat: 40.7, lon: -74 } }),
];

test("distances are those of the great circle (Budapest to Vienna, New York; antipodes)", () => {
  expect(distanceKm({ lat: 47.5, lon: 19.05 }, { lat: 48.2, lon: 16.37 })).toBeCloseTo(214, -1);
  expect(distanceKm({ lat: 47.5, lon: 19.05 }, { lat: 40.71, lon: -74.01 })).toBeCloseTo(7020, -2);
  expect(distanceKm({ lat: 0, lon: 0 }, { lat: 0, lon: 180 })).toBeCloseTo(20_015, 0);
});

test("near: only close proxies, in any order", () => {
  const seen = new Set<string>();
  for (let round = 0; round < 50; round++) seen.add(order(PLACED, { select: "near", place: BUDAPEST }));
  expect([...seen].sort()).toEqual(["lv", "vl"]);
});

test("near: when no proxy is close, all by distance, and proxies without a place last", () => {
  expect(order(PLACED, { select: "near", place: BUDAPEST, nearKm: 100 })).toBe("vlntu");
});

test("near without the client's place is random", () => {
  const firsts = new Set<string | undefined>();
  for (let round = 0; round < 100; round++) firsts.add(order(PLACED, { select: "near" })[0]);
  expect(firsts.size).toBe(5);
});

test("least loaded: sorted by load, and proxies without a load last", () => {
  const loads = { a: 0.9, b: 0.1, c: 0.5 };
  const proxies = [...Object.entries(loads).map(([id, load]) => proxy(id, { status: statusOf({ load }) })), proxy("x")];
  expect(order(proxies, { select: "least-loaded" })).toBe("bcax");
});

test("operators: one proxy of each operator before a second proxy of any", () => {
  const proxies = ["a1", "a2", "a3", "b1", "c1"].map((name) => proxy(name, { operator: name[0]! }));
  for (let round = 0; round < 50; round++) {
    const found = inOrder(proxies, { select: "operators", nearKm: 0 }, rng).map(({ operator }) => operator);
    expect(new Set(found.slice(0, 3)).size).toBe(3);
    expect(found.slice(3)).toEqual(["a", "a"]);
  }
});
