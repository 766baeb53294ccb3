/** The checks must notice what is wrong, not only pass what is right. */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import type { DownloadRecord } from "@tributary/contract/schema";
import { carryFaults, formatTable, mediaFetchedByBrowser, originFactorOf, segmentMismatch, totalsOf } from "./verify";

const bytes = Buffer.from("tributary sample bytes");
const sha256 = (data: Buffer): string => createHash("sha256").update(data).digest("hex");
const url = "http://127.0.0.1:7680/media/a.m4s";
const segment = { url, bytes: bytes.length, ms: 1, sha256: sha256(bytes) };

function record(changes: Partial<DownloadRecord> = {}): DownloadRecord {
  const proxy = {
    id: "p",
    bytes: 60,
    packets: 3,
    innovative: 2,
    duplicate: 1,
    late: 0,
    rejected: 0,
    lost: 0,
    rttMs: 1,
    state: "used" as const,
  };
  return {
    id: "00000000-0000-4000-8000-000000000001",
    clientId: "00000000-0000-4000-8000-000000000002",
    startedAtMs: 0,
    source: "extension",
    url,
    mode: "coded-mutp",
    connections: 2,
    status: 200,
    netBytes: 100,
    grossBytes: 125,
    durationMs: 500,
    firstByteMs: 1,
    serverFetchMs: 1,
    throughputBytesPerSec: 250,
    goodputBytesPerSec: 200,
    normalizedGoodput: 0.8,
    outcome: "complete",
    fallback: null,
    sha256: segment.sha256,
    proxies: [
      { ...proxy, name: "proxy-10" },
      { ...proxy, id: "q", name: "proxy-2" },
    ],
    ...changes,
  };
}

describe("segment against file", () => {
  let folder = "";
  beforeAll(() => {
    folder = mkdtempSync(path.join(os.tmpdir(), "tributary-verify-"));
    writeFileSync(path.join(folder, "a.m4s"), bytes);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test("equal bytes pass, whole and in part", () => {
    expect(segmentMismatch(segment, folder)).toBeUndefined();
    const part = bytes.subarray(3, 8);
    expect(segmentMismatch({ ...segment, start: 3, end: 7, bytes: 5, sha256: sha256(part) }, folder)).toBeUndefined();
  });

  test("one byte short, one byte changed, an unknown file: each is named", () => {
    expect(segmentMismatch({ ...segment, bytes: bytes.length - 1 }, folder)).toContain("21 bytes, the file has 22");
    expect(segmentMismatch({ ...segment, sha256: sha256(Buffer.from("x")) }, folder)).toContain("SHA-256");
    expect(segmentMismatch({ ...segment, url: "http://127.0.0.1/media/b.m4s" }, folder)).toContain("no such file");
  });
});

test("the browser's own media requests are found, its playlists and a proxy's requests are not", () => {
  const entry = { atMs: 0, method: "GET", range: null, bytes: 1, status: 200 };
  const own = { ...entry, path: "/media/cmaf/segment-0-001.m4s", userAgent: "Mozilla/5.0 HeadlessChrome" };
  const log = [
    own,
    { ...own, userAgent: "tributary-proxy/0.1" },
    { ...own, path: "/media/cmaf/master.m3u8" },
    { ...own, path: "/hls.html" },
  ];
  expect(mediaFetchedByBrowser(log)).toEqual([own]);
});

describe("segment against Origo's records", () => {
  test("a complete coded download without fallback passes", () => {
    expect(carryFaults([segment], [record()], [], "coded-mutp")).toEqual([]);
  });

  test.each([
    ["no record", []],
    ["another mode", [record({ mode: "direct" })]],
    ["a fallback", [record({ fallback: { kind: "proxiesFailed", message: "no proxy", bytes: 3 } })]],
    ["an unfinished download", [record({ outcome: "failed", sha256: null })]],
    ["another digest", [record({ sha256: "00" })]],
    ["a part instead of the whole", [record({ range: { start: 0, end: 3 } })]],
  ])("%s does not", (_name, records) => {
    expect(carryFaults([segment], records, [], "coded-mutp")[0]).toContain(url);
  });
});

test("totals: sums per proxy in order of name, speeds over the summed durations, a fallback counted", () => {
  const totals = totalsOf([record(), record({ fallback: { kind: "stalled", message: "x", bytes: 1 } })]);
  expect(totals.proxies).toEqual([
    { name: "proxy-2", bytes: 120, packets: 6, innovative: 4, duplicate: 2 },
    { name: "proxy-10", bytes: 120, packets: 6, innovative: 4, duplicate: 2 },
  ]);
  expect(totals).toMatchObject({
    downloads: 2,
    netBytes: 200,
    grossBytes: 250,
    goodputBytesPerSec: 200,
    throughputBytesPerSec: 250,
    normalizedGoodput: 0.8,
    fallbacks: 1,
  });
});

test("totals of nothing are zero, not NaN", () => {
  expect(totalsOf([])).toMatchObject({ goodputBytesPerSec: 0, normalizedGoodput: 0, proxies: [] });
});

test("table: first column left, the others right", () => {
  expect(
    formatTable([
      ["name", "n"],
      ["a", "10"],
    ]),
  ).toBe("name   n\na     10");
});

test("the origin factor counts what proxies read of the downloads' files, and nothing of a browser", () => {
  const entry = {
    atMs: 0,
    method: "GET",
    path: "/media/a.m4s?n=1",
    range: null,
    status: 200,
    userAgent: "tributary-proxy",
  };
  const log = [
    { ...entry, bytes: 100 },
    { ...entry, bytes: 50 },
    { ...entry, bytes: 100, userAgent: "Mozilla/5.0" },
    { ...entry, bytes: 100, path: "/media/b.m4s" },
  ];
  expect(originFactorOf([record()], log)).toBe(1.5);
  expect(originFactorOf([], log)).toBe(0);
});
