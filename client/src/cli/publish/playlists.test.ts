import { escaped, mainFile, outside } from "./playlists";

const has = (path: string): boolean => ["hd/1.ts", "hd/key", "a b.ts"].includes(path);

describe("playlists", () => {
  test.each([
    ["hd/i.m3u8", '#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI="key"\n1.ts\n../a%20b.ts?x=1\r\n', []],
    [
      "hd/i.m3u8",
      "#EXTM3U\nhttps://other/1.ts\n/1.ts\n../../1.ts\n2.ts\n",
      ["https://other/1.ts", "/1.ts", "../../1.ts", "2.ts"],
    ],
    ["i.m3u8", '#EXT-X-MAP:URI="//other/init"\ndata:text/plain,x\n', ["//other/init"]],
    ["i.mpd", '<BaseURL>hd/</BaseURL><S media="$Number$.m4s" initialization="i.mp4"/>', []],
    ["i.mpd", "<BaseURL>https://other/</BaseURL>", ["https://other/"]],
  ])("playlists: what leads out of %s (%j)", (path, text, expected) => {
    expect(outside({ path, text }, has)).toEqual(expected);
  });

  test.each([
    [["a.mp4", "x/master.m3u8", "x/index.m3u8"], "x/master.m3u8"],
    [["a.m3u8", "a.mpd"], "a.mpd"],
    [["b/c.mp4", "d.mp4", "e.txt"], "d.mp4"],
    [["a.txt", "b.mp3"], "b.mp3"],
    [["readme.txt"], "readme.txt"],
  ])("playlists: of %j a player opens %s", (paths, expected) => {
    const files = paths.map((path) => ({
      path,
      type: /mp4$/.test(path) ? "video/mp4" : /mp3$/.test(path) ? "audio/mpeg" : "x/y",
    }));
    const playlists = paths.map((path) => ({ path, text: path.includes("master") ? "#EXT-X-STREAM-INF" : "" }));
    expect(mainFile(files, playlists)).toBe(expected);
  });

  test("playlists: a path in an address", () => {
    expect(escaped("a b/ü?#.mp4")).toBe("a%20b/%C3%BC%3F%23.mp4");
  });
});
