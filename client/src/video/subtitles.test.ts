import { startTicks } from "./start-time";
import { joinSubtitles } from "./subtitles";

const file = (map: string, ...cues: string[]): string => `WEBVTT\n${map}\n\n${cues.join("\n\n")}\n`;

test("files are put on the film's clock, and cues that both repeat are kept once", () => {
  const map = "X-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:00:00:00.000";
  const text = [
    file(map, "1\n00:01.000 --> 00:02.500 align:start\nHello", "00:03.000 --> 00:05.000\nover\nthe edge"),
    file(map, "7\n00:03.000 --> 00:05.000\nover\nthe edge", "01:00:06.000 --> 01:00:07.000\nlate"),
  ].join("");
  expect(joinSubtitles(text, 900_000 - 90_000)).toBe(
    "WEBVTT\n\n00:00:02.000 --> 00:00:03.500 align:start\nHello\n\n00:00:04.000 --> 00:00:06.000\nover\nthe edge\n\n" +
      "01:00:07.000 --> 01:00:08.000\nlate\n",
  );
});

test("the clock of MPEG wraps around", () => {
  const text = file("X-TIMESTAMP-MAP=LOCAL:00:00:10.000,MPEGTS:90000", "00:10.000 --> 00:11.000\na");
  expect(joinSubtitles(text, 2 ** 33 - 90_000)).toContain("00:00:02.000 --> 00:00:03.000");
});

test("without a map times stay; styles stay; notes, CRLF and byte order marks go", () => {
  const text =
    "\uFEFFWEBVTT - title\r\n\r\nSTYLE\r\n::cue{}\r\n\r\nNOTE a --> b\r\n\r\n00:01.000 --> 00:02.000\r\na\r\n";
  expect(joinSubtitles(text, 900_000)).toBe("WEBVTT\n\nSTYLE\n::cue{}\n\n00:00:01.000 --> 00:00:02.000\na\n");
});

test("the start of a transport stream is its first presentation time", () => {
  const packet = Buffer.alloc(188, 0xff);
  // Payload start with an adaptation field of one byte, then a PES header with the time 900,000.
  Buffer.from([0x47, 0x41, 0x00, 0x30, 0x01, 0x00, 0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 5]).copy(packet);
  Buffer.from([0x21, 0x00, 0x37, 0x77, 0x41]).copy(packet, 15);
  expect(startTicks(packet)).toBe(900_000);
  expect(startTicks(Buffer.from("no video at all"))).toBeUndefined();
});
