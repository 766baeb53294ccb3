/**
 * Own rests: what a page fetched from the site itself in place of the proxies, for the records of its downloads. The
 * page tells it when its own request has ended.
 */
import type { OwnRest } from "@tributary/client";
import { rejectionOf } from "@tributary/contract";
import type { Fetched } from "../shared/messages";

/** A page that never tells has no more than this many records waiting. */
export const WAITING_MAX = 64;

/** Why the page asks the site, as the record says it. */
export interface Reason {
  kind: string;
  message: string;
}

interface Waiting {
  reason: Reason;
  tell(rest: OwnRest): void;
}

export class OwnRests {
  readonly #waiting = new Map<number, Waiting>();

  /** The page asks the site itself from now on. `tell` takes what it then says. */
  wait(id: number, reason: Reason, tell: (rest: OwnRest) => void): void {
    this.#waiting.set(id, { reason, tell });
    const oldest = this.#waiting.keys().next();
    if (this.#waiting.size > WAITING_MAX && oldest.done === false) this.note(oldest.value, NOTHING);
  }

  note(id: number, { offset, bytes, status, headMs, outcome }: Fetched): void {
    const waiting = this.#waiting.get(id);
    if (!this.#waiting.delete(id) || waiting === undefined) return;
    const reason = rejectionOf(waiting.reason.kind, waiting.reason.message);
    waiting.tell({ reason, offset, bytes, status, headMs, outcome });
  }

  /** The page is gone before it told. */
  close(): void {
    for (const id of [...this.#waiting.keys()]) this.note(id, NOTHING);
  }
}

const NOTHING: Fetched = { offset: 0, bytes: 0, status: 0, headMs: 0, outcome: "aborted" };
