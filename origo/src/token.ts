/**
 * Token: signs the tokens that clients show to proxies, and the grants that publishers show: JWT (RFC 7519) with
 * Ed25519 (EdDSA, RFC 8037). Proxies get the public key over their link; everyone can read it at
 * /.well-known/tributary-keys.json (JWK Set, RFC 7517).
 */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign, type KeyObject } from "node:crypto";
import type { GrantClaims } from "@tributary/contract/publication-schema";
import type { TokenClaims } from "@tributary/contract/schema";

export function newTokenKey(): string {
  return generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

export class TokenSigner {
  readonly keyId: string;
  /** In SPKI, as PEM. */
  readonly publicKey: string;
  readonly #privateKey: KeyObject;
  readonly #header: string;

  constructor(privatePem: string) {
    this.#privateKey = createPrivateKey(privatePem);
    this.publicKey = createPublicKey(this.#privateKey).export({ type: "spki", format: "pem" }).toString();
    this.keyId = createHash("sha256").update(this.publicKey).digest("hex").slice(0, 16);
    this.#header = base64url({ alg: "EdDSA", typ: "JWT", kid: this.keyId });
  }

  sign(claims: TokenClaims | GrantClaims): string {
    const text = `${this.#header}.${base64url(claims)}`;
    return `${text}.${sign(null, Buffer.from(text), this.#privateKey).toString("base64url")}`;
  }

  jwks(): { keys: Record<string, string>[] } {
    const { kty = "", crv = "", x = "" } = createPublicKey(this.publicKey).export({ format: "jwk" });
    return { keys: [{ kty, crv, x, kid: this.keyId, use: "sig", alg: "EdDSA" }] };
  }
}

const base64url = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
