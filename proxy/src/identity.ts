/**
 * Identity: the proxy's own Ed25519 key. It is made at the first start and kept in DATA_DIR, which nobody but the owner
 * can read. Origo knows the proxy by this key.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign, type KeyObject } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { proofText, type ProxyProof } from "@tributary/contract/schema";

const KEY_FILE = "proxy-key.pem";

/** Proves the key for one challenge of Origo. */
export type Prove = (challenge: string) => Pick<ProxyProof, "publicKey" | "signature">;

/** Throws when the folder cannot be used or the file holds no such key. */
export function openIdentity(dataDir: string): Prove {
  const key = openKey(dataDir);
  const { x: publicKey = "" } = createPublicKey(key).export({ format: "jwk" });
  return (challenge) => ({ publicKey, signature: sign(null, proofText(challenge), key).toString("base64url") });
}

function openKey(dataDir: string): KeyObject {
  const file = path.join(dataDir, KEY_FILE);
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const fresh = generateKeyPairSync("ed25519").privateKey.export({ format: "pem", type: "pkcs8" });
  try {
    writeFileSync(file, fresh, { flag: "wx", mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    chmodSync(file, 0o600);
  }
  const key = createPrivateKey(readFileSync(file));
  if (key.asymmetricKeyType !== "ed25519") throw new Error(`${file} holds no Ed25519 key`);
  return key;
}
