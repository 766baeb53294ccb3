/** How long the first bytes of a segment take that are checked, in the virtual time of a simulation. */
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import type { SwarmDraw } from "./draw";
import { runSwarm } from "./run";

const RTT_MS = 100;
const BYTES_PER_SEC = 896_000;
const PROXIES = 4;

function firstBytesMs(drawn: Partial<SwarmDraw>): number {
  const proxies = Array.from({ length: PROXIES }, () => ({
    link: { bytesPerSec: BYTES_PER_SEC, rttMs: RTT_MS },
    malice: [],
    readyMs: 0,
    noticeMs: 0,
    corruption: 0,
    originFailsMs: Infinity,
  }));
  const draw: SwarmDraw = {
    seed: 1,
    mode: "coded",
    chunkBytes: 400_000,
    range: undefined,
    symbolBytes: 1024,
    generationSize: 128,
    windowPackets: 256,
    proxies,
    known: proxies.map(() => ({ rttMs: RTT_MS })),
    isVouched: false,
    bodies: proxies.map(() => 0),
    abortMs: Infinity,
    healMs: 0,
    rogueClient: false,
    ...drawn,
  };
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
