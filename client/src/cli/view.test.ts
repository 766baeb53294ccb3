import type { DownloadRecord } from "@tributary/contract/schema";
import type { LiveStats } from "../api";
import { videoLine } from "./video-view";
import { formatBytes, progressLine, summary } from "./view";

const proxy = (name: string, bytes: number) => ({
  id: name,
  name,
  state: "open" as const,
  bytes,
  packets: 1,
  innovative: 1,
  duplicate: 0,
  rttMs: 1,
  lies: 0,
});
const live: LiveStats = {
  proxies: [proxy("p1", 300), proxy("p2", 100)],
  downloads: 1,
  deliveredBytes: 400,
  directBytes: 0,
  fallbacks: 0,
  isOverHttp: false,
  vouched: [],
};

describe("view", () => {
  test.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1024, "1.00 KiB"],
    [10_240, "10.0 KiB"],
    [5 * 1024 ** 2, "5.00 MiB"],
  ])("view: %i bytes read %s", (count, text) => {
    expect(formatBytes(count)).toBe(text);
  });

  test("view: the live line shows the bar, the rate and each proxy's share", () => {
    const line = progressLine({ deliveredBytes: 512, totalBytes: 1024, bytesPerSec: 100, live }, 200);
    expect(line).toBe("[##########..........] 512 B of 1.00 KiB  100 B/s  0:06 left  p1 75 %  p2 25 %");
    expect(progressLine({ deliveredBytes: 0, totalBytes: null, bytesPerSec: 0, live }, 10)).toHaveLength(10);
    expect(progressLine({ deliveredBytes: 0, totalBytes: 0, bytesPerSec: 1, live }, 200)).toContain(
      "[####################]",
    );
  });

  test("view: a share that does not fit is left out as a whole", () => {
    const narrow = (columns: number): string =>
      progressLine({ deliveredBytes: 512, totalBytes: 1024, bytesPerSec: 100, live }, columns);
    const [shorter, longer] = [narrow(200).replace("  p2 25 %", ""), narrow(200)];
    expect([longer.length, longer.length - 1, shorter.length].map(narrow)).toEqual([longer, shorter, shorter]);
  });

  test("view: the line of a video ends with all of its segments", () => {
    const report = { isLive: false, segmentsDone: 4, segmentCount: 4, gaps: 0, doneSec: 8, elapsedMs: 1000, leftMs: 0 };
    const line = (phase: "joining" | "joined"): string =>
      videoLine({ ...report, phase, bytes: 1024, freshBytes: 1024 }, live, 200);
    expect(line("joining")).toBe("[####################] 1.00 KiB  joining");
    expect(line("joined")).toBe(
      "[####################] 4 of 4 segments  1.00 KiB  1.00 KiB/s  0:00 left  p1 75 %  p2 25 %",
    );
  });

  test.each([
    [1000, 0, "--:-- left"],
    [1000, 1, "16:40 left"],
    [10_000, 1, "2:46:40 left"],
    [1e9, 1, "--:-- left"],
    [0, 0, "0:00 left"],
  ])("view: %i bytes at %i bytes a second are %s", (totalBytes, bytesPerSec, text) => {
    expect(progressLine({ deliveredBytes: 0, totalBytes, bytesPerSec, live }, 200)).toContain(` ${text} `);
  });

  test("view: the table names every source, the origin too", () => {
    const counts = { packets: 4, innovative: 3, duplicate: 1, late: 0, rejected: 0, lost: 2 };
    const record: DownloadRecord = {
      id: "i",
      clientId: "c",
      startedAtMs: 0,
      source: "cli",
      url: "http://o/f",
      mode: "coded-mutp",
      connections: 2,
      status: 200,
      netBytes: 900,
      grossBytes: 1000,
      durationMs: 1000,
      firstByteMs: 10,
      serverFetchMs: 1,
      throughputBytesPerSec: 1000,
      goodputBytesPerSec: 900,
      normalizedGoodput: 0.9,
      outcome: "complete",
      fallback: { kind: "stalled", message: "nothing came", bytes: 600 },
      sha256: "ab",
      proxies: [
        { id: "1", name: "p1", bytes: 400, ...counts, rttMs: 12.34, state: "used" },
        { id: "2", bytes: 0, ...counts, rttMs: null, state: "failed", error: { kind: "proxyLost", message: "gone" } },
      ],
    };
    const text = summary(record);
    expect(text).toMatch(/^p1 +400 +40 % +4 +3 +1 +0 +2 +12\.3$/m);
    expect(text).toMatch(/^2 +0 +0 %.* - +proxyLost: gone$/m);
    expect(text).toMatch(/^origin +600 +60 %$/m);
    expect(text).toContain("normalized goodput 0.900");
    expect(text).toContain("fallback to the origin: stalled: nothing came (600 bytes)");
  });
});
