/** The long video: its segments have the bitrates that its playlists announce. */
import path from "node:path";
import { LONG_LEVELS, LONG_SEGMENT_SEC, LongVideo, longManifest, longMaster, longPlaylist } from "./long";
import { mediaDir } from "./origin";

const video = new LongVideo(path.join(mediaDir, "cmaf"));

/** Kinds and sizes of the boxes of a file, in order. */
function boxesOf(file: Buffer): [kind: string, bytes: number][] {
  const found: [string, number][] = [];
  for (let at = 0; at < file.length; at += file.readUInt32BE(at))
    found.push([file.toString("latin1", at + 4, at + 8), file.readUInt32BE(at)]);
  return found;
}

test.each([0, 1, 2])("long video: every segment of track %d has exactly its bitrate, in whole boxes", (track) => {
  for (const number of [0, 1, 11, 29]) {
    const segment = video.segment(track, number);
    expect((segment.length * 8) / LONG_SEGMENT_SEC).toBe(LONG_LEVELS[track]!.bitsPerSec);
    const boxes = boxesOf(segment);
    expect(boxes.map(([kind]) => kind)).toEqual(["moof", "mdat", "free"]);
    expect(boxes.reduce((sum, [, bytes]) => sum + bytes, 0)).toBe(segment.length);
    expect(segment.readBigUInt64BE(segment.indexOf("tfdt") + 8)).toBe(BigInt(number) * 24_576n);
  }
});

test("long video: playlists name every level, and every segment of the time asked for", () => {
  expect(longMaster().match(/^media-\d\.m3u8$/gm)).toEqual(["media-0.m3u8", "media-1.m3u8", "media-2.m3u8"]);
  expect(longPlaylist(1, 60).match(/segment-1-\d+/g)).toHaveLength(30);
  expect(longPlaylist(1, 5).match(/segment-1-\d+/g)).toHaveLength(3);
  expect(longPlaylist(1, 5)).toMatch(/#EXT-X-ENDLIST\n$/);
  expect(longManifest(60)).toContain('mediaPresentationDuration="PT60S"');
  expect(longManifest(60).match(/<Representation id="\d"/g)).toHaveLength(LONG_LEVELS.length);
});
