import { PATIENCE_MS_MAX, PATIENCE_MS_MIN, patienceMs, type BufferedVideo } from "./patience";

const video = (currentTime: number, ranges: [number, number][], more: Partial<BufferedVideo> = {}): BufferedVideo => {
  const buffered = ranges.map(([startSec, endSec]) => ({ startSec, endSec }));
  return { buffered, currentTime, ended: false, playbackRate: 1, ...more };
};

describe("patience: half of the buffered time", () => {
  test.each<[string, BufferedVideo[], number]>([
    ["10 s ahead", [video(5, [[0, 15]])], 5000],
    ["10 s ahead at twice the speed", [video(5, [[0, 19]], { playbackRate: 2 })], 3500],
    ["an empty buffer", [video(0, [])], PATIENCE_MS_MIN],
    [
      "a gap at the playhead",
      [
        video(5, [
          [0, 4],
          [6, 60],
        ]),
      ],
      PATIENCE_MS_MIN,
    ],
    ["a minute", [video(0, [[0, 60]])], PATIENCE_MS_MAX],
    ["the shorter of two buffers", [video(0, [[0, 60]]), video(0, [[0, 8]])], 4000],
    ["an ended video does not count", [video(24, [[0, 24]], { ended: true })], PATIENCE_MS_MAX],
    ["no video", [], PATIENCE_MS_MAX],
    ["a speed of 0", [video(0, [[0, 9]], { playbackRate: 0 })], 4500],
  ])("%s", (_name, videos, expected) => expect(patienceMs(videos)).toBe(expected));
});
