/** The publisher's key: Ed25519, PKCS#8 in PEM, in a file that only its owner can read. It is never overwritten. */
import { createPrivateKey, generateKeyPairSync, randomUUID, type KeyObject } from "node:crypto";
import { link, mkdir, open, readFile, stat, unlink } from "node:fs/promises";
import path from "node:path";
import { publicKeyOf } from "@tributary/contract/signed";
import { Exit, STATUS } from "../exit";
import { codeOf, fileFault } from "../faults";
import { configFolder } from "../folders";
import { say } from "../terminal";

export interface OwnKey {
  file: string;
  privateKey: KeyObject;
  /** 43 characters of base64url. */
  publicKey: string;
}

export const keyFileDefault = (): string => path.join(configFolder(), "publisher.pem");

/** Makes the key if there is none. */
export async function loadOrMakeKey(file: string): Promise<OwnKey> {
  if (await make(file))
    say(
      `Made your publisher's key: ${file}\n` +
        "Keep a copy of it: only who has it can change or withdraw what you publish.\n",
    );
  return loadKey(file);
}

/** Throws an Exit that says what is wrong with the file. */
export async function loadKey(file: string): Promise<OwnKey> {
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    if (codeOf(error) !== "ENOENT") throw fileFault("read", file, error);
    throw new Exit(STATUS.failed, `There is no publisher's key ${file}. The first "tributary publish" makes one.`);
  });
  const privateKey = parse(text, file);
  await warnIfOpen(file);
  return { file, privateKey, publicKey: await publicKeyOf(privateKey) };
}

/** Returns whether there was none. The key gets its name when it is whole on disk. */
async function make(file: string): Promise<boolean> {
  if (await stat(file).catch(() => undefined)) return false;
  const { privateKey } = generateKeyPairSync("ed25519");
  const draft = `${file}.${randomUUID()}`;
  try {
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
    const handle = await open(draft, "wx", 0o600);
    try {
      await handle.writeFile(privateKey.export({ type: "pkcs8", format: "pem" }));
      await handle.sync();
    } finally {
      await handle.close();
    }
    await link(draft, file);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw fileFault("write", file, error);
  } finally {
    await unlink(draft).catch(() => undefined);
  }
}

function parse(text: string, file: string): KeyObject {
  const wanted = "a publisher's key is an Ed25519 key, PKCS#8 in PEM, without a passphrase";
  const wrong = (got: string): Exit => new Exit(STATUS.failed, `${file} is no publisher's key: ${wanted}; got ${got}.`);
  const [, label] = /-----BEGIN ([A-Z0-9 ]+)-----/.exec(text) ?? [];
  if (label === undefined) throw wrong(text.trim() === "" ? "an empty file" : "a file without PEM");
  if (label !== "PRIVATE KEY") throw wrong(label.toLowerCase());
  let key: KeyObject;
  try {
    key = createPrivateKey(text);
  } catch {
    throw wrong("a damaged key");
  }
  if (key.asymmetricKeyType !== "ed25519") throw wrong(`a key for ${key.asymmetricKeyType}`);
  return key;
}

async function warnIfOpen(file: string): Promise<void> {
  if (process.platform === "win32") return;
  const { mode } = await stat(file);
  if ((mode & 0o077) !== 0)
    say(`Warning: others on this machine can read or change your key. Mend it with: chmod 600 ${file}\n`);
}
