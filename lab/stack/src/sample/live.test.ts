import path from "node:path";
import { mediaDir } from "./origin";
import { LiveStream, PARTS_PER_SEGMENT, SEGMENT_MS } from "./live";

const stream = new LiveStream(path.join(mediaDir, "cmaf"), 1_000_000);
const decodeTime = (fragment: Buffer): bigint => fragment.readBigUInt64BE(fragment.indexOf("tfdt") + 8);
const sampleCount = (fragment: Buffer): number => fragment.readUInt32BE(fragment.indexOf("trun") + 8);
const mediaOf = (fragment: Buffer): Buffer => fragment.subarray(fragment.indexOf("mdat") + 4);

describe("live stream: segments of one video for ever", () => {
  test("a segment's time goes on where the file begins anew", () => {
    for (const number of [0, 11, 12, 1000])
      expect(decodeTime(stream.segment("1", number))).toBe(BigInt(number) * 24_576n);
    expect(mediaOf(stream.segment("1", 12))).toEqual(mediaOf(stream.segment("1", 0)));
  });

  test.each(["0", "1"])("the parts of a segment of track %s are its samples, bytes and times", (track) => {
    const segment = stream.segment(track, 13);
    const parts = Array.from({ length: PARTS_PER_SEGMENT }, (_, part) => stream.part(track, 13, part));
    expect(parts.map(sampleCount).reduce((sum, count) => sum + count)).toBe(sampleCount(segment));
    expect(Buffer.concat(parts.map(mediaOf))).toEqual(mediaOf(segment));
    expect(parts.map(decodeTime)).toEqual(parts.map((_, part) => 13n * 24_576n + BigInt(part * 3072)));
  });

  test("what is complete grows by a part every quarter of a second", () => {
    expect(stream.completeAt(1_000_000)).toEqual({ segments: 8, parts: 0 });
    expect(stream.completeAt(1_000_249)).toEqual({ segments: 8, parts: 0 });
    expect(stream.completeAt(1_000_250)).toEqual({ segments: 8, parts: 1 });
    expect([stream.waitMs(8, 2, 1_000_000), stream.waitMs(8, 0, 1_000_000), stream.waitMs(0, 0, 1_000_000)]).toEqual([
      500, 0, 0,
    ]);
  });

  test("the playlist slides", () => {
    const at = (segments: number): string => stream.playlist("1", 1_000_000 + segments * SEGMENT_MS);
    expect(at(0)).toContain("#EXT-X-MEDIA-SEQUENCE:0\n");
    expect(at(5)).toContain("#EXT-X-MEDIA-SEQUENCE:5\n");
    expect(at(5).match(/segment-1-\d+/g)).toEqual([5, 6, 7, 8, 9, 10, 11, 12].map((number) => `segment-1-${number}`));
  });

  test("the low-latency playlist names the parts that are there and the next one", () => {
    const text = stream.lowLatencyPlaylist("0", 1_000_000 + 500);
    expect(text).toContain('URI="part-0-8-1.m4s"');
    expect(text).toContain('#EXT-X-PRELOAD-HINT:TYPE=PART,URI="part-0-8-2.m4s"');
  });
});
