/** Sessions under the product's congestion control, in simulation. */
import { loadCodec } from "@tributary/native-codec";
import { loadNativeTransport } from "@tributary/native-transport";
import { Flow } from "./flow";
import { simulate } from "./simulate";
import { PACKET_BYTES, type World } from "./world";

const LINK = { bytesPerSec: 896_000, rttMs: 50, queueBytes: 89_600 };
const world = (congestion: World["congestion"]): World => ({ seed: 1, links: Array.from({ length: 6 }, () => LINK), chunkBytes: 1_500_000, ...(congestion ? { congestion } : {}) });

/** Where there is no Rust there is no congestion control to simulate. */
const testBuilt = loadNativeTransport().native ? test : test.skip;

function newFlow(): Flow {
  const transport = loadNativeTransport();
  if (!transport.native) throw new Error(transport.reason);
  return new Flow(transport.native.congestionControl(PACKET_BYTES), 50);
}

testBuilt("flow: no more than a window leaves before something has arrived, and what three later ones overtook is lost", () => {
  const flow = newFlow();
  let nowMs = 0;
  const sent: number[] = [];
  for (let atMs = flow.readyMs(nowMs); atMs < Infinity; atMs = flow.readyMs(nowMs)) {
    nowMs = Math.max(nowMs, atMs);
    sent.push(flow.send(nowMs, PACKET_BYTES));
  }
  expect(sent).toHaveLength(32);
  for (const number of sent.slice(1, 3)) flow.acknowledge(number, nowMs + 50);
  expect(flow.inFlightPackets).toBe(30);
  flow.acknowledge(3, nowMs + 50);
  expect(flow.inFlightPackets).toBe(28);
  expect(flow.readyMs(nowMs + 50)).toBeLessThan(Infinity);
});

testBuilt("flow: what is never heard of is given up", () => {
  const flow = newFlow();
  flow.send(0, PACKET_BYTES);
  flow.readyMs(149);
  expect(flow.inFlightPackets).toBe(1);
  flow.readyMs(151);
  expect(flow.inFlightPackets).toBe(0);
});

testBuilt("simulation: the same download comes whole under congestion control, later in new sessions than in warm ones", () => {
  const [free, warm, fresh] = [undefined, "warm" as const, "new" as const].map((congestion) => simulate(world(congestion), "coded", loadCodec()));
  for (const outcome of [free!, warm!, fresh!]) expect([outcome.bytesRight, outcome.failure]).toEqual([true, undefined]);
  expect(free!.completionMs).toBeLessThan(warm!.completionMs);
  expect(warm!.completionMs).toBeLessThan(fresh!.completionMs);
  expect(fresh!.completionMs).toBeLessThan(1.1 * free!.completionMs);
});
