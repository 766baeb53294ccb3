import { COMPARED_BYTES_MAX, parseToTransport } from "./messages";

const COMPARE = {
  type: "compare",
  id: 1,
  url: "https://a.example/a.mp4",
  range: null,
  head: { status: 200, url: "https://a.example/a.mp4", headers: { "content-type": "video/mp4" } },
  headMs: 20,
};

describe("messages: parsing what a hostile page may send", () => {
  test.each([
    { type: "get", id: 1, url: "https://a.example/a.mp4", range: null, patienceMs: 3000, targets: [] },
    {
      type: "get",
      id: 1,
      url: "https://a.example/a.mp4",
      range: null,
      patienceMs: 3000,
      player: "hls.js",
      targets: ["https://b.example"],
    },
    { type: "get", id: 1, url: "https://a.example/a.mp4", range: { start: 0, end: 0 }, patienceMs: 0, targets: [] },
    { type: "get", id: 1, url: "https://a.example/a.mp4", range: null, cache: "no-store", patienceMs: 1, targets: [] },
    { type: "credit", id: 1, bytes: 10 },
    { type: "abort", id: 0, why: "late" },
    { type: "fetched", id: 1, offset: 0, bytes: 5, status: 200, headMs: 3, outcome: "complete" },
    { type: "ping", token: 3 },
    { type: "direct", bytes: 5 },
    { type: "unchecked", url: "https://a.example/a.mp4", bytes: 5 },
    { type: "limited", url: "https://a.example/a.mp4" },
    COMPARE,
    { type: "site-bytes", id: 1, buffer: new ArrayBuffer(3) },
    { type: "site-end", id: 1, isWhole: true },
  ])("%j is accepted", (message) => expect(parseToTransport(message)).toEqual(message));

  test("unknown fields are dropped", () => {
    expect(parseToTransport({ type: "abort", id: 1, pageOrigin: "https://bank.example" })).toEqual({
      type: "abort",
      id: 1,
      why: "abandoned",
    });
  });

  test.each([
    null,
    undefined,
    7,
    "get",
    [],
    {},
    { type: "settings" },
    { type: "get" },
    { type: "get", id: -1, url: "x", range: null, patienceMs: 1 },
    { type: "get", id: 1.5, url: "x", range: null, patienceMs: 1 },
    { type: "get", id: 1, url: 5, range: null, patienceMs: 1 },
    { type: "get", id: 1, url: "x", patienceMs: 1 },
    { type: "get", id: 1, url: "x", range: { start: 5, end: 4 }, patienceMs: 1 },
    { type: "get", id: 1, url: "x", range: { start: "0", end: 4 }, patienceMs: 1 },
    { type: "get", id: 1, url: "x", range: { start: 0, end: Infinity }, patienceMs: 1 },
    { type: "get", id: 1, url: "x", range: null, cache: "force-cache", patienceMs: 1 },
    { type: "credit", id: 1, bytes: -1 },
    { type: "credit", id: 1, bytes: NaN },
    { type: "get", id: 1, url: "x", range: null },
    { type: "get", id: 1, url: "x", range: null, patienceMs: -1 },
    { type: "get", id: 1, url: "x", range: null, patienceMs: 1, targets: [5] },
    { type: "get", id: 1, url: "x", range: null, patienceMs: 1, targets: Array(33).fill("https://a.example") },
    { type: "abort", id: "1" },
    { type: "fetched", id: 1, offset: 0, bytes: -1, status: 200, headMs: 3, outcome: "complete" },
    { type: "fetched", id: 1, offset: 0, bytes: 2 ** 50, status: 200, headMs: 3, outcome: "complete" },
    { type: "fetched", id: 1, offset: 0, bytes: 5, status: 600, headMs: 3, outcome: "complete" },
    { type: "fetched", id: 1, offset: 0, bytes: 5, status: 200, headMs: 3, outcome: "fine" },
    { type: "ping", token: {} },
    { type: "direct", bytes: 1e300 },
    { type: "unchecked", url: null, bytes: 5 },
    { type: "unchecked", url: "https://a.example/a.mp4", bytes: -1 },
    { type: "limited", url: null },
    { ...COMPARE, headMs: -1 },
    { ...COMPARE, range: {} },
    { ...COMPARE, head: null },
    { ...COMPARE, head: { ...COMPARE.head, url: "nowhere" } },
    { ...COMPARE, head: { ...COMPARE.head, headers: { a: 1 } } },
    { ...COMPARE, head: { ...COMPARE.head, headers: { a: "x".repeat(8193) } } },
    {
      ...COMPARE,
      head: { ...COMPARE.head, headers: Object.fromEntries(Array.from({ length: 101 }, (_, at) => [at, ""])) },
    },
    { type: "site-bytes", id: 1, buffer: new Uint8Array(3) },
    { type: "site-bytes", id: 1, buffer: new ArrayBuffer(COMPARED_BYTES_MAX + 1) },
    { type: "site-end", id: -1, isWhole: true },
  ])("%j is refused", (message) => expect(parseToTransport(message).type).toBe("invalid"));
});
