import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { makeFolder } from "../../../test/command";
import { configFolder } from "../folders";
import { loadKey, loadOrMakeKey } from "./key";

let folder: ReturnType<typeof makeFolder>;
let said: string;
beforeEach(() => {
  folder = makeFolder();
  said = "";
  jest.spyOn(process.stderr, "write").mockImplementation((text) => ((said += String(text)), true));
});
afterEach(() => {
  jest.restoreAllMocks();
  folder.remove();
});

const at = (name: string): string => path.join(folder.path, name);

describe("key", () => {
  test("key: ten commands at once make one key, and openssl reads it", async () => {
    const keys = await Promise.all(Array.from({ length: 10 }, () => loadOrMakeKey(at("a/b/key.pem"))));
    expect(new Set(keys.map(({ publicKey }) => publicKey)).size).toBe(1);
    expect(said.match(/Made your publisher's key/g)).toHaveLength(1);
    expect(execFileSync("openssl", ["pkey", "-in", at("a/b/key.pem"), "-noout", "-text"]).toString()).toContain(
      "ED25519",
    );
  });

  test.each([
    ["", /got an empty file/],
    ["hello", /got a file without PEM/],
    [generateKeyPairSync("ed25519").publicKey.export({ type: "spki", format: "pem" }), /got public key/],
    [generateKeyPairSync("x25519").privateKey.export({ type: "pkcs8", format: "pem" }), /got a key for x25519/],
    ["-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n", /got openssh private key/],
    ["-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", /got a damaged key/],
  ])("key: a file with %j is no key, and it stays as it is", async (text, message) => {
    writeFileSync(at("key"), text);
    await expect(loadOrMakeKey(at("key"))).rejects.toThrow(message);
    expect(readFileSync(at("key"), "utf8")).toBe(text);
  });

  test("key: what cannot be read, or is not there", async () => {
    mkdirSync(at("folder"));
    await expect(loadOrMakeKey(at("folder"))).rejects.toThrow(/Cannot read .*folder/);
    await expect(loadKey(at("none"))).rejects.toThrow(/There is no publisher's key .*none/);
    expect(existsSync(at("none"))).toBe(false);
  });

  test("key: one that others can read gets a warning", async () => {
    await loadOrMakeKey(at("key"));
    chmodSync(at("key"), 0o644);
    await loadOrMakeKey(at("key"));
    expect(said).toContain(`chmod 600 ${at("key")}`);
  });

  test("key: the folder for configuration", () => {
    expect(configFolder({ XDG_CONFIG_HOME: "/x" })).toBe("/x/tributary");
    expect(configFolder({ XDG_CONFIG_HOME: "relative" })).toMatch(/\.config\/tributary$/);
  });
});
