/** How long the first bytes of a segment take that are checked, in the virtual time of a simulation. */
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { faultlessDraw, type SwarmDraw } from "./draw";
import { runSwarm } from "./run";

const RTT_MS = 100;
const BYTES_PER_SEC = 896_000;
const PROXIES = 4;

function firstBytesMs(drawn: Partial<SwarmDraw>): number {
  const link = { bytesPerSec: BYTES_PER_SEC, rttMs: RTT_MS };
  const draw = faultlessDraw(PROXIES, link, { seed: 1, chunkBytes: 400_000, isVouched: false, ...drawn });
  const { end, wrongs, firstBytesMs } = runSwarm(draw, loadWasmCodec());
  expect([end, wrongs]).toEqual(["complete", []]);
  return firstBytesMs;
}

test("first bytes: a signature costs a tenth of a round trip, agreement less than a half", () => {
  const unchecked = firstBytesMs({ isUnchecked: true });
  const roundTripsMore = (drawn: Partial<SwarmDraw>): number => (firstBytesMs(drawn) - unchecked) / RTT_MS;
  expect(unchecked).toBeLessThan(1.1 * RTT_MS);
  expect(roundTripsMore({ isVouched: true })).toBeLessThan(0.1);
  expect(roundTripsMore({})).toBeLessThan(0.5);
});
