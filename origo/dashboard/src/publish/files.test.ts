/** Tests what becomes of the files that a person drops: paths, types, private keys and the name that is proposed. */
import { generateKeyPairSync } from "node:crypto";
import { chosen, nameFor, typeOf } from "./files";

const found = (...paths: string[]) => paths.map((path) => ({ path, file: new File(["x"], path) }));

test("a folder's name is no part of the paths, and hidden files stay away", async () => {
  const { title, files, skipped } = await chosen(found("My film/b/seg 1.m4s", "My film/a.m3u8", "My film/.DS_Store"));
  expect(title).toBe("My film");
  expect(files.map(({ path }) => path)).toEqual(["a.m3u8", "b/seg 1.m4s"]);
  expect(skipped).toEqual([".DS_Store: hidden"]);
  expect((await chosen(found("a.m3u8", "b.ts"))).files.map(({ path }) => path)).toEqual(["a.m3u8", "b.ts"]);
  const beside = await chosen(found(".DS_Store", "film/a.ts"));
  expect([beside.title, beside.files[0]!.path, beside.skipped]).toEqual(["film", "a.ts", [".DS_Store: hidden"]]);
});

const PEM = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" });
const holding = (path: string, content: BlobPart) => ({ path, file: new File([content], path) });

test.each<[string, BlobPart]>([
  ["alone", PEM],
  ["of OpenSSH", PEM.toString().replaceAll("PRIVATE", "OPENSSH PRIVATE")],
  ["after other text", `key:\n${PEM.toString()}`],
  ["in UTF-16", Buffer.from(`\ufeff${PEM.toString()}`, "utf16le")],
  ["in 65,536 bytes", PEM.toString().padEnd(65_536)],
])("a private key %s is left out and named, under any name", async (_where, content) => {
  const { files, skipped } = await chosen([...found("film/a.m3u8"), holding("film/hd/copy.txt", content)]);
  expect(files.map(({ path }) => path)).toEqual(["a.m3u8"]);
  expect(skipped).toEqual(["hd/copy.txt: a private key"]);
  await expect(chosen([holding("key.pem", content)])).rejects.toThrow(
    "there is no file to publish in it; key.pem: a private key",
  );
});

test("a public key, and a file that is too long for a key, are published", async () => {
  const pub = PEM.toString().replaceAll("PRIVATE", "PUBLIC");
  const { files, skipped } = await chosen([holding("a", pub), holding("b", PEM.toString().padEnd(65_537))]);
  expect([files.length, skipped]).toEqual([2, []]);
});

test("what cannot be published is named", async () => {
  await expect(chosen([])).rejects.toThrow("no file");
  await expect(chosen(found("film/a\u0001b"))).rejects.toThrow("control characters");
  await expect(chosen(found(`film/${"é".repeat(200)}`))).rejects.toThrow("400 bytes, limit 255");
  const lost = { name: "a", size: 1, text: () => Promise.reject(new Error("gone")) } as unknown as File;
  await expect(chosen([{ path: "film/a", file: lost }])).rejects.toThrow("film/a: gone");
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
