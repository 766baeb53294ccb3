import { encodeFrame } from "./frames";
import { fingerprintOf } from "./fingerprint";

test("equal messages have equal fingerprints, data frames with different sequences different ones", () => {
  const frame = (sequence: number): Uint8Array =>
    encodeFrame({ type: "data", requestId: 7, sequence, generationIndex: 3, coding: { kind: "seed", seed: 9, grant: 1 }, payload: new Uint8Array(1100) });
  expect(fingerprintOf(frame(5))).toBe(fingerprintOf(frame(5)));
  expect(new Set(Array.from({ length: 5000 }, (_, sequence) => fingerprintOf(frame(sequence)))).size).toBe(5000);
});

test("a message of any length has one, of 32 bits", () => {
  for (const length of [0, 1, 23, 24, 25, 2000]) {
    const print = fingerprintOf(new Uint8Array(length));
    expect(Number.isInteger(print) && print >= 0 && print < 2 ** 32).toBe(true);
  }
});
