/** Block check: the interface that tells the modes over HTTP which blocks of a chunk may be handed on. Types only. */
import type { Rejection, ResponseHead } from "@tributary/contract";
import type { Voucher } from "@tributary/contract/record-fields";
import type { ByteCheck } from "@tributary/protocol";

/** The answer on which the proxies of a chunk agree. */
export interface HttpPlan {
  head: ResponseHead & { totalBytes: number };
  serverFetchMs: number;
  /** The strong validator that all of them gave. */
  version: string | undefined;
}

export interface CheckEvents {
  onPlan(plan: HttpPlan): void;
  /** More blocks are known. */
  onKnown(): void;
  /** This proxy gives no answer, or its answer is not the agreed one. */
  onProxyFailed(proxyIndex: number, rejection: Rejection): void;
  /** Nothing can be decided. The last call. */
  onUndecided(rejection: Rejection): void;
}

/** Says which blocks of a chunk may be handed on. */
export interface BlockCheck extends ByteCheck {
  /** Who vouches for what is known. Undefined while nothing is. */
  readonly voucher: Voucher | undefined;
  /** Why an answer with this head cannot be of the right body. */
  differenceOf(head: ResponseHead): Rejection | undefined;
  /** This proxy has failed. */
  fail(index: number, rejection: Rejection): void;
  stop(): void;
}
