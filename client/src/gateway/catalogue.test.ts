/** What the gateway knows of addresses: two videos in one folder stay apart. */
import { Catalogue } from "./catalogue";

const at = (path: string): URL => new URL(path, "https://example.org/v/");

test("segments of two playlists in one folder belong each to its own", () => {
  const catalogue = new Catalogue();
  for (const name of ["a", "b"]) {
    catalogue.noteSmall(at(`${name}-720.m3u8`), at(`${name}.m3u8`));
    catalogue.noteSegment(at(`${name}-1.ts?t=1`), at(`${name}-720.m3u8`));
  }
  expect(["a-1.ts?t=1", "b-1.ts?t=1"].map((path) => catalogue.rootOf(at(path)))).toEqual([
    at("a.m3u8").href,
    at("b.m3u8").href,
  ]);
  // A later address in the same folder is a segment, too.
  expect(catalogue.kindOf(at("a-2.ts"))).toBe("segment");
});

test("segments of two manifests in one folder belong each to its own", () => {
  const catalogue = new Catalogue();
  for (const name of ["a", "ab", "b"]) catalogue.noteTemplate(at(`${name}-$Number$.m4s`), at(`${name}.mpd`));
  expect(["a-1.m4s", "ab-1.m4s", "b-1.m4s"].map((path) => catalogue.rootOf(at(path)))).toEqual(
    ["a.mpd", "ab.mpd", "b.mpd"].map((path) => at(path).href),
  );
  expect(catalogue.kindOf(at("deeper/c.m4s"))).toBe("segment");
});
