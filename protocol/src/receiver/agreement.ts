/**
 * Agreement: what the proxies of one request say about it, and which of them is believed. A statement counts once a
 * second proxy has confirmed it and most of those that spoke agree. Nobody wins by being first: the client waits up to
 * `TIMING.confirmMs` for the others. If no majority comes, nothing is decided, and the request fails. It also fails if
 * what was decided loses its majority later. The end of the body waits for those who may still contradict its length.
 * Pure: time arrives as `nowMs`. Rules: protocol.md §5.2 and §9.1.
 */
import { strongValidator, type Rejection } from "@tributary/contract";
import { LIMITS, TIMING } from "../limits";
import type { PlanHead } from "../types";
import type { ByteCheck } from "./assembly";
import { isOutvoted, votersOf, votes, wordsOf } from "./voters";

/** What one proxy says. Undefined: it has not spoken yet, but it still can. */
export type Statement = string | undefined;

/** `unsaid`: nobody has spoken. `open`: others may still speak. `split`: no majority can come any more. */
export type Verdict =
  { kind: "decided"; statement: string } | { kind: "unsaid" } | { kind: "open" } | { kind: "split" };

/** `voters`: the voter of each proxy (voters.ts). By default each proxy is one. */
export function verdictOf(
  statements: readonly Statement[],
  mayWait: boolean,
  voters: readonly number[] = [...statements.keys()],
): Verdict {
  const { counts, spoken } = votes(statements, voters);
  if (counts.size === 0) return { kind: "unsaid" };
  const [[statement, most], next] = [...counts].sort(([, a], [, b]) => b - a) as [[string, number], [string, number]?];
  const isMajority = 2 * most > spoken && most > (next?.[1] ?? 0);
  if (isMajority && most > 1) return { kind: "decided", statement };
  if (statements.includes(undefined) && mayWait) return { kind: "open" };
  return isMajority ? { kind: "decided", statement } : { kind: "split" };
}

/**
 * Plans with different statements cannot be of one body. Validators are not part of it, because servers behind one name
 * may give the same bytes different ones, unless proxies read parts of the body. Nor is the length of the whole
 * resource, because it may grow.
 */
export function statementOf({
  status,
  totalBytes,
  headers,
  reads,
}: Pick<PlanHead, "status" | "totalBytes" | "headers"> & Partial<PlanHead>): string {
  const range = status === 206 ? (headers["content-range"]?.split("/")[0] ?? "").trim() : "";
  const version = reads ? `, parts of ${strongValidator({ headers })}` : "";
  return `status ${status}, ${totalBytes} bytes${range && `, ${range}`}${version}`;
}

/** Why a proxy rejects a request may be a statement about the body. Other rejections tell only of the proxy. */
export function statementOfRejection({ kind, got }: Rejection): Statement {
  if (kind === "lengthUnknown") return "unknown length";
  return kind === "chunkTooLarge" && got !== undefined ? `${got} bytes, too long for one chunk` : undefined;
}

/** The proxies contradict each other, and none of them has a majority. Nobody can tell who is right. */
export function undecided(kind: "planMismatch" | "bodyDiffers", what: string): Rejection {
  return { kind, message: `The ${what} that the proxies sent differ, and no majority of them agrees.` };
}

/** The time that the client may still wait for confirmations. It runs only while something waits for one. */
export class Patience {
  #leftMs: number = TIMING.confirmMs;
  #sinceMs: number | undefined;

  /** When the time is over; undefined while nothing waits. */
  get dueMs(): number | undefined {
    return this.#sinceMs === undefined ? undefined : this.#sinceMs + this.#leftMs;
  }

  mayWait(nowMs: number): boolean {
    return nowMs < (this.dueMs ?? nowMs + this.#leftMs);
  }

  note(isWaiting: boolean, nowMs: number): void {
    if (isWaiting && this.mayWait(nowMs)) this.#sinceMs ??= nowMs;
    else if (this.#sinceMs !== undefined) {
      this.#leftMs = Math.max(0, this.#leftMs - (nowMs - this.#sinceMs));
      this.#sinceMs = undefined;
    }
  }
}

interface Announced {
  /** The number of generations, from the first one, whose digests this proxy has announced. */
  count: number;
  /** The announced digests of generations that are not decided, in order. */
  readonly ahead: string[];
  /** The first generation in which it contradicts what is decided. */
  differsAt: number | undefined;
  isReported: boolean;
  /** The most decided generations, from the first one, with which it has agreed, in this answer or one before it. */
  agreedCount: number;
}

const newAnnounced = (agreedCount = 0): Announced => ({
  count: 0,
  ahead: [],
  differsAt: undefined,
  isReported: false,
  agreedCount,
});

/**
 * The digests that the proxies announce. Generations are decided in their order, and only proxies that agree with all
 * decided ones have a say. So all decided generations are of one body.
 */
export class DigestAgreement {
  readonly #proxies: Announced[];
  readonly #decided: string[] = [];
  readonly #operators: readonly string[] | undefined;
  readonly #voters: readonly number[];

  /** `operators`: who runs each proxy. By default somebody else runs each. */
  constructor(proxyCount: number, operators?: readonly string[]) {
    this.#proxies = Array.from({ length: proxyCount }, () => newAnnounced());
    this.#operators = operators;
    this.#voters = votersOf(proxyCount, operators);
  }

  /** How many operators have said all that is decided. */
  get agreeingOperators(): number {
    const agreeing = [...this.#proxies.keys()].filter(
      (index) => this.#proxies[index]!.agreedCount >= this.#decided.length,
    );
    return new Set(agreeing.map((index) => this.#operators?.[index] ?? index)).size;
  }

  /** The digests of the generations below it are decided. */
  get decidedCount(): number {
    return this.#decided.length;
  }

  countOf(proxyIndex: number): number {
    return this.#proxies[proxyIndex]!.count;
  }

  /** True if a generation's bytes have the decided digest. `digest` may be longer than a digest on the wire. */
  isTrue(index: number, digest: Uint8Array): boolean {
    return this.#decided[index] === keyOf(digest);
  }

  /** Takes digests that follow the known ones. Others come again. */
  handleDigests(proxyIndex: number, firstGeneration: number, digests: readonly Uint8Array[]): void {
    const proxy = this.#proxies[proxyIndex]!;
    if (firstGeneration > proxy.count) return;
    for (const digest of digests.slice(proxy.count - firstGeneration)) {
      const key = keyOf(digest);
      const index = proxy.count++;
      if (index >= this.#decided.length) proxy.ahead.push(key);
      else compare(proxy, index, this.#decided[index] === key);
    }
  }

  /** The proxy may bring another answer now, so what it announced before does not count. */
  forget(proxyIndex: number): void {
    this.#proxies[proxyIndex] = newAnnounced(this.#proxies[proxyIndex]!.agreedCount);
  }

  /**
   * The proxy was convicted because its bytes do not have the decided digests. Unless it has announced those digests,
   * it contradicts them.
   */
  handleConviction(proxyIndex: number): void {
    const proxy = this.#proxies[proxyIndex]!;
    if (proxy.agreedCount < this.#decided.length) proxy.differsAt ??= proxy.agreedCount;
    proxy.isReported = true;
  }

  /** Decides the next generation, if it can. `isAsked`: whether this proxy's word counts. */
  decideNext(isAsked: (proxyIndex: number) => boolean, mayWait: boolean): Verdict["kind"] {
    const asked = [...this.#proxies.keys()].filter(isAsked);
    const verdict = verdictOf(
      asked.map((index) => this.#proxies[index]!.ahead[0]),
      mayWait,
      asked.map((index) => this.#voters[index]!),
    );
    if (verdict.kind !== "decided") return verdict.kind;
    const index = this.#decided.push(verdict.statement) - 1;
    for (const proxy of this.#proxies) {
      const key = proxy.ahead.shift();
      if (key !== undefined) compare(proxy, index, key === verdict.statement);
    }
    return "decided";
  }

  /** The proxies that contradict what is decided, each once and with the first such generation. */
  takeDissenters(): [proxyIndex: number, generationIndex: number][] {
    return this.#proxies.flatMap((proxy, index) => {
      if (proxy.differsAt === undefined || proxy.isReported) return [];
      proxy.isReported = true;
      return [[index, proxy.differsAt] as [number, number]];
    });
  }

  /** The first generation in which as many voters contradict what is decided as agree with it. */
  get outvotedAt(): number | undefined {
    const wordsOn = (index: number) =>
      wordsOf(
        this.#proxies.map(({ differsAt, agreedCount }) => {
          if (agreedCount > index) return "agrees";
          return differsAt === index ? "opposes" : undefined;
        }),
        this.#voters,
      );
    return this.#proxies
      .map(({ differsAt }) => differsAt)
      .find((index) => index !== undefined && isOutvoted(wordsOn(index)));
  }
}

function compare(proxy: Announced, index: number, isEqual: boolean): void {
  if (!isEqual) proxy.differsAt ??= index;
  else if (proxy.differsAt === undefined) proxy.agreedCount = Math.max(proxy.agreedCount, index + 1);
}

/** Bytes are checked with the digests on which the proxies agree. */
export function checkOf(
  agreement: DigestAgreement | undefined,
  hash: ((bytes: Uint8Array) => Uint8Array) | undefined,
): ByteCheck | undefined {
  if (!agreement || !hash) return undefined;
  return {
    isKnown: (index) => index < agreement.decidedCount,
    isTrue: (index, bytes) => agreement.isTrue(index, hash(bytes)),
  };
}

const keyOf = (digest: Uint8Array): string => String.fromCharCode(...digest.subarray(0, LIMITS.digestBytes));
