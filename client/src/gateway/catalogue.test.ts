/** What the gateway knows of addresses: two videos in one folder stay apart. */
import { Activity } from "./activity";
import { Catalogue } from "./catalogue";

const at = (path: string): URL => new URL(path, "https://example.org/v/");

test("segments of two playlists in one folder belong each to its own", () => {
  const catalogue = new Catalogue();
  for (const name of ["a", "b"]) {
    catalogue.noteSmall(at(`${name}-720.m3u8`), at(`${name}.m3u8`));
    catalogue.noteSegment(at(`${name}-1.ts?t=1`), at(`${name}-720.m3u8`));
  }
  expect(["a-1.ts?t=1", "b-1.ts?t=1"].map((path) => catalogue.rootsOf(at(path))[0])).toEqual([
    at("a.m3u8").href,
    at("b.m3u8").href,
  ]);
  // A later address in the same folder is a segment, too.
  expect(catalogue.kindOf(at("a-2.ts"))).toBe("segment");
});

test("segments of two manifests in one folder belong each to its own", () => {
  const catalogue = new Catalogue();
  for (const name of ["a", "ab", "b"]) catalogue.noteTemplate(at(`${name}-$Number$.m4s`), at(`${name}.mpd`));
  expect(["a-1.m4s", "ab-1.m4s", "b-1.m4s"].map((path) => catalogue.rootsOf(at(path))[0])).toEqual(
    ["a.mpd", "ab.mpd", "b.mpd"].map((path) => at(path).href),
  );
  expect(catalogue.kindOf(at("deeper/c.m4s"))).toBe("segment");
});

test("what two playlists name belongs to both, and each player's row is the one that it opened", () => {
  const catalogue = new Catalogue();
  const activity = new Activity(() => 0);
  const open = (path: string, player: string) => activity.begin(at(path), catalogue.rootsOf(at(path)), player);
  const readMaster = (name: string, player: string): void => {
    open(name, player);
    catalogue.noteSmall(at("shared.m3u8"), at(name));
    open("shared.m3u8", player);
    catalogue.noteSegment(at("1.ts"), at("shared.m3u8"));
  };
  readMaster("a.m3u8", "VLC");
  readMaster("b.m3u8", "mpv");
  open("1.ts", "VLC").count(100);
  open("1.ts", "mpv").count(10);
  expect(catalogue.rootsOf(at("1.ts"))).toEqual([at("b.m3u8").href, at("a.m3u8").href]);
  expect(activity.plays().map(({ player, root, directBytes }) => [player, root, directBytes])).toEqual([
    ["mpv", at("b.m3u8").href, 10],
    ["VLC", at("a.m3u8").href, 100],
  ]);
  // A player that opens the other one plays that from then on.
  readMaster("b.m3u8", "VLC");
  open("1.ts", "VLC").count(1);
  expect(activity.plays()[0]).toMatchObject({ player: "VLC", root: at("b.m3u8").href, directBytes: 1 });
});
