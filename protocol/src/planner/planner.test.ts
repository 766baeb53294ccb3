/** Tests the grants when no packets come: docs/spec/protocol.md §8.9. */
import { loadCodec } from "@tributary/native-codec";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { geometryOf, type Geometry } from "../geometry";
import { Assembly } from "../receiver/assembly";
import { beginningsOf } from "./known";
import { Planner } from "./planner";

/** Makes a planner for two unknown proxies that were asked at 0 ms. */
function newPlanner(): Planner {
  const geometry = geometryOf(260_000, 551, 128) as Geometry;
  const known = [undefined, undefined];
  const assembly = new Assembly(geometry, "coded", loadCodec(loadWasmCodec));
  const beginnings = beginningsOf(known, { windowPackets: 100, generationSize: 128 }, 567);
  return new Planner({ geometry, assembly, beginnings, known, askedMs: [0, 0], packetBytes: 567, nowMs: 0 });
}

test("planner: a proxy that sends nothing useful is granted little more, even in a long stall", () => {
  const planner = newPlanner();
  for (const index of [0, 1]) planner.handleHeard(index, 20);
  let [granted, sequence] = [0, 0];
  for (let nowMs = 25; nowMs < 20_000; nowMs += 5) {
    const coding = { kind: "seed", seed: 1, grant: 0 } as const;
    planner.handleData(
      1,
      { type: "data", requestId: 1, sequence: sequence++, generationIndex: 0, coding, payload: new Uint8Array(0) },
      { useful: true, innovative: true },
      nowMs,
    );
    planner.replan(nowMs);
    granted = planner.grantFor(0, nowMs).runs.reduce((sum, { count }) => sum + count, 0);
  }
  expect(granted).toBeGreaterThan(100);
  expect(granted).toBeLessThan(1500);
});

test.each([
  [4, 5],
  [40, 8],
  [120, 10],
])("planner: of a shortest round trip of %d ms follow grants every %d ms", (rttMs, everyMs) => {
  const planner = newPlanner();
  for (const index of [0, 1]) {
    planner.handleRoundTrip(index, rttMs * (1 + index));
    planner.handleHeard(index, 200);
  }
  planner.replan(201);
  expect(planner.grantEveryMs).toBe(everyMs);
});
