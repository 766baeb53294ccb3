/**
 * Seats: a bounded number of places, such as sessions or connections, that clients share. Nobody is limited while there
 * is room. When there is none, a newcomer gets the seat of a client that holds more than the newcomer does. Idle seats
 * go first. Not here: what a seat is, and who a client is (clients.ts).
 */

export interface Seat {
  /** The holder, by `clientOf`. */
  readonly client: string;
  /** Since when nothing happens on it. Undefined while it is in use. */
  idleSinceMs(): number | undefined;
  /** Ends it, because another client needs the room. */
  end(): void;
}

export class Seats<S extends Seat> {
  /** Each client's seats, the oldest first. */
  readonly #byClient = new Map<string, Set<S>>();
  #taken = 0;

  readonly #limit: () => number;

  constructor(limit: () => number) {
    this.#limit = limit;
  }

  get taken(): number {
    return this.#taken;
  }

  /** False when there is no room for the seat, and when its client holds as much as anyone whose seat could go. */
  take(seat: S): boolean {
    if (this.#taken >= this.#limit()) {
      const loser = this.#limit() > 0 ? this.#loser(seat.client) : undefined;
      if (!loser) return false;
      this.leave(loser);
      loser.end();
    }
    let own = this.#byClient.get(seat.client);
    if (!own) this.#byClient.set(seat.client, (own = new Set()));
    own.add(seat);
    this.#taken++;
    return true;
  }

  /** Frees the seat. May be called again. */
  leave(seat: S): void {
    const own = this.#byClient.get(seat.client);
    if (!own?.delete(seat)) return;
    this.#taken--;
    if (own.size === 0) this.#byClient.delete(seat.client);
  }

  /**
   * The seat that goes for a newcomer of `client`. Clients with the most seats lose first: the longest idle seat, or
   * the newest one if all are in use. Nobody loses a seat to a client that would then hold more, but a client may
   * exchange an idle seat of its own.
   */
  #loser(client: string): S | undefined {
    const own = this.#byClient.get(client);
    const ownCount = own?.size ?? 0;
    const sizes = new Set([...this.#byClient.values()].map(({ size }) => size));
    for (const size of [...sizes].sort((a, b) => b - a)) {
      const holders = [...this.#byClient.values()].filter((seats) => seats.size === size);
      const idle = longestIdle(holders.filter((seats) => size > ownCount || seats === own));
      if (idle) return idle;
      if (size > ownCount + 1) return [...holders[0]!].at(-1);
    }
    return undefined;
  }
}

function longestIdle<S extends Seat>(holders: readonly ReadonlySet<S>[]): S | undefined {
  let found: S | undefined;
  let sinceMs = Infinity;
  for (const seats of holders)
    for (const seat of seats) {
      const idleMs = seat.idleSinceMs() ?? Infinity;
      if (idleMs >= sinceMs) continue;
      found = seat;
      sinceMs = idleMs;
    }
  return found;
}
