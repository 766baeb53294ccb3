/** How many segments are under way at once. */
import { JobQueue, type Job } from "./job-queue";

const jobOf = (index: number, track = 0, range?: Job["segment"]["range"]): Job => ({
  track,
  index,
  isFirstOfStretch: false,
  segment: {
    url: `http://a.example/${index}`,
    position: index,
    nextPosition: index + 1,
    durationSec: 2,
    stretch: 0,
    isGap: false,
    ...(range ? { range } : {}),
  },
});

/** Starts six workers that hold their segments until `finish` ends the oldest. */
function working(queue: JobQueue) {
  const open: { job: Job; finish: () => void }[] = [];
  const hold = (job: Job): Promise<void> => new Promise((finish) => open.push({ job, finish }));
  const ended = Promise.all(
    Array.from({ length: 6 }, async () => {
      while (await queue.takeOne(hold));
    }),
  );
  return { open, ended, settle: () => new Promise((resolve) => setImmediate(resolve)) };
}

test.each<[string, number, number]>([
  ["small ones: as many as there are workers", 100_000, 6],
  ["of unknown size", 0, 6],
  ["of 2.5 MB: two", 1_250_000, 2],
  ["each larger than the limit: one", 4_000_000, 1],
])("segments at once, %s", async (_name, bytesPerSec, expected) => {
  const queue = new JobQueue([bytesPerSec], () => 5e6);
  queue.push(...Array.from({ length: 9 }, (_, index) => jobOf(index)));
  queue.end();
  const { open, ended, settle } = working(queue);
  await settle();
  expect(open).toHaveLength(expected);
  const done: number[] = [];
  for (let each = open.shift(); each; each = open.shift()) {
    done.push(each.job.index);
    each.finish();
    await settle();
  }
  await ended;
  expect(done).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
});

test("sizes are learned, and a range tells its own", async () => {
  const queue = new JobQueue([0, 0], () => 5e6);
  queue.noteSize(jobOf(0), 4_000_000);
  queue.push(jobOf(1), jobOf(2, 1, { start: 0, end: 999_999 }), jobOf(3, 1, { start: 0, end: 0 }));
  const { open, ended, settle } = working(queue);
  await settle();
  expect(open.map(({ job }) => job.index)).toEqual([1, 2]);
  queue.stop();
  open.forEach(({ finish }) => finish());
  await ended;
  expect(open).toHaveLength(2);
});
