/**
 * Token: checks the tokens that clients must show if this proxy requires them. Origo signs a token (JWT, EdDSA; RFC
 * 7519, RFC 8037) for some proxies, for some time and for some bytes. Only Origo's Ed25519 keys are used; the algorithm
 * in the header of a token is ignored.
 */
import type { Rejection, RejectionKind } from "@tributary/contract";
import { createPublicKey, verify, type KeyObject } from "node:crypto";
import { TokenClaims } from "@tributary/contract/schema";
import type { Log } from "./log";

/** What a token still allows at this proxy. */
export interface Allowance {
  /** A request ends when these are used up. */
  leftBytes: number;
  /** The open sessions that use the token. */
  sessions: number;
  readonly budgetBytes: number;
}

/** Why nothing more is sent with a token. */
export function budgetSpent({ budgetBytes }: Allowance): Rejection {
  const message = `The token's ${budgetBytes} bytes are spent at this proxy: ask Origo for the list again.`;
  return { kind: "budgetSpent", message, limit: budgetBytes };
}

export interface TokenGateOptions {
  required: () => boolean;
  /** Milliseconds since the epoch. */
  nowMs: () => number;
  log: Log;
}

/** This many tokens are remembered with their bytes left. The oldest are forgotten first. */
const TOKENS_MAX = 10_000;
/** The clocks of two machines may differ by this much. */
const SKEW_SEC = 30;

export class TokenGate {
  readonly #known = new Map<string, { allowance: Allowance; claims: TokenClaims }>();
  readonly #keys = new Map<string, KeyObject>();
  #proxyId: string | undefined;

  readonly #options: TokenGateOptions;

  constructor(options: TokenGateOptions) {
    this.#options = options;
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

  /** Says what the token allows. Undefined if this proxy requires no token. */
  admit(token: string | undefined): Allowance | Rejection | undefined {
    if (!this.#options.required()) return undefined;
    if (token === undefined)
      return refused("tokenMissing", "This proxy serves only clients that show a token of its Origo.");
    const entry = this.#known.get(token) ?? this.#learn(token);
    if ("kind" in entry) return entry;
    const { claims, allowance } = entry;
    const lateSec = this.#options.nowMs() / 1000 - claims.exp;
    if (lateSec > SKEW_SEC)
      return refused("tokenExpired", "The token has expired: ask Origo for the list of proxies again.");
    if (allowance.leftBytes > 0) return allowance;
    return budgetSpent(allowance);
  }

  #learn(token: string): { allowance: Allowance; claims: TokenClaims } | Rejection {
    const claims = this.#read(token);
    if (claims === undefined) return refused("tokenRefused", "The token is not one that this proxy's Origo signed.");
    if (this.#proxyId === undefined || !claims.aud.includes(this.#proxyId))
      return refused("tokenRefused", "The token is for other proxies.");
    const allowance = { leftBytes: claims.bytes, sessions: 0, budgetBytes: claims.bytes };
    const entry = { claims, allowance };
    this.#known.set(token, entry);
    if (this.#known.size > TOKENS_MAX) this.#known.delete(this.#known.keys().next().value!);
    return entry;
  }

  #read(token: string): TokenClaims | undefined {
    const [header = "", payload = "", signature = "", ...more] = token.split(".");
    const key = this.#keys.get(String((decoded(header) as { kid?: unknown } | undefined)?.kid));
    if (key === undefined || more.length > 0) return undefined;
    const signed = Buffer.from(signature, "base64url");
    // Another spelling of the same signature would count as a new token with all its bytes left.
    if (signed.toString("base64url") !== signature || !verify(null, Buffer.from(`${header}.${payload}`), key, signed))
      return undefined;
    return TokenClaims.safeParse(decoded(payload)).data;
  }
}

function decoded(part: string): unknown {
  try {
    return JSON.parse(Buffer.from(part, "base64url").toString());
  } catch {
    return undefined;
  }
}

const refused = (kind: RejectionKind, message: string): Rejection => ({ kind, message });
