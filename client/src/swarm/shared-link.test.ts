/** An emulated link: its rate, who gets it, and what a late timer costs. */
import { SharedLink } from "./shared-link";

const RATE = 100_000;
const PIECE = 1000;

/** A flow that always has a piece while `isBusy`. */
class Flow {
  isBusy = true;
  bytes = 0;
  take(): number {
    if (!this.isBusy) return 0;
    this.bytes += PIECE;
    return PIECE;
  }
}

let link: SharedLink;
let lateMs: number;
beforeEach(() => {
  jest.useFakeTimers();
  lateMs = 0;
  link = new SharedLink(RATE, () => performance.now() + lateMs);
});
afterEach(() => {
  link.close();
  jest.useRealTimers();
});

test("flows share the rate evenly, and one that has nothing leaves its share to the others", () => {
  const flows = [new Flow(), new Flow(), new Flow()];
  for (const flow of flows) link.add(flow);
  link.wake();
  jest.advanceTimersByTime(6000);
  for (const { bytes } of flows) expect(Math.abs(bytes - 200_000)).toBeLessThan(4 * PIECE);
  flows[0]!.isBusy = false;
  jest.advanceTimersByTime(2000);
  expect(Math.abs(flows[1]!.bytes - 300_000)).toBeLessThan(6 * PIECE);
});

test("a link that was idle for long sends no more than 20 ms of its rate at once", () => {
  const flow = new Flow();
  flow.isBusy = false;
  link.add(flow);
  jest.advanceTimersByTime(60_000);
  flow.isBusy = true;
  link.wake();
  expect(flow.bytes).toBeLessThanOrEqual((RATE * 20) / 1000 + PIECE);
});

test("a busy link whose timer comes 500 ms late has sent as much as one in time", () => {
  const flow = new Flow();
  link.add(flow);
  link.wake();
  const before = flow.bytes;
  lateMs = 500;
  jest.advanceTimersByTime(20);
  expect(flow.bytes - before).toBeGreaterThan((RATE * 500) / 1000);
});

test("a message that does not wait takes its bytes from the flows", () => {
  const flow = new Flow();
  link.add(flow);
  link.charge(RATE);
  link.wake();
  jest.advanceTimersByTime(900);
  expect(flow.bytes).toBe(0);
  jest.advanceTimersByTime(1100);
  expect(Math.abs(flow.bytes - RATE)).toBeLessThan(4 * PIECE);
});

test("a flow that is gone gets no turn", () => {
  const [gone, stays] = [new Flow(), new Flow()];
  link.add(gone);
  link.add(stays);
  link.remove(gone);
  link.wake();
  jest.advanceTimersByTime(1000);
  expect([gone.bytes, stays.bytes > 50_000]).toEqual([0, true]);
});
