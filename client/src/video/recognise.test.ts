/** Which answers are playlists. */
import { formatOfContent, formatOfType } from "./recognise";

test.each([
  ["#EXTM3U\n", "hls"],
  ["#EXTM3U", "hls"],
  ["\uFEFF\r\n#EXTM3U\r\n", "hls"],
  ["#EXTM3U8", undefined],
  ["<MPD>", "dash"],
  ['\uFEFF<?xml version="1.0"?>\n<!-- a - b -- c --><!DOCTYPE x>\n<!----><mpd:MPD xmlns="a">', "dash"],
  ["<MPDX>", undefined],
  ["<html><MPD>", undefined],
  ["<!-- <MPD> -->", undefined],
  ["", undefined],
])("content %j is %s", (text, format) => expect(formatOfContent(text)).toBe(format));

test.each([
  ["application/vnd.apple.mpegurl; charset=utf-8", "hls"],
  ["application/x-mpegURL", "hls"],
  ["audio/mpegurl", "hls"],
  ["application/dash+xml", "dash"],
  ["video/vnd.mpeg.dash.mpd", "dash"],
  ["video/mp4", undefined],
  ["application/xml", undefined],
  [null, undefined],
])("type %j is %s", (type, format) => expect(formatOfType(type)).toBe(format));

test("a text that is made to be slow is not", () => {
  for (const text of ["<!-- -->", "<!--", "<!---", "<?x?> ", " <!DOCTYPE>", "<?"])
    expect(formatOfContent(`${text.repeat(20_000)}<x`)).toBeUndefined();
});
