import { nameOf, PROXY_SETTINGS } from "@tributary/contract/settings";
import { limitsOf, narrowed } from "./control";

const OWN = limitsOf({
  RATE_BYTES_PER_SEC: 896_000,
  CACHE_BYTES: 1000,
  MAX_SESSIONS: 10,
  REQUIRE_TOKEN: false,
  LIBRARY_BYTES: 2 ** 30,
  CODER_BYTES: 2 ** 26,
  CODES_ANEW: false,
});

test("control: without settings a proxy keeps the limits that it was started with", () => {
  expect(narrowed(OWN, {})).toEqual(OWN);
});

test.each([
  ["rateBytesPerSec", 500_000, 500_000],
  ["rateBytesPerSec", 900_000, 896_000],
  ["rateBytesPerSec", 0, 896_000],
  ["cacheBytes", 999, 999],
  ["cacheBytes", 1001, 1000],
  ["cacheBytes", 0, 0],
  ["sessionsMax", 9, 9],
  ["sessionsMax", 11, 10],
  ["httpConnectionsMax", 5000, 1024],
  ["cacheKeepMs", 0, 0],
  ["sessionsMax", "many", 10],
] as const)("control: %s %j from Origo becomes %i", (name, value, expected) => {
  expect(narrowed(OWN, { [`proxy.${name}`]: value })[name]).toBe(expected);
});

test("control: Origo can set a rate for a proxy without one", () => {
  expect(narrowed({ ...OWN, rateBytesPerSec: 0 }, { "proxy.rateBytesPerSec": 7 }).rateBytesPerSec).toBe(7);
  expect(narrowed({ ...OWN, rateBytesPerSec: 0 }, {}).rateBytesPerSec).toBe(0);
});

test("control: Origo can require tokens, but cannot remove the requirement", () => {
  expect(narrowed(OWN, { "proxy.requireToken": true }).requireToken).toBe(true);
  expect(narrowed({ ...OWN, requireToken: true }, { "proxy.requireToken": false }).requireToken).toBe(true);
});

test("control: each setting for proxies changes a limit, and its default is the proxy's own limit", () => {
  const rows = Object.entries(PROXY_SETTINGS);
  expect(rows.map(([key]) => nameOf(key)).sort()).toEqual(Object.keys(OWN).sort());
  for (const [key, row] of rows) {
    const name = nameOf(key) as keyof typeof OWN;
    const value = row.type === "boolean" ? !row.default : name === "rateBytesPerSec" ? 7 : row.min;
    expect([key, narrowed(OWN, { [key]: value })[name]]).toEqual([key, value]);
    expect(narrowed(OWN, { [key]: row.default })).toEqual(OWN);
  }
});

test("control: a value that the table does not allow is ignored", () => {
  expect(narrowed(OWN, { "proxy.heartbeatMs": 0, "proxy.sessionsMax": 1.5, "proxy.nothing": 1 })).toEqual(OWN);
});
