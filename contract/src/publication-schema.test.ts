import { generateKeyPairSync } from "node:crypto";
import { Manifest, PublicationName, pathFault } from "./publication-schema";
import { open, publicKeyOf, sign, unchecked } from "./signed";

const { privateKey, publicKey } = generateKeyPairSync("ed25519");
const object = `${"ab".repeat(32)}-5`;
const manifest = async () => ({
  kind: "manifest",
  key: await publicKeyOf(publicKey),
  name: "holiday",
  revision: 1,
  files: [{ path: "master.m3u8", type: "application/vnd.apple.mpegurl", object }],
});

test("a signed manifest opens with its key and no other", async () => {
  const message = await manifest();
  const text = await sign(message, privateKey);
  expect(await open(text, message.key, Manifest)).toEqual(message);
  expect(unchecked(text)).toEqual(message);
  const other = await publicKeyOf(generateKeyPairSync("ed25519").publicKey);
  await expect(open(text, other, Manifest)).rejects.toThrow(other);
  const [header, , signature] = text.split(".");
  const forged = Buffer.from(JSON.stringify({ ...message, revision: 2 })).toString("base64url");
  await expect(open(`${header}.${forged}.${signature}`, message.key, Manifest)).rejects.toThrow("signature");
});

test("a manifest with a wrong part is refused by its name", async () => {
  const message = await manifest();
  const file = message.files[0]!;
  const cases: [object, string][] = [
    [{ revision: 0 }, "revision"],
    [{ name: "A" }, "name"],
    [{ files: [] }, "files"],
    [{ files: [file, file] }, "master.m3u8 is there twice"],
    [{ files: [{ ...file, path: "a/../b" }] }, "must not hold the part .."],
    [{ files: [{ ...file, object: "x" }] }, "object's id"],
    [{ files: [{ ...file, type: "video" }] }, "media type"],
  ];
  for (const [change, fault] of cases)
    await expect(open(await sign({ ...message, ...change }, privateKey), message.key, Manifest)).rejects.toThrow(fault);
});

test("paths and names that could leave a folder or hide are refused", () => {
  for (const path of [
    "",
    "/a",
    "a/",
    "a//b",
    "..",
    "a/./b",
    "a\\b",
    "a\nb",
    "\ud800",
    "a".repeat(256),
    "a/".repeat(600),
  ])
    expect(pathFault(path)).toBeDefined();
  for (const path of ["a.ts", "720p/seg 1.m4s", "..a", "Ärger.mp4"]) expect(pathFault(path)).toBeUndefined();
  for (const name of ["", ".", "..", ".a", "a.", "A", "a/b", "a".repeat(65)])
    expect(PublicationName.safeParse(name).success).toBe(false);
  for (const name of ["a", "my-film", "2.0_final"]) expect(PublicationName.safeParse(name).success).toBe(true);
});
