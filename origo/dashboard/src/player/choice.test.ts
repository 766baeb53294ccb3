/** Tests which file the page of a publication plays. */
import { choose } from "./choice";

const pathOf = (...files: [path: string, type: string][]): string | undefined =>
  choose(files.map(([path, type]) => ({ path, type })))?.path;

test("HLS before whole files before DASH, and masters before others", () => {
  expect(pathOf(["video/720.m3u8", "a/b"], ["b.m3u8", "a/b"], ["master.m3u8", "a/b"], ["film.mp4", "video/mp4"])).toBe(
    "master.m3u8",
  );
  expect(pathOf(["film.mp4", "video/mp4"], ["stream.mpd", "application/dash+xml"])).toBe("film.mp4");
  expect(pathOf(["seg.m4s", "video/iso.segment"], ["init.mp4", "video/mp4"], ["x.mpd", "a/b"])).toBe("x.mpd");
  expect(pathOf(["song.mp3", "audio/mpeg"], ["page.html", "text/html"])).toBe("song.mp3");
  expect(pathOf(["page.html", "text/html"])).toBeUndefined();
});
