/** The video bench without links: boxes, events of a page, rows and report. */
import { parseScenario } from "@tributary/lab-links";
import { videoBoxes, videoScenario } from "./boxes";
import { seenOf } from "./events";
import type { PlayEvent } from "./events";
import { specificationOf } from "./picture";
import { verdictOf } from "../kit/verdict";
import type { Play } from "./play";
import { figuresOf, lossesOf, problemsOf } from "./report";
import { videoRows } from "./rows";

const LEVELS = [1_000_000, 2_000_000, 4_000_000];
const START: PlayEvent[] = [
  { ms: 800, what: "start" },
  { ms: 900, what: "manifest" },
  { ms: 1050, what: "playlist" },
  { ms: 1900, what: "waiting" },
  { ms: 2000, what: "frame" },
  { ms: 2010, what: "playing" },
];
const at = (ms: number, what: Exclude<PlayEvent["what"], "segment">): PlayEvent => ({ ms, what });

test("video: start-up is from the player's start to the first frame, and waiting before it is no stall", () => {
  expect(seenOf([...START, at(9000, "ended")], LEVELS, 9500)).toMatchObject({
    startUpMs: 1200,
    manifestMs: 100,
    playlistMs: 250,
    openedMs: 2000,
    stalls: 0,
    stalledMs: 0,
    finished: true,
  });
});

test("video: without frames told, playing is the start; without either there was none, and no stall", () => {
  expect(seenOf([at(100, "start"), at(400, "playing")], LEVELS, 500)).toMatchObject({
    startUpMs: 300,
    finished: false,
  });
  expect(seenOf([at(100, "start"), at(200, "waiting")], LEVELS, 500)).toMatchObject({
    startUpMs: null,
    openedMs: null,
    stalls: 0,
    stalledMs: 0,
  });
});

test.each<[string, PlayEvent[], number, number]>([
  ["one that ends, told twice", [at(3000, "waiting"), at(3100, "waiting"), at(3500, "playing")], 1, 500],
  ["two", [at(3000, "waiting"), at(3500, "playing"), at(5000, "waiting"), at(5001, "playing")], 2, 501],
  ["one that the end of the watching ends", [at(9000, "waiting")], 1, 1000],
  ["one that the end of the video ends", [at(9000, "waiting"), at(9200, "ended"), at(9300, "waiting")], 1, 200],
  [
    "a wait in a seek, and one after it",
    [
      at(3000, "seeking"),
      at(3001, "waiting"),
      at(3400, "seeked"),
      at(3401, "playing"),
      at(4000, "waiting"),
      at(4100, "playing"),
    ],
    1,
    100,
  ],
  [
    "one in which the player seeks",
    [at(3000, "waiting"), at(3400, "seeking"), at(3500, "seeked"), at(3600, "playing")],
    1,
    600,
  ],
])("video: stalls: %s", (_name, events, stalls, stalledMs) => {
  expect(seenOf([...START, ...events], LEVELS, 10_000)).toMatchObject({ stalls, stalledMs });
});

test("video: the mean bitrate counts each level by the time of its segments", () => {
  const segments = (
    [
      [0, 0, 2],
      [1, 2, 2],
      [2, 2, 1],
    ] as const
  ).map(([number, level, seconds]): PlayEvent => ({ ms: 2000 + number, what: "segment", number, level, seconds }));
  expect(seenOf([...START, ...segments], LEVELS, 9000)).toMatchObject({
    bitsPerSec: (2 * 1 + 2 * 4 + 4) * 200_000,
    switches: 1,
  });
});

test.each([true, false])(
  "video: every box has a name of its own, links that come up, and an end (quick: %s)",
  (quick) => {
    const boxes = videoBoxes(quick);
    expect(new Set(boxes.map(({ id }) => id)).size).toBe(boxes.length);
    for (const { links } of boxes)
      expect(parseScenario(videoScenario(links)).hosts).toHaveLength(links.proxies.length + 3);
    expect(boxes.reduce((sum, { plays, expectedSec }) => sum + plays * expectedSec, 0)).toBeLessThan(
      quick ? 1800 : 6 * 3600,
    );
  },
);

function playOf(box: string, play: number, fields: Partial<Play> = {}): Play {
  return {
    box,
    play,
    seconds: 60,
    sitting: { date: "2026-01-02", commit: "abc", machine: "m" },
    ok: true,
    problems: [],
    startUpMs: 1000,
    manifestMs: 100,
    playlistMs: 200,
    initMs: 50,
    firstSegmentMs: 600,
    openedMs: 2000,
    stalls: 0,
    stalledMs: 0,
    bitsPerSec: 5e6,
    switches: 1,
    finished: true,
    segments: { got: 30, carried: 29, fellBack: 1, direct: 0, aborted: 0, wrong: 0 },
    segmentBytes: [782, 625_000, 1_250_000],
    normalizedGoodput: 0.9,
    kills: 3,
    idleShare: 0.5,
    startIdleShare: 0.5,
    startWaitShare: 0.25,
    lateUs: 100,
    ...fields,
  };
}

test("video: a row has the plays that ended well, and the segments of all; missed floors are named", () => {
  const boxes = videoBoxes(false);
  const ids = (text: string): string[] => boxes.filter(({ id }) => id.includes(text)).map(({ id }) => id);
  const [direct, , coded] = ids("loss 1 %, bbr") as [string, string, string];
  const killed = ids("one killed").find((id) => id.includes("coded"))!;
  const plays = [
    playOf(direct, 0),
    playOf(coded, 0, { startUpMs: 500 }),
    playOf(coded, 1, { startUpMs: 900, startIdleShare: 0.01, startWaitShare: 0.75 }),
    playOf(coded, 2, { ok: false, startUpMs: 9, problems: ["fell back: x"] }),
    playOf(killed, 0, { stalls: 1, stalledMs: 300 }),
    playOf(killed, 1),
  ];
  const rows = videoRows(boxes, plays);
  expect(rows[1]).toMatchObject({
    n: 2,
    failed: 1,
    startUpSec: { median: 0.7 },
    playsWithoutStall: 2,
    segments: { got: 90, fellBack: 3 },
    hostLimited: false,
    startLimited: false,
    startWaitShare: 0.25,
  });
  expect(figuresOf(rows).map((figure) => [figure.got, figure.floor, verdictOf(figure)])).toEqual([
    [0.7, 0.6, "NOT MET"],
    [1, 0, "NOT MET"],
  ]);
  expect(problemsOf(plays)).toContain("fell back: x");
  const picture = JSON.stringify(specificationOf(boxes, plays, "m"));
  expect(picture).toContain("loss 1 %");
  expect(picture).toContain(JSON.stringify({ who: "direct", size: "512 KB - 1 MB", percent: 100 / 3 }));
});

test("video: coding that starts later, stalls more or plays a lower bitrate is told", () => {
  const boxes = videoBoxes(true).filter(({ links }) => links.id.includes("loss 1 %"));
  const [direct, split, coded] = boxes.map(({ id }) => id) as [string, string, string];
  const plays = [
    playOf(direct, 0),
    playOf(split, 0, { startUpMs: 400, bitsPerSec: 9e6 }),
    playOf(coded, 0, { startUpMs: 500, stalls: 1 }),
  ];
  const text = lossesOf(videoRows(boxes, plays));
  const [besideDirect, besideSplit] = text.split("\n");
  expect(besideDirect).toMatch(/coded stalls more \(1\.00 times in 60 s, 0\.00\) than direct\.$/);
  expect(besideSplit).toMatch(/coded starts later \(0\.50 s, 0\.40 s\), stalls more /);
  expect(besideSplit).toMatch(/, plays a lower bitrate \(5\.0 Mbit\/s, 9\.0\) than split-http\.$/);
});
