import { median } from "../statistics";
import { figuresOf, medianRunOf, verdictOf } from "./rows";
import type { Cost, Figure, Results, Row, Sharing } from "./rows";

const figure = (got: number, better: Figure["better"], floor: number, aim: number): Figure => ({
  what: "",
  got,
  floor,
  aim,
  better,
  unit: "",
});

test("figures: what was not measured is never met", () => {
  for (const better of ["more", "less", "nearOne"] as const)
    expect(verdictOf(figure(NaN, better, 1, 1))).toBe("not measured");
  const nothing: Results = { rows: [], sharing: [], reactions: [], loopback: [], costs: [], hosts: [] };
  expect(new Set(figuresOf(nothing).map(verdictOf))).toEqual(new Set(["not measured"]));
});

test.each([
  [0.89, "more", 0.9, 0.95, "NOT MET"],
  [0.9, "more", 0.9, 0.95, "met"],
  [0.96, "more", 0.9, 0.95, "aim met"],
  [16, "less", 15, 3, "NOT MET"],
  [15, "less", 15, 3, "met"],
  [3, "less", 15, 3, "aim met"],
  [0.49, "nearOne", 2, 1.4, "NOT MET"],
  [2.1, "nearOne", 2, 1.4, "NOT MET"],
  [0.5, "nearOne", 2, 1.4, "met"],
  [1.2, "nearOne", 2, 1.4, "aim met"],
] as const)("figures: %d, %s, floor %d, aim %d: %s", (got, better, floor, aim, verdict) => {
  expect(verdictOf(figure(got, better, floor, aim))).toBe(verdict);
});

test("figures: a cold download is compared without its set-up, which is what its first packet waits beyond a warm one's", () => {
  const row: Row = {
    set: "single",
    transport: "webtransport",
    receiver: "node",
    rateBytesPerSec: 896_000,
    rttMs: 40,
    loss: 0,
    state: "warm",
    bytes: 1_500_000,
    proxies: 1,
    runs: 1,
    linkShare: 0.9,
    completionSec: 2,
    firstPacketMs: 50,
    inVain: 0,
    duplicate: 0,
  };
  const rows: Row[] = [row, { ...row, state: "cold", completionSec: 2.35, firstPacketMs: 200 }];
  const figures = figuresOf({ rows, sharing: [], reactions: [], loopback: [], costs: [], hosts: [] });
  expect(figures.find(({ what }) => what.startsWith("1.5 MB, cold") && what.endsWith("WebTransport"))!.got).toBeCloseTo(
    1.1,
    10,
  );
  expect(figures.find(({ what }) => what.startsWith("set-up") && what.endsWith("WebTransport"))!.got).toBe(5);
});

test("figures: what a sender costs is measured by nginx's cost for as many bytes, medians of both", () => {
  const cost = (sender: Cost["sender"], bytes: number, cpuSec: number): Cost => ({ sender, bytes, cpuSec, seconds: 1 });
  const costs = [
    cost("webtransport", 1e9, 6),
    cost("webtransport", 5e8, 3.5),
    cost("webtransport", 1e9, 90),
    cost("webrtc", 1e9, 50),
    cost("nginx", 2e9, 2),
  ];
  expect(
    figuresOf({ rows: [], sharing: [], reactions: [], loopback: [], costs, hosts: [] }).find(({ what }) =>
      what.startsWith("processor time"),
    )!.got,
  ).toBeCloseTo(7, 10);
});

test("figures: beside TCP the median run of each crowd counts, and Cubic in our place is no figure", () => {
  const run = (ours: number, queueProducts: number, transport: Sharing["transport"] = "webtransport"): Sharing => ({
    transport,
    rivals: "cubic",
    queueProducts,
    seconds: 60,
    ourFlows: 1,
    theirFlows: 1,
    ourBytesPerSec: ours,
    theirBytesPerSec: 100,
    ourLossShare: 0,
    queueMost: 1,
    queueMean: 1,
    history: [],
  });
  const runs = [run(90, 1), run(1, 2.5), run(40, 1), run(1000, 1, "cubic"), run(300, 1)] as const;
  const figures = figuresOf({ rows: [], sharing: [...runs], reactions: [], loopback: [], costs: [], hosts: [] }).filter(
    ({ what }) => what.includes("beside 1 of cubic"),
  );
  expect(figures.map(({ got }) => got)).toEqual([0.9, 0.01]);
  const short = figuresOf({
    rows: [],
    sharing: [{ ...runs[0], seconds: 10 }],
    reactions: [],
    loopback: [],
    costs: [],
    hosts: [],
  }).find(({ what }) => what.includes("beside 1 of cubic"));
  expect([...figures.map(verdictOf), verdictOf(short!)]).toEqual(["aim met", "NOT MET", "too short"]);
  expect(medianRunOf([runs[0], runs[2], runs[4]])).toBe(runs[0]);
});

test("median: of nothing there is none", () => {
  expect(median([])).toBeNaN();
  expect(median([3, 1, 2])).toBe(2);
  expect(median([4, 1, 2, 3])).toBe(2.5);
});
