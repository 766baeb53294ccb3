import { EventEmitter } from "node:events";
import type { Configuration } from "./configuration";
import { GAP_DAYS_MAX, QUIET_DAYS, startRetention } from "./retention";
import type { Log } from "./telemetry";

const DAY_MS = 86_400_000;
const RETENTION_DAYS = 30;

/** An Origo that starts `aheadDays` after the newest record. */
async function start(aheadDays: number) {
  const seen = { nowDays: aheadDays, newestDays: 0, deleted: [] as number[], warnings: 0 };
  const configuration = Object.assign(new EventEmitter(), { value: () => RETENTION_DAYS });
  const retention = await startRetention({
    store: {
      newestClientMs: () => Promise.resolve(seen.newestDays * DAY_MS),
      deleteBefore: (ms) => Promise.resolve(seen.deleted.push(ms / DAY_MS)),
    },
    configuration: configuration as unknown as Configuration,
    daysDefault: undefined,
    nowMs: () => seen.nowDays * DAY_MS,
    log: { warn: () => seen.warnings++ } as unknown as Log,
  });
  retention.close();
  /** Lets time pass until the next look. */
  const after = async (days: number): Promise<void> => {
    seen.nowDays += days;
    configuration.emit("change");
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { seen, after };
}

test("retention: what is old is deleted while clients report", async () => {
  const { seen } = await start(1);
  expect([seen.deleted, seen.warnings]).toEqual([[1 - RETENTION_DAYS], 0]);
});

test.each([2, 31, 200, GAP_DAYS_MAX])(
  "retention: a clock %i days after the last report is held for wrong",
  async (days) => {
    const { seen, after } = await start(days);
    await after(QUIET_DAYS - 1);
    expect([seen.deleted, seen.warnings]).toEqual([[], 2]);
  },
);

test("retention: a client that reports shows that the clock is wrong, or that it is right", async () => {
  const wrong = await start(200);
  wrong.seen.newestDays = 8;
  await wrong.after(8);
  expect(wrong.seen.deleted).toEqual([]);
  const right = await start(200);
  right.seen.newestDays = 200;
  await right.after(0);
  expect(right.seen.deleted).toEqual([200 - RETENTION_DAYS]);
});

test("retention: where no client reports, old records go after some days, unless it is years", async () => {
  for (const [days, isDeleted] of [
    [200, true],
    [4000, false],
  ] as const) {
    const { seen, after } = await start(days);
    await after(QUIET_DAYS);
    expect(seen.deleted).toEqual(isDeleted ? [days + QUIET_DAYS - RETENTION_DAYS] : []);
  }
});
