/** `--once` finds and names every kind of failure. */
import type { SamplePageState } from "./browser";
import { judge } from "./once";
import { COMPARED_MAX } from "./verify";

const page: SamplePageState = {
  player: "hls.js",
  segments: [],
  errors: [],
  currentTime: 14,
  bufferedSeconds: 3,
  ended: false,
};
const faultsOf = (changed: Partial<SamplePageState>, log: Parameters<typeof judge>[2] = []): string[] =>
  judge({ ...page, ...changed }, [], log).flatMap((check) => check.faults);
const unseen = { url: "http://127.0.0.1:7680/media/cmaf/nothing.m4s", bytes: 1, ms: 1, sha256: "00" };

test("a page that got no segment fails for that alone", () => {
  expect(faultsOf({})).toEqual(["expected at least 8"]);
});

test("a video that stood still, a player's error, a wrong segment and a segment that the browser fetched", () => {
  expect(faultsOf({ currentTime: 2 })).toContain("expected at least 10 s");
  expect(faultsOf({ errors: ["hls.js: fragLoadError"] })).toContain("hls.js: fragLoadError");
  const faults = faultsOf({ segments: Array.from({ length: 8 }, () => unseen) });
  expect(faults.filter((fault) => fault.includes("no such file"))).toHaveLength(8);
  expect(faults.filter((fault) => fault.includes("no record"))).toHaveLength(8);
});

test("segments that the browser fetched itself: before the first that the proxies brought, and a few after it", () => {
  const entry = { atMs: 0, method: "GET", path: "/media/cmaf/own.m4s", range: null, bytes: 1, status: 200 };
  const log = [{ ...entry, userAgent: "Mozilla/5.0" }];
  const carried = Array.from({ length: COMPARED_MAX }, () => unseen);
  const own = carried.map(() => ({ ...unseen, url: "http://127.0.0.1:7680/media/cmaf/own.m4s" }));
  const counts = (segments: SamplePageState["segments"]): number[] => {
    const faults = faultsOf({ segments }, log);
    return [/own.m4s: Origo/, /a third/].map((text) => faults.filter((fault) => text.test(fault)).length);
  };
  expect(counts([...own, ...carried, ...own])).toEqual([0, 0]);
  expect(counts([...carried, ...own, own[0]!])).toEqual([1, 0]);
  expect(counts([...own, ...own, own[0]!, ...carried])).toEqual([0, 1]);
  expect(counts(own)).toEqual([0, 1]);
});
