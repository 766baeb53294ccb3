/** Digests, and whether two secrets are the same. The time it takes reveals neither content nor length. */
import { createHash, timingSafeEqual } from "node:crypto";

export const sha256 = (bytes: Uint8Array): Uint8Array => createHash("sha256").update(bytes).digest();

export const digestOf = (text: string): string => createHash("sha256").update(text).digest("base64url");

export const same = (a: string, b: string): boolean =>
  timingSafeEqual(Buffer.from(digestOf(a)), Buffer.from(digestOf(b)));
