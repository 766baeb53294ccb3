/** Tests the schemas: each limit just inside and just outside, and the message for the sender. */
import {
  DownloadRecord,
  ErrorReport,
  ErrorsRequest,
  ProxyHello,
  ProxyStatus,
  RecordsRequest,
  SCHEMA_LIMITS as L,
} from "./schema";
import { faultOf } from "./fault";
import type { z } from "zod";
import { bareRecordOf, errorOf, helloOf, recordOf, statusOf } from "../test/samples";

type Case = [field: string, inside: unknown, outside: unknown];
const MAX = Number.MAX_SAFE_INTEGER;
const text = (chars: number): string => "x".repeat(chars);
const url = (chars: number): string => "http://h.example/".padEnd(chars, "x");

/** Sets a (dotted) field in a copy. */
function withField(message: object, path: string, value: unknown): object {
  const copy = structuredClone(message) as Record<string, unknown>;
  const parts = path.split(".");
  const last = parts.pop() ?? "";
  const target = parts.reduce<Record<string, unknown>>((at, part) => at[part] as Record<string, unknown>, copy);
  target[last] = value;
  return copy;
}

function edges(schema: z.ZodTypeAny, message: object, cases: Case[]): void {
  test.each(cases)("%s", (field, inside, outside) => {
    expect(schema.safeParse(withField(message, field, inside)).error).toBeUndefined();
    const refused = schema.safeParse(withField(message, field, outside));
    expect(refused.success).toBe(false);
    if (refused.error) expect(faultOf(refused.error).message).toContain(field.split(".")[0]);
  });
}

/** Every number of these messages: 0 and the largest safe integer are in, -1, NaN and infinity are out. */
function numbers(schema: z.ZodTypeAny, message: object, fields: string[]): void {
  test.each(fields)("%s is finite and non-negative", (field) => {
    for (const inside of [0, MAX]) expect(schema.safeParse(withField(message, field, inside)).error).toBeUndefined();
    for (const outside of [-1, NaN, Infinity, MAX * 4, "1", null])
      expect(schema.safeParse(withField(message, field, outside)).success).toBe(false);
  });
}

describe("ProxyHello", () => {
  edges(ProxyHello, helloOf(), [
    ["name", text(L.nameChars), text(L.nameChars + 1)],
    ["name", "x", ""],
    ["version", text(64), text(65)],
    ["engine", text(64), text(65)],
    ["url", url(L.proxyUrlChars), url(L.proxyUrlChars + 1)],
    ["url", "https://p.example/base", "ftp://p.example/"],
    ["udpPort", 65_535, 65_536],
    ["udpPort", 0, 1.5],
    ["startedAtMs", 8.64e15, 8.65e15],
    ["rateBytesPerSec", 0.5, -0.5],
  ]);
});

describe("ProxyStatus", () => {
  numbers(ProxyStatus, statusOf(), Object.keys(statusOf()));
  edges(ProxyStatus, statusOf(), [
    ["uptimeMs", 0.5, -0.5],
    ["sentBytes", 1, 1.5],
  ]);

  test("says what the coders do, with the stages that were timed", () => {
    const symbols = { inlineSymbols: 5, serviceSymbols: 0, sentSymbols: 9 };
    const coder = {
      coders: ["cpu"],
      waitingTasks: 0,
      shedTasks: 1,
      lostCoders: 0,
      ...symbols,
      stageMs: { coding: 0.1 },
    };
    expect(ProxyStatus.parse(statusOf({ coder }))).toMatchObject({ coder });
    for (const wrong of [{ waitingTasks: -1 }, { stageMs: { waiting: 1 } }, { coders: Array(9).fill("cpu") }])
      expect(ProxyStatus.safeParse({ ...statusOf(), coder: { ...coder, ...wrong } }).success).toBe(false);
  });
});

describe("DownloadRecord", () => {
  test("with every field, and with every optional field left out", () => {
    expect(DownloadRecord.parse(recordOf())).toMatchObject({ mode: "coded-mutp" });
    expect(DownloadRecord.safeParse(bareRecordOf()).error).toBeUndefined();
  });

  numbers(DownloadRecord, recordOf(), [
    "netBytes",
    "grossBytes",
    "durationMs",
    "firstByteMs",
    "serverFetchMs",
    "throughputBytesPerSec",
    "goodputBytesPerSec",
    "normalizedGoodput",
    "fallback.bytes",
    "proxies.0.bytes",
    "proxies.0.lost",
  ]);

  edges(DownloadRecord, recordOf(), [
    ["id", "0b8f5a0e-6a1e-4c4e-8b0f-0123456789ab", "0b8f5a0e"],
    ["clientId", "0b8f5a0e-6a1e-4c4e-8b0f-0123456789ab", "me"],
    ["source", "library", "proxy"],
    ["mode", "parallel-http", "quantum"],
    ["outcome", "aborted", "fine"],
    ["url", url(L.urlChars), url(L.urlChars + 1)],
    ["url", "http://h.example/a", "http://h.example/a?token=1"],
    ["url", "http://h.example/a%3Fb", "http://h.example/a?"],
    ["url", "http://h.example/a%23b", "http://h.example/a#b"],
    ["url", "http://h.example/a", "http://user:secret@h.example/a"],
    ["url", "http://h.example/a", "/a"],
    ["url", "http://h.example/a", "file:///a"],
    ["connections", L.connections, L.connections + 1],
    ["status", 599, 600],
    ["range", { start: 5, end: 5 }, { start: 6, end: 5 }],
    ["sha256", "0123456789abcdef".repeat(4), "0123456789ABCDEF".repeat(4)],
    ["sha256", null, text(63)],
    ["generationSize", 256, 257],
    ["generationSize", 1, 0],
    ["windowPackets", 65_536, 65_537],
    ["symbolBytes", 65_536, 65_537],
    ["comment", text(L.commentChars), text(L.commentChars + 1)],
    ["error.kind", text(L.kindChars), text(L.kindChars + 1)],
    ["error.message", text(L.messageChars), text(L.messageChars + 1)],
    ["fallback.message", text(L.messageChars), text(L.messageChars + 1)],
    ["proxies.0.id", text(L.idChars), text(L.idChars + 1)],
    ["proxies.0.name", text(L.nameChars), text(L.nameChars + 1)],
    ["proxies.1.error.message", text(L.messageChars), text(L.messageChars + 1)],
    ["proxies.0.state", "failed", "lost"],
    ["proxies", recordOf().proxies.slice(0, 1), "none"],
    [
      "proxies",
      Array(L.proxiesPerRecord).fill(recordOf().proxies[0]),
      Array(L.proxiesPerRecord + 1).fill(recordOf().proxies[0]),
    ],
  ]);

  test("packets that do not add up are refused, with both numbers", () => {
    const fault = faultOf(DownloadRecord.safeParse(withField(recordOf(), "proxies.0.packets", 61)).error as z.ZodError);
    expect(fault.field).toBe("proxies[0].packets");
    expect(fault.message).toContain("got 61, the sum is 60");
  });

  test("an unknown field is refused by name, at any depth", () => {
    const top = faultOf(DownloadRecord.safeParse({ ...recordOf(), cookie: "x" }).error as z.ZodError);
    expect(top).toEqual({ kind: "badField", field: "cookie", message: "cookie: unknown field" });
    const deep = faultOf(DownloadRecord.safeParse(withField(recordOf(), "proxies.1.address", "x")).error as z.ZodError);
    expect(deep.field).toBe("proxies[1].address");
  });

  test("an id has one spelling", () => {
    expect(DownloadRecord.parse(recordOf({ id: "0B8F5A0E-6A1E-4C4E-8B0F-0123456789AB" })).id).toBe(
      "0b8f5a0e-6a1e-4c4e-8b0f-0123456789ab",
    );
  });
});

describe("ErrorReport", () => {
  edges(ErrorReport, errorOf(), [
    ["source", "proxy", "page"],
    ["kind", text(L.kindChars), text(L.kindChars + 1)],
    ["kind", "x", ""],
    ["message", "", text(L.messageChars + 1)],
    ["url", url(L.urlChars), "http://h.example/?q"],
    ["clientId", "0b8f5a0e-6a1e-4c4e-8b0f-0123456789ab", "me"],
    ["atMs", 0, -1],
  ]);
});

describe("batches", () => {
  test("hold one item at least and the limit at most", () => {
    const records = (count: number): boolean =>
      RecordsRequest.safeParse({ records: Array(count).fill(bareRecordOf()) }).success;
    const errors = (count: number): boolean =>
      ErrorsRequest.safeParse({ errors: Array(count).fill(errorOf()) }).success;
    expect([0, 1, L.recordsPerRequest, L.recordsPerRequest + 1].map(records)).toEqual([false, true, true, false]);
    expect([0, 1, L.errorsPerRequest, L.errorsPerRequest + 1].map(errors)).toEqual([false, true, true, false]);
  });

  test("a fault names the item and how many more there are", () => {
    const error = RecordsRequest.safeParse({
      records: [bareRecordOf(), { ...bareRecordOf(), status: -1, netBytes: "x" }],
    }).error as z.ZodError;
    expect(faultOf(error)).toMatchObject({ field: "records[1].status" });
    expect(faultOf(error).message).toContain("(and 1 more)");
    const given = { records: [{ ...bareRecordOf(), status: 600, url: "ftp://secret" }] };
    const shown = RecordsRequest.safeParse(given).error as z.ZodError;
    expect(faultOf(shown, given).message).toMatch(/^records\[0\]\.(status: .*599, got 600|url: .*got ftp)/);
    expect(faultOf(RecordsRequest.safeParse(undefined).error as z.ZodError)).toMatchObject({
      message: "body: Required",
    });
  });
});

test("schema: an error of a kind from another version is taken, and named in its message", () => {
  const error = { kind: "moonEclipsed", message: "No light." };
  const record = DownloadRecord.parse({ ...recordOf(), error, fallback: { ...error, bytes: 3 } });
  expect(record.error).toEqual({ kind: "unknown", message: "moonEclipsed: No light." });
  expect(record.fallback).toEqual({ kind: "unknown", message: "moonEclipsed: No light.", bytes: 3 });
  const long = DownloadRecord.parse({ ...recordOf(), error: { ...error, message: "x".repeat(L.messageChars) } });
  expect(long.error?.message).toHaveLength(L.messageChars);
});
