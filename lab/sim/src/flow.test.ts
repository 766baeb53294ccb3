/** Simulated sessions under the product's congestion control. */
import { loadCodec } from "@tributary/native-codec";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { loadNativeTransport } from "@tributary/native-transport";
import { boundMs } from "./bound";
import { Flow } from "./flow";
import { simulate } from "./simulate";
import { PACKET_BYTES, type ProxyLink, type World } from "./world";

const LINK = { bytesPerSec: 896_000, rttMs: 50, queueBytes: 89_600 };
const world = (congestion: World["congestion"]): World => ({
  seed: 1,
  links: Array.from({ length: 6 }, () => LINK),
  chunkBytes: 1_500_000,
  ...(congestion ? { congestion } : {}),
});

/** Without the native transport (built with Rust) there is no congestion control to simulate. */
const testBuilt = loadNativeTransport().native ? test : test.skip;

function newFlow(): Flow {
  const transport = loadNativeTransport();
  if (!transport.native) throw new Error(transport.reason);
  return new Flow(transport.native.congestionControl(PACKET_BYTES), 50);
}

testBuilt("flow: sends one window before the first arrival, and counts a long overtaken packet as lost", () => {
  const flow = newFlow();
  let nowMs = 0;
  const sent: number[] = [];
  for (let atMs = flow.readyMs(nowMs); atMs < Infinity; atMs = flow.readyMs(nowMs)) {
    nowMs = Math.max(nowMs, atMs);
    sent.push(flow.send(nowMs, PACKET_BYTES));
  }
  expect(sent).toHaveLength(32);
  flow.acknowledge(1, 50);
  expect(flow.inFlightPackets).toBe(31);
  expect(flow.readyMs(50)).toBeLessThan(Infinity);
  flow.readyMs(62);
  expect(flow.inFlightPackets).toBe(31);
  flow.readyMs(63);
  expect(flow.inFlightPackets).toBe(30);
});

testBuilt("flow: gives up a packet that is never acknowledged", () => {
  const flow = newFlow();
  flow.send(0, PACKET_BYTES);
  flow.readyMs(149);
  expect(flow.inFlightPackets).toBe(1);
  flow.readyMs(151);
  expect(flow.inFlightPackets).toBe(0);
});

testBuilt("simulation: congestion control delivers every byte, and only new sessions are slower", () => {
  const [free, warm, fresh] = [undefined, "warm" as const, "new" as const].map((congestion) =>
    simulate(world(congestion), "coded", loadCodec(loadWasmCodec)),
  );
  for (const outcome of [free!, warm!, fresh!])
    expect([outcome.bytesRight, outcome.failure]).toEqual([true, undefined]);
  expect(warm!.completionMs).toBeLessThan(1.01 * free!.completionMs);
  expect(fresh!.completionMs).toBeGreaterThan(1.02 * free!.completionMs);
  expect(fresh!.completionMs).toBeLessThan(1.1 * free!.completionMs);
});

testBuilt.each([
  ["new", 100, 0.3, 1.3],
  ["warm", 50, 0.5, 1.12],
] as const)(
  "simulation: in %s sessions (RTT %d ms) a link that falls to a tenth after %d of the time delays nothing",
  (congestion, rttMs, share, most) => {
    const links: ProxyLink[] = Array.from({ length: 6 }, () => ({ ...LINK, rttMs }));
    const fallen: World = { seed: 1, links, chunkBytes: 4_000_000, congestion };
    const atMs = share * boundMs(fallen, 3677, PACKET_BYTES);
    links[0] = { ...links[0]!, rateChanges: [{ atMs, bytesPerSec: LINK.bytesPerSec / 10 }] };
    const outcome = simulate(fallen, "coded", loadCodec(loadWasmCodec));
    expect(outcome.completionMs).toBeLessThan(most * boundMs(fallen, outcome.symbolCount, outcome.packetBytes));
  },
);
