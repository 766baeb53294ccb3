import { REJECTION_KINDS } from "@tributary/contract";
import { ErrorCounts } from "./counters";

test("error counts: kinds come newest first, with their counts and ages", () => {
  const errors = new ErrorCounts();
  errors.add("dnsFailed", 1000);
  errors.add("originFailed", 2000);
  errors.add("dnsFailed", 3000);
  expect(errors.total).toBe(3);
  expect(errors.latest(5000)).toEqual([
    { kind: "dnsFailed", count: 2, ageMs: 2000 },
    { kind: "originFailed", count: 1, ageMs: 3000 },
  ]);
});

test("error counts: at most 16 kinds are kept, and the total counts all", () => {
  const errors = new ErrorCounts();
  REJECTION_KINDS.forEach((kind, index) => errors.add(kind, index));
  expect(errors.latest()).toHaveLength(16);
  expect(errors.latest()[0]?.kind).toBe(REJECTION_KINDS.at(-1));
  expect(errors.total).toBe(REJECTION_KINDS.length);
});
