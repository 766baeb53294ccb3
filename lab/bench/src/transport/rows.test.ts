import { verdictOf } from "../kit/verdict";
import { figuresOf, medianRunOf } from "./rows";
import type { Cost, Results, Row, Sharing } from "./rows";

test("figures: a cold download is compared with a warm one without its set-up", () => {
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

test("figures: a bench that measured nothing has reached nothing", () => {
  const nothing: Results = { rows: [], sharing: [], reactions: [], loopback: [], costs: [], hosts: [] };
  expect(new Set(figuresOf(nothing).map(verdictOf))).toEqual(new Set(["not measured"]));
});
