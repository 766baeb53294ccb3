import { boundMs } from "./bound";
import { even } from "./scenarios";

/** A link for packets of 1,000 bytes. */
const link = (packetsPerMs: number, rttMs: number, more = {}) => ({
  bytesPerSec: packetsPerMs * 1_000_000,
  rttMs,
  ...more,
});

describe("bound", () => {
  test("for equal links is RTT + L / ((1 - p) sum R)", () => {
    expect(boundMs({ links: [link(0.5, 50), link(0.5, 50)] }, 300, 1000)).toBeCloseTo(50 + 300, 9);
    expect(boundMs({ links: [link(0.5, 50, { loss: 0.25 }), link(0.5, 50, { loss: 0.25 })] }, 300, 1000)).toBeCloseTo(
      50 + 400,
      9,
    );
    const packets = Math.ceil(1_500_000 / 1100);
    expect(boundMs({ links: even(6, { loss: 0.02 }) }, packets, 1115)).toBeCloseTo(
      50 + (1364 * 1115 * 1000) / (0.98 * 6 * 896_000),
      9,
    );
  });

  test("for unequal round trips fills the nearer link first", () => {
    expect(boundMs({ links: [link(1, 20), link(1, 100)] }, 50, 1000)).toBeCloseTo(70, 9);
    expect(boundMs({ links: [link(1, 20), link(1, 100)] }, 80, 1000)).toBeCloseTo(100, 9);
    expect(boundMs({ links: [link(1, 20), link(1, 100)] }, 100, 1000)).toBeCloseTo(110, 9);
  });

  test("for a shared downlink includes the queue before it", () => {
    const downlink = { bytesPerSec: 1_000_000, queueBytes: 1 };
    expect(boundMs({ links: [link(1, 50), link(1, 50)], downlink }, 100, 1000)).toBeCloseTo(150, 9);
    expect(boundMs({ links: [link(0.4, 50), link(0.4, 50)], downlink }, 80, 1000)).toBeCloseTo(150, 9);
    expect(
      boundMs({ links: [link(2, 0, { outages: [{ fromMs: 10, toMs: Infinity }] })], downlink }, 20, 1000),
    ).toBeCloseTo(20, 9);
    expect(boundMs({ links: [link(2, 0, { outages: [{ fromMs: 10, toMs: Infinity }] })], downlink }, 21, 1000)).toBe(
      Infinity,
    );
  });

  test("for a change of rate at the proxy takes effect half a round trip later", () => {
    const falling = link(1, 100, { rateChanges: [{ atMs: 60, bytesPerSec: 100_000 }] });
    expect(boundMs({ links: [falling] }, 10, 1000)).toBeCloseTo(110, 9);
    expect(boundMs({ links: [falling] }, 11, 1000)).toBeCloseTo(120, 9);
  });

  test("for an outage waits for its end", () => {
    const gone = link(1, 100, { outages: [{ fromMs: 60, toMs: 90 }] });
    expect(boundMs({ links: [gone] }, 20, 1000)).toBeCloseTo(150, 9);
  });

  test("for an origin's leg includes its round trip, and its rate if that is the lower one", () => {
    const origin = { bytesPerSec: 4_000_000, rttMs: 20 };
    expect(boundMs({ links: [link(1, 50, { origin })] }, 100, 1000)).toBeCloseTo(170, 9);
    const slow = { bytesPerSec: 1_000_000, rttMs: 20 };
    expect(boundMs({ links: [link(1, 50, { origin: slow }), link(1, 50, { origin: slow })] }, 100, 1000)).toBeCloseTo(
      170,
      9,
    );
  });
});
