import { readFileSync } from "node:fs";
import path from "node:path";
import { box, full, headerOf, u32, u64, uint64, unpack, type Bytes } from "./boxes";
import { Unsupported, fragment, parseMovie, piecesOf, type Movie } from "./mp4";

const file = new Uint8Array(readFileSync(path.join(__dirname, "../../../lab/stack/sample/media/progressive.mp4")));
const view = (bytes: Bytes): DataView<ArrayBuffer> => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
const moovOf = (bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> => {
  const [ftyp, moov] = unpack(bytes.subarray(0, 32 + 17249));
  return bytes.slice(8 + (ftyp?.body.length ?? 0), 16 + (ftyp?.body.length ?? 0) + (moov?.body.length ?? 0));
};
const index = moovOf(file);
const movie = (): Movie => parseMovie(index);

describe("mp4: the index of the sample's progressive file", () => {
  test("names codecs, duration and tracks", () => {
    const { mime, tracks } = movie();
    expect(mime).toMatch(/^video\/mp4; codecs="avc1\.[0-9a-f]{6},mp4a\.40\.2"$/);
    expect(tracks.map(({ isVideo, samples }) => [isVideo, samples.count])).toEqual([
      [true, 576],
      [false, 1126],
    ]);
  });

  test("pieces begin at sync samples, follow one another and use every sample once", () => {
    const made = movie();
    const pieces = piecesOf(made);
    const video = pieces.map(({ spans }) => spans[0]!);
    expect(video.every(({ track, from }) => track.samples.at(from).isSync)).toBe(true);
    expect([video[0]!.from, video.at(-1)!.until]).toEqual([0, 576]);
    expect(video.slice(1).every(({ from }, at) => from === video[at]!.until)).toBe(true);
    expect(pieces.map(({ startSec }) => Math.round(startSec))).toEqual([0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22]);
    expect(pieces.at(-1)!.end).toBeLessThan(file.length);
  });

  test("the initialization segment has both descriptions and no samples", () => {
    const [ftyp, moov] = unpack(movie().init);
    expect([ftyp?.type, moov?.type]).toEqual(["ftyp", "moov"]);
    expect(unpack(moov!.body).map(({ type }) => type)).toEqual(["mvhd", "trak", "trak", "mvex"]);
  });

  test("a fragment has the file's own bytes at the positions that its runs name", () => {
    const made = movie();
    for (const [number, { spans, start, end }] of piecesOf(made).entries()) {
      const bytes = fragment(number + 1, spans, file.slice(start, end + 1), start);
      const [moof, mdat] = unpack(bytes);
      expect([moof?.type, mdat?.type]).toEqual(["moof", "mdat"]);
      const trafs = unpack(moof!.body).filter(({ type }) => type === "traf");
      trafs.forEach(({ body }, at) => {
        const { track, from, until } = spans[at]!;
        const run = view(unpack(body).find(({ type }) => type === "trun")!.body);
        expect(run.getUint32(4)).toBe(until - from);
        let position = run.getUint32(8);
        for (let sample = from; sample < until; sample++) {
          const known = track.samples.at(sample);
          expect(run.getUint32(16 + 16 * (sample - from))).toBe(known.bytes);
          expect(
            Buffer.compare(
              bytes.subarray(position, position + known.bytes),
              file.subarray(known.position, known.position + known.bytes),
            ),
          ).toBe(0);
          position += known.bytes;
        }
      });
    }
  });
});

describe("mp4: files that are left to the browser", () => {
  const changed = (
    type: string,
    change: (at: number, data: DataView<ArrayBuffer>) => void,
  ): Uint8Array<ArrayBuffer> => {
    const copy = index.slice();
    change(Buffer.from(copy).indexOf(type, 0, "latin1"), view(copy));
    return copy;
  };

  test.each<[string, Uint8Array<ArrayBuffer>]>([
    ["a fragmented file", box("moov", ...(unpack(index)[0] ? [index.slice(8), box("mvex")] : []))],
    ["an unknown codec", changed("avc1", (at, data) => data.setUint32(at, 0x656e6376))],
    ["an edit list with two edits", changed("elst", (at, data) => data.setUint32(at + 8, 2))],
    ["a delayed start", changed("elst", (at, data) => data.setInt32(at + 16, -1))],
    ["another speed", changed("elst", (at, data) => data.setInt32(at + 20, 0x20000))],
    ["a file without video", changed("vide", (at, data) => data.setUint32(at, 0x74657874))],
    ["no index", box("free", u32(1))],
  ])("%s", (_name, bytes) => expect(() => parseMovie(bytes)).toThrow(Unsupported));

  test.each<[string, Uint8Array<ArrayBuffer>]>([
    ["more samples than the chunks hold", changed("stsc", (at, data) => data.setUint32(at + 8, 0))],
    ["an absurd number of samples", changed("stsz", (at, data) => data.setUint32(at + 12, 0xffffffff))],
    ["times for fewer samples", changed("stts", (at, data) => data.setUint32(at + 12, 5))],
    ["a box that is cut short", index.slice(0, -10)],
  ])("%s is an error", (_name, bytes) => expect(() => parseMovie(bytes)).toThrow(RangeError));

  test("a changed byte gives a movie or a known error, quickly", () => {
    for (let at = 0; at < index.length; at += 61) {
      const copy = index.slice();
      copy[at] = (copy[at]! ^ 0xff) & 0xff;
      try {
        piecesOf(parseMovie(copy));
      } catch (error) {
        if (!(error instanceof Unsupported) && !(error instanceof RangeError)) throw error;
      }
    }
  });
});

test("boxes: 64-bit sizes, a box up to the end of the file, and bytes that are no box", () => {
  const long = new Uint8Array(16);
  long.set(u32(1));
  long.set(Buffer.from("mdat"), 4);
  view(long).setBigUint64(8, 5_000_000_000n);
  expect(headerOf(long)).toEqual({ type: "mdat", headerBytes: 16, bytes: 5_000_000_000 });
  expect(headerOf(full("mdat", 0, new Uint8Array(8)).fill(0, 0, 4))).toMatchObject({ bytes: Infinity });
  expect(headerOf(new Uint8Array(15))).toBeUndefined();
  expect(() => headerOf(new Uint8Array(16).fill(1))).toThrow(RangeError);
});

test.each([0, 1, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1])("boxes: %d is written and read", (value) =>
  expect([uint64(u64(value), 0), Number(view(u64(value)).getBigUint64(0))]).toEqual([value, value]),
);

test("boxes: a number below zero is written as two's complement", () =>
  expect(Number(view(u64(-5)).getBigInt64(0))).toBe(-5));
