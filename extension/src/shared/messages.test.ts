import { parseToTransport } from "./messages";

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
    { type: "abort", id: 0 },
    { type: "ping", token: 3 },
    { type: "direct", bytes: 5 },
    { type: "wrong", url: "https://a.example/a.mp4" },
  ])("%j is accepted", (message) => expect(parseToTransport(message)).toEqual(message));

  test("unknown fields are dropped", () => {
    expect(parseToTransport({ type: "abort", id: 1, pageOrigin: "https://bank.example" })).toEqual({
      type: "abort",
      id: 1,
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
    { type: "ping", token: {} },
    { type: "direct", bytes: 1e300 },
    { type: "wrong", url: null },
  ])("%j is refused", (message) => expect(parseToTransport(message).type).toBe("invalid"));
});
