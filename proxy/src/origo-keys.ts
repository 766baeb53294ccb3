/**
 * Origo's keys: what Origo has signed for proxies: tokens and grants (JWT, EdDSA; RFC 7519, RFC 8037). Only Origo's
 * Ed25519 keys are used; the algorithm in the header of a JWT is ignored. Times are by Origo's clock.
 */
import { createPublicKey, verify, type KeyObject } from "node:crypto";
import type { z } from "zod";
import type { Log } from "./log";

export interface OrigoKeysOptions {
  /** Milliseconds since the epoch. */
  nowMs: () => number;
  log: Log;
}

/** The clocks of two machines may differ by this much. */
export const SKEW_SEC = 30;

export class OrigoKeys {
  readonly #keys = new Map<string, KeyObject>();
  #proxyId: string | undefined;

  readonly #options: OrigoKeysOptions;

  constructor(options: OrigoKeysOptions) {
    this.#options = options;
  }

  nowMs(): number {
    return this.#options.nowMs();
  }

  /** Sets the id that Origo gave this proxy. */
  setId(proxyId: string): void {
    this.#proxyId = proxyId;
  }

  /** Sets the public keys by id: Ed25519 keys in SPKI, as PEM. Other keys are logged and ignored. */
  setKeys(keys: Record<string, string>): void {
    this.#keys.clear();
    for (const [id, pem] of Object.entries(keys)) {
      try {
        const key = createPublicKey(pem);
        const type = key.asymmetricKeyType;
        if (type !== "ed25519") throw new TypeError(`the key must be for ed25519, got ${type}`);
        this.#keys.set(id, key);
      } catch (error) {
        this.#options.log("keyRefused", { key: id, reason: (error as Error).message });
      }
    }
  }

  isForThis({ aud }: { aud: readonly string[] }): boolean {
    return this.#proxyId !== undefined && aud.includes(this.#proxyId);
  }

  /** The claims, if Origo signed them and they have the shape. */
  read<T extends z.ZodTypeAny>(jwt: string, shape: T): z.output<T> | undefined {
    const [header = "", payload = "", signature = "", ...more] = jwt.split(".");
    const key = this.#keys.get(String((decoded(header) as { kid?: unknown } | undefined)?.kid));
    if (key === undefined || more.length > 0) return undefined;
    const signed = Buffer.from(signature, "base64url");
    // Another spelling of the same signature would count as a new token with all its bytes left.
    if (signed.toString("base64url") !== signature || !verify(null, Buffer.from(`${header}.${payload}`), key, signed))
      return undefined;
    return shape.safeParse(decoded(payload)).data as z.output<T> | undefined;
  }
}

function decoded(part: string): unknown {
  try {
    return JSON.parse(Buffer.from(part, "base64url").toString());
  } catch {
    return undefined;
  }
}
