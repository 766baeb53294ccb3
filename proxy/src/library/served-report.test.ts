/** Reports of what was served, over a stand-in for Origo that may not answer. */
import type { ServedAck, ServedObject, ServedReport } from "@tributary/contract/publication-schema";
import { idOf } from "../../test/objects";
import { ServedReporter } from "./served-report";

const ID = idOf(Buffer.from("object"));

function make(answer: (report: ServedReport) => Promise<ServedAck>) {
  const waiting: ServedObject[][] = [];
  const reports: ServedReport[] = [];
  const heard = { reports: 0 };
  const reporter = new ServedReporter({
    library: { takeServed: () => waiting.shift() ?? [] },
    send: (report) => {
      reports.push(report);
      heard.reports++;
      return answer(report);
    },
    log: () => undefined,
    intervalMs: 1,
    gapMs: 1,
  });
  const until = async (count: number): Promise<void> => {
    while (heard.reports < count) await new Promise((resolve) => setTimeout(resolve, 1));
  };
  return { reporter, waiting, reports, until };
}

test("served report: one that was not answered is sent again as it was, also after a new connection", async () => {
  let isDeaf = true;
  const made = make(({ id }) => (isDeaf ? Promise.reject(new Error("no answer")) : Promise.resolve({ id })));
  made.waiting.push([{ object: ID, bytes: 5 }], [{ object: ID, bytes: 7 }]);
  made.reporter.begin();
  await made.until(2);
  made.reporter.pause();
  const before = made.reports.length;
  isDeaf = false;
  made.reporter.begin();
  await made.until(before + 2);
  made.reporter.pause();
  const again = made.reports.slice(0, before + 1);
  expect(new Set(again.map((report) => JSON.stringify(report))).size).toBe(1);
  const last = made.reports.at(-1)!;
  expect(last.served).toEqual([{ object: ID, bytes: 7 }]);
  expect(last.id).not.toBe(again[0]!.id);
});

test("served report: an answer that is an error counts as none, and nothing served is no report", async () => {
  const made = make(({ id }) =>
    Promise.resolve(made.reports.length === 1 ? { error: { kind: "unavailable", message: "later" } } : { id }),
  );
  made.reporter.begin();
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(made.reports).toEqual([]);
  made.waiting.push([{ object: ID, bytes: 5 }]);
  await made.until(2);
  await new Promise((resolve) => setTimeout(resolve, 20));
  made.reporter.pause();
  expect(made.reports).toHaveLength(2);
  expect(made.reports[0]).toEqual(made.reports[1]);
});
