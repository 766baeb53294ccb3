/**
 * The quick look at records takes nothing that the schema would not take unchanged, and does take what clients send.
 */
import { isRecordsRequest } from "./record-check";
import { RecordsRequest, SCHEMA_LIMITS } from "@tributary/contract/schema";
import { bareRecordOf, recordOf } from "../../contract/test/samples";

const plain = { ...recordOf(), comment: "plain" };

/** Values that some field, somewhere, must refuse or change. */
const STRANGE: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  0.5,
  2 ** 53,
  1e300,
  "",
  "x",
  "\0",
  "\ud800",
  "\ufeffx",
  "🎬",
  "x".repeat(9000),
  [],
  {},
  [null],
  { start: 5, end: 4 },
  { start: 1, end: 2 },
  "0B8F5A0E-6A1E-4C4E-8B0F-0123456789AB",
  "http://h.example/?q",
  "http://h.example/#f",
  "http://u:p@h.example/",
  "http://u:p/",
  "http://h.example:99999/",
  "http://1.2.3.999/",
  "http://H.EXAMPLE/",
  "http://",
  "ftp://h.example/",
  "http://h.example",
  "http://xn--/",
  "http://h.example/a b",
  "webrtc",
  "coded",
  "complete",
  "cli",
  "failed",
];

/** Copies of `value` with one thing in it changed, left out or added. */
function* mutants(value: unknown): Generator<unknown> {
  yield* STRANGE;
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) for (const mutant of mutants(item)) yield value.with(index, mutant);
    yield [...value, ...value, {}];
    yield Array<unknown>(257).fill(value[0]);
  } else if (typeof value === "object" && value !== null) {
    for (const [name, item] of Object.entries(value)) {
      for (const mutant of mutants(item)) yield { ...value, [name]: mutant };
      yield Object.fromEntries(Object.entries(value).filter(([other]) => other !== name));
    }
    yield { ...value, extra: 1 };
  }
}

test("takes what clients send, so that the schema need not be asked", () => {
  expect(isRecordsRequest({ records: Array(SCHEMA_LIMITS.recordsPerRequest).fill(plain) })).toBe(true);
  expect(isRecordsRequest({ records: [bareRecordOf(), plain] })).toBe(true);
});

test("what it takes, the schema takes unchanged", () => {
  const taken: unknown[] = [];
  let refused = 0;
  for (const mutant of mutants({ records: [plain] })) {
    if (isRecordsRequest(mutant)) taken.push(mutant);
    else refused++;
  }
  for (const each of taken) expect(RecordsRequest.parse(each)).toEqual(each);
  expect(taken.length).toBeGreaterThan(100);
  expect(refused).toBeGreaterThan(1000);
});
