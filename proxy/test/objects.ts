/** What the tests of the library share: objects, and grants as Origo signs them. */
import { generateKeyPairSync, sign } from "node:crypto";
import { hexOf, LeafMaker, objectId, Tree } from "@tributary/contract/tree";
import { sha256 } from "../src/library/library";

/** Bytes that differ from place to place, the same for the same seed. */
export function bytesOf(length: number, seed = 1): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  let state = (seed * 2_654_435_761) >>> 0 || 1;
  for (let at = 0; at < length; at++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[at] = state;
  }
  return bytes;
}

export function treeOf(bytes: Uint8Array): Tree {
  const leaves = new LeafMaker(sha256);
  leaves.update(bytes);
  return new Tree(leaves.finish(), sha256);
}

export const idOf = (bytes: Uint8Array): string => objectId({ root: hexOf(treeOf(bytes).root), bytes: bytes.length });

const { privateKey, publicKey } = generateKeyPairSync("ed25519");
/** As Origo gives them to its proxies. */
export const KEYS = { k: publicKey.export({ type: "spki", format: "pem" }).toString() };

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A grant of an object to the proxy `p`, for an hour from `nowMs` on. */
export function grantOf(object: string, claims: object = {}, nowMs = Date.now()): string {
  const iat = Math.floor(nowMs / 1000);
  const payload = part({ iss: "origo", aud: ["p"], object, iat, exp: iat + 3600, ...claims });
  const text = `${part({ alg: "EdDSA", typ: "JWT", kid: "k" })}.${payload}`;
  return `${text}.${sign(null, Buffer.from(text), privateKey).toString("base64url")}`;
}
