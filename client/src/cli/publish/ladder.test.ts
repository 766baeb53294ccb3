import { ladderArguments, rungsOf, segmentSeconds } from "./ladder";

describe("ladder", () => {
  test.each([
    [2160, [2160, 1440, 1080, 720]],
    [4320, [2160, 1440, 1080, 720]],
    [1080, [1080, 720, 480, 240]],
    [811, [810, 480, 240]],
    [720, [720, 480, 240]],
    [500, [500, 240]],
    [240, [240]],
    [100, [100]],
    [1, [2]],
  ])("ladder: a film of %i lines", (lines, expected) => {
    expect(rungsOf(lines).map((rung) => rung.lines)).toEqual(expected);
    const rates = rungsOf(lines).map(({ kbitPerSec }) => kbitPerSec);
    expect(rates).toEqual([...rates].sort((one, other) => other - one));
  });

  test("ladder: segments are 4 s, and longer where a publication could not have so many", () => {
    expect([60, 7200, 36_000].map((seconds) => segmentSeconds(seconds, 5))).toEqual([4, 4, 19]);
  });

  test("ladder: without sound there is no track for it", () => {
    const film = { file: "/f", id: "i", ffmpeg: "/ffmpeg", seconds: 9, lines: 480 };
    const words = (hasSound: boolean): string => ladderArguments({ ...film, hasSound }, rungsOf(480), "/out").join(" ");
    expect(words(true)).toContain("id=0,streams=v id=1,streams=a");
    expect(words(false)).not.toMatch(/streams=a|0:a/);
  });
});
