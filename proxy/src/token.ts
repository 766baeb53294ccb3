/**
 * Token: checks the tokens that clients must show if this proxy requires them. Origo signs a token for some proxies,
 * for some time and for some bytes.
 */
import type { Rejection, RejectionKind } from "@tributary/contract";
import { TokenClaims } from "@tributary/contract/schema";
import { SKEW_SEC, type OrigoKeys } from "./origo-keys";

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
  keys: OrigoKeys;
}

/** This many tokens are remembered with their bytes left. The oldest are forgotten first. */
const TOKENS_MAX = 10_000;

export class TokenGate {
  readonly #known = new Map<string, { allowance: Allowance; claims: TokenClaims }>();

  readonly #options: TokenGateOptions;

  constructor(options: TokenGateOptions) {
    this.#options = options;
  }

  /** Says what the token allows. Undefined if this proxy requires no token. */
  admit(token: string | undefined): Allowance | Rejection | undefined {
    if (!this.#options.required()) return undefined;
    if (token === undefined)
      return refused("tokenMissing", "This proxy serves only clients that show a token of its Origo.");
    const entry = this.#known.get(token) ?? this.#learn(token);
    if ("kind" in entry) return entry;
    const { claims, allowance } = entry;
    const lateSec = this.#options.keys.nowMs() / 1000 - claims.exp;
    if (lateSec > SKEW_SEC)
      return refused("tokenExpired", "The token has expired: ask Origo for the list of proxies again.");
    if (allowance.leftBytes > 0) return allowance;
    return budgetSpent(allowance);
  }

  #learn(token: string): { allowance: Allowance; claims: TokenClaims } | Rejection {
    const { keys } = this.#options;
    const claims = keys.read(token, TokenClaims);
    if (claims === undefined) return refused("tokenRefused", "The token is not one that this proxy's Origo signed.");
    if (!keys.isForThis(claims)) return refused("tokenRefused", "The token is for other proxies.");
    const allowance = { leftBytes: claims.bytes, sessions: 0, budgetBytes: claims.bytes };
    const entry = { claims, allowance };
    this.#known.set(token, entry);
    if (this.#known.size > TOKENS_MAX) this.#known.delete(this.#known.keys().next().value!);
    return entry;
  }
}

const refused = (kind: RejectionKind, message: string): Rejection => ({ kind, message });
