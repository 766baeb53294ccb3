/** The campaign without links: boxes, order, statistics and report. */
import { parseScenario } from "@tributary/lab-links";
import { boxesOf, linksOf, makeBox, scenarioOf, type Box } from "./boxes";
import { figureTable, isMet } from "../kit/verdict";
import { picturesOf } from "./pictures";
import { figuresToReach, lossesOf } from "./report";
import { calmSamples, goodputOf, rowsOf, visitsByBox } from "./rows";
import type { Sample } from "./rows";
import { expectedSeconds, Room, setsOf, visitsDone } from "./run";

const VISITS = { node: 2, chromium: 2, aria2: 2 };
const SIX = [896, 896, 896, 896, 896, 896];

function sampleOf(box: string, visit: number, completionMs: number, fields: Partial<Sample> = {}): Sample {
  return {
    box,
    visit,
    session: "warm",
    ok: true,
    fellBack: false,
    completionMs,
    firstByteMs: 60,
    netBytes: 1_500_000,
    grossBytes: 2_000_000,
    linkBytesPerSec: 5_376_000,
    idleShare: 0.5,
    lateUs: 50,
    clientCpuMs: 10,
    ...fields,
  };
}

test.each([true, false])(
  "campaign: every box has a name of its own, links that come up, and an end (quick: %s)",
  (quick) => {
    const boxes = boxesOf(quick);
    expect(new Set(boxes.map(({ id }) => id)).size).toBe(boxes.length);
    const sets = setsOf(boxes);
    expect(sets.flat()).toHaveLength(boxes.length);
    for (const set of sets) {
      const { links } = set[0]!;
      expect(set.filter((box) => box.links.id !== links.id)).toEqual([]);
      expect(parseScenario(scenarioOf(links)).hosts).toHaveLength(links.ratesKB.length + 3);
    }
    for (const { connections, links, visits } of boxes)
      expect([connections <= links.ratesKB.length, visits > 0]).toEqual([true, true]);
    expect(expectedSeconds(boxes, [1])).toBeLessThan(quick ? 900 : 86_400 * 3);
  },
);

test("campaign: each box has 50 visits in Node and aria2, and 30 in Chromium", () => {
  const visits = new Set(boxesOf(false).map((box) => `${box.runner} ${box.visits}`));
  expect(visits).toEqual(new Set(["node 50", "aria2 50", "chromium 30"]));
});

test("campaign: downloads run side by side while there is room, in order; a heavy one runs alone", async () => {
  const weights = { a: 2, b: 3, c: 1, huge: 9, d: 4 };
  const room = new Room(4);
  const events: string[] = [];
  const work = async (name: string): Promise<void> => {
    events.push(`+${name}`);
    await new Promise((resolve) => setImmediate(resolve));
    events.push(`-${name}`);
    if (name === "b") throw new Error("the links of b are gone");
  };
  const ended = await Promise.allSettled(
    Object.entries(weights).map(([name, weight]) => room.hold(weight, () => work(name))),
  );
  expect(events.join(" ")).toBe("+a -a +b +c -b -c +huge -huge +d -d");
  expect(ended.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled", "fulfilled"]);
});

test("campaign: the room follows what the machine has to spare, within limits", () => {
  const room = new Room(100);
  const after = (idleShare: number, visits: number): number => {
    for (let visit = 0; visit < visits; visit++) room.adjust(idleShare);
    return room.size;
  };
  expect([after(0.3, 9), after(0.1, 1), after(0.1, 99), after(0.9, 999)]).toEqual([100, 98, 50, 200]);
});

test("campaign: a download on a busy machine is half a visit, and counts only if no other does", () => {
  const [box, other] = boxesOf(true) as [Box, Box];
  const [calm, busy] = [
    (visit: number) => sampleOf(box.id, visit, 500),
    (visit: number) => sampleOf(box.id, visit, 600, { idleShare: 0.1 }),
  ];
  expect(calmSamples([calm(0), busy(1), calm(2)]).map(({ visit }) => visit)).toEqual([0, 2]);
  expect(calmSamples([busy(1), busy(2)]).map(({ visit }) => visit)).toEqual([1, 2]);
  const done = visitsByBox([calm(0), busy(1), busy(1), busy(2)]);
  expect([
    done.get(box.id),
    visitsDone([{ ...box, visits: 2 }, other], done),
    visitsDone([{ ...box, visits: 1 }], done),
  ]).toEqual([2, 2, 1]);
});

test("campaign: a row is of one kind of sessions; a failed download counts only as failed", () => {
  const box = makeBox(["11"], VISITS, { links: linksOf(SIX), mode: "coded" });
  const samples = [
    sampleOf(box.id, 0, 500),
    sampleOf(box.id, 1, 1000),
    sampleOf(box.id, 2, 9000, { ok: false, fellBack: true }),
    sampleOf(box.id, 0, 2000, { session: "new" }),
    sampleOf("another", 0, 1),
  ];
  const [fresh, warm] = rowsOf([box], samples);
  expect(fresh).toMatchObject({ session: "new", n: 1, failed: 0, completionSec: 2 });
  expect(warm).toMatchObject({
    session: "warm",
    n: 2,
    failed: 1,
    fallbacks: 1,
    completionSec: 0.75,
    normalizedGoodput: 0.75,
    goodputBytesPerSec: { q1: 1_875_000, median: 2_250_000, q3: 2_625_000 },
  });
  expect(warm!.linkShare).toBeCloseTo(2_250_000 / 5_376_000);
  expect(goodputOf(samples[0]!)).toBe(3_000_000);
});

test.each([
  [{ idleShare: 0.1, lateUs: 2000 }, false],
  [{ idleShare: 0.09, lateUs: 50 }, true],
  [{ idleShare: 0.5, lateUs: 2001 }, true],
])("campaign: a row whose machine was at %j is limited by it: %s", (load, expected) => {
  const box = makeBox([], VISITS, { links: linksOf(SIX), mode: "coded" });
  expect(rowsOf([box], [sampleOf(box.id, 0, 500, load)])[0]!.hostLimited).toBe(expected);
});

test("campaign: the link share counts the whole time, on new sessions too", () => {
  const box = makeBox(["11"], VISITS, { links: linksOf(SIX), mode: "coded", transport: "webtransport" });
  const rows = rowsOf(
    [box],
    [sampleOf(box.id, 0, 400), sampleOf(box.id, 0, 600, { session: "new", firstByteMs: 160 })],
  );
  const shares = figuresToReach(rows)
    .filter(({ what }) => what.includes("link share"))
    .map(({ what, floor, got }) => [/new|warm/.exec(what)![0], floor, got]);
  expect(shares).toEqual([
    ["warm", 0.75, expect.closeTo(3_750_000 / 5_376_000)],
    ["new", 0.7, expect.closeTo(2_500_000 / 5_376_000)],
  ]);
});

test("campaign: figures pair boxes of the same links, chunk and sessions; losses are named", () => {
  const over = (congestion: "bbr" | "cubic") => linksOf(SIX, { lossPercent: 2, congestion });
  const [coded, split, other] = [
    makeBox(["15"], VISITS, { links: over("bbr"), mode: "coded" }),
    makeBox(["15"], VISITS, { links: over("bbr"), mode: "split-http" }),
    makeBox(["15"], VISITS, { links: over("cubic"), mode: "split-http" }),
  ];
  const samples = [sampleOf(coded.id, 0, 600), sampleOf(split.id, 0, 500), sampleOf(other.id, 0, 5000)];
  const rows = rowsOf([coded, split, other], samples);
  const reached = figuresToReach(rows);
  expect(reached).toMatchObject([
    { floor: 0.4, note: "n 1; limit links" },
    { got: 1.2, floor: 0.95, note: "n 1, 1; limit links" },
  ]);
  expect(reached[0]!.got).toBeCloseTo(2_500_000 / 5_376_000);
  expect(reached.map(isMet)).toEqual([true, false]);
  expect(lossesOf(rows)).toMatch(
    /\| coded over webrtc +\| node +\| warm +\| split-http +\| 1 of 1 +\| 1\.20 +\| 0\.60 \/ 0\.50 +\|/,
  );
  expect(picturesOf([coded, split, other], samples, "m").map(({ name }) => name)).toEqual(["campaign-15"]);
});

test("campaign: a floor that the wire does not allow is told from one that was missed", () => {
  const links = linksOf(SIX, { lossPercent: 2, rttMs: [50] });
  const [coded, split] = [
    makeBox(["15"], VISITS, { links, mode: "coded", transport: "webtransport" }),
    makeBox(["15"], VISITS, { links, mode: "split-http" }),
  ];
  const wireSec = 0.05 + 1.5 / (5.376 * 0.98 * (1088 / 1149));
  const tableWith = (splitMs: number): string =>
    figureTable(figuresToReach(rowsOf([coded, split], [sampleOf(coded.id, 0, 400), sampleOf(split.id, 0, splitMs)])));
  const line = (splitMs: number, got: string, verdict: string): RegExp =>
    new RegExp(
      `time over split-http[^|]*\\| ${got} +\\| 0.95 +\\| ${verdict} +\\| ` +
        `${((1000 * wireSec) / splitMs).toFixed(2)} +\\| n 1, 1;`,
    );
  expect(tableWith(450)).toMatch(line(450, "0.89", "met"));
  expect(tableWith(400)).toMatch(line(400, "1", "NOT MET"));
  expect(tableWith(350)).toMatch(line(350, "1.14", "beyond the wire"));
  const changing = makeBox([], VISITS, { links: linksOf(SIX, { event: { what: "tenth", atMs: 400 } }), mode: "coded" });
  expect(rowsOf([changing], [sampleOf(changing.id, 0, 400)])[0]!.wireSec).toBeNull();
});

test("campaign: a box in two figures has the right place in each", () => {
  const boxes = [
    makeBox(["11", "15"], VISITS, { links: linksOf(SIX), mode: "coded" }),
    makeBox(["11"], VISITS, { links: linksOf(SIX), mode: "direct" }),
  ];
  const pictures = picturesOf(
    boxes,
    boxes.map(({ id }) => sampleOf(id, 0, 500)),
    "m",
  );
  const setupsOf = (name: string): Set<string> =>
    new Set(JSON.stringify(pictures.find((picture) => picture.name === name)).match(/"setup":"[^"]*"/g));
  expect([setupsOf("campaign-11"), setupsOf("campaign-15")]).toEqual([
    new Set(['"setup":"6x896"']),
    new Set(['"setup":"6x896, 0 %"']),
  ]);
});
