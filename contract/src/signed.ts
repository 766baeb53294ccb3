/**
 * Signed messages: JSON in a compact JWS (RFC 7515) with Ed25519 (EdDSA, RFC 8037). The signature covers the bytes as
 * they are sent, so no canonical form is needed. A key is known by its 32 public bytes in base64url, 43 characters.
 */
import { base64url, CompactSign, compactVerify, exportJWK, importJWK, type JWK, type KeyLike } from "jose";
import type { z } from "zod";

/** 32 bytes in base64url. The last character holds 4 bits, so it is one of 16. */
export const PUBLIC_KEY = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

/** The message was not signed by the key, or it was changed since. */
export class SignatureWrong extends Error {}

/** The private key must be one for Ed25519. */
export async function sign(payload: unknown, privateKey: KeyLike): Promise<string> {
  const text = new TextEncoder().encode(JSON.stringify(payload));
  return new CompactSign(text).setProtectedHeader({ alg: "EdDSA" }).sign(privateKey);
}

/**
 * The message, if `publicKey` signed it and it has the shape. Otherwise throws: SignatureWrong, or an error that says
 * what is wrong.
 */
export async function open<T extends z.ZodTypeAny>(text: string, publicKey: string, shape: T): Promise<z.output<T>> {
  const key = await importJWK({ kty: "OKP", crv: "Ed25519", x: publicKey }, "EdDSA");
  const { payload } = await compactVerify(text, key, { algorithms: ["EdDSA"] }).catch(() => {
    throw new SignatureWrong(`the signature is not one of the key ${publicKey}`);
  });
  const parsed = shape.safeParse(jsonOf(payload));
  if (parsed.success) return parsed.data as z.output<T>;
  const { path, message } = parsed.error.issues[0]!;
  throw new Error(`${path.join(".") || "the message"}: ${message}`);
}

/** The payload before anyone has checked the signature, to find out whose it claims to be. Undefined: not JSON. */
export function unchecked(text: string): unknown {
  try {
    return jsonOf(base64url.decode(text.split(".")[1] ?? ""));
  } catch {
    return undefined;
  }
}

function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

/** The public part of a key. */
export async function publicKeyOf(key: KeyLike): Promise<string> {
  const { crv, x }: JWK = await exportJWK(key);
  if (crv !== "Ed25519" || x === undefined) throw new TypeError(`the key must be for Ed25519, got ${crv}`);
  return x;
}
