import { concatList, muxArguments } from "./ffmpeg";

const noList = (): string => "/p/list";

test("one track of one stretch: its picture and its sound, and no other format than media is opened", () => {
  const words = muxArguments({ tracks: [{ files: ["/p/a"] }], subtitles: [], output: "/p/film.mkv" }, noList).join(" ");
  expect(words).toContain("-protocol_whitelist file -format_whitelist");
  expect(words).toContain("-i file:/p/a -map 0:v? -map 0:a? -c copy");
  expect(words).toMatch(/-f matroska file:\/p\/film.mkv$/);
});

test("picture and sound apart keep their clock; subtitles become what the container has", () => {
  const tracks = [{ files: ["/p/v"] }, { files: ["/p/a"], language: "de-AT" }];
  const subtitles = [{ files: ["/p/s"], language: "fi", label: "Suomi" }];
  const words = muxArguments({ tracks, subtitles, output: "/p/film.mp4" }, noList).join(" ");
  expect(words).toContain("-copyts");
  expect(words).toContain("-map 0:v -map 1:a -map 2:s -c copy -c:s mov_text");
  expect(words).toContain("-metadata:s:a:0 language=deu -metadata:s:s:0 language=fin -metadata:s:s:0 title=Suomi");
});

test("the picture's own sound is the first of several", () => {
  const tracks = [
    { files: ["/p/v"], ownSound: { language: "en" } },
    { files: ["/p/a"], language: "de" },
  ];
  const words = muxArguments({ tracks, subtitles: [], output: "/p/film.mp4" }, noList).join(" ");
  expect(words).toContain("-map 0:v -map 0:a:0 -map 1:a -c copy");
  expect(words).toContain("-metadata:s:a:0 language=eng -metadata:s:a:1 language=deu");
});

test("several stretches are a list, in which names are quoted", () => {
  const words = muxArguments({ tracks: [{ files: ["/p/1", "/p/2"] }], subtitles: [], output: "f.mp4" }, noList);
  expect(words.join(" ")).toContain("-f concat -safe 0 -i file:/p/list");
  expect(concatList(["/p/it's"])).toBe("ffconcat version 1.0\nfile '/p/it'\\''s'\n");
});
