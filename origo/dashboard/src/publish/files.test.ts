/** Tests what becomes of the files that a person drops: their paths, types and the name that is proposed. */
import { chosen, nameFor, typeOf } from "./files";

const found = (...paths: string[]) => paths.map((path) => ({ path, file: new File(["x"], path) }));

test("a folder's name is no part of the paths, and hidden files stay away", () => {
  const { title, files } = chosen(found("My film/b/seg 1.m4s", "My film/a.m3u8", "My film/.DS_Store"));
  expect(title).toBe("My film");
  expect(files.map(({ path }) => path)).toEqual(["a.m3u8", "b/seg 1.m4s"]);
  expect(chosen(found("a.m3u8", "b.ts")).files.map(({ path }) => path)).toEqual(["a.m3u8", "b.ts"]);
});

test("what cannot be published is named", () => {
  expect(() => chosen([])).toThrow("no file");
  expect(() => chosen(found("film/a\u0001b"))).toThrow("control characters");
  expect(() => chosen(found(`film/${"é".repeat(200)}`))).toThrow("400 bytes, limit 255");
});

test("the proposed name is one that Origo takes", () => {
  expect(nameFor("Mein Füßchen (2).mp4")).toBe("mein-fu-chen-2");
  expect(nameFor("日本.mp4")).toBe("video");
  expect(nameFor("")).toBe("video");
});

test("types that browsers do not know", () => {
  expect(typeOf("a/B.M3U8", "")).toBe("application/vnd.apple.mpegurl");
  expect(typeOf("a.txt", "text/plain")).toBe("text/plain");
  expect(typeOf("a.x", "broken; type")).toBe("application/octet-stream");
});
