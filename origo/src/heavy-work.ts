/**
 * Heavy work: what signed-in people ask for that takes long and much memory: questions over all records, and files. A
 * few run at once, so that intake and short reads are served meanwhile. Owners take turns, so nobody waits for all that
 * another one has asked for.
 */
export interface HeavyWorkOptions {
  /** This much runs at once. */
  runningMax: number;
  /** This much of one owner waits. */
  waitingMax: number;
}

/** Too much of one owner waits already. */
export class HeavyWorkFull extends Error {
  constructor(
    readonly got: number,
    readonly limit: number,
  ) {
    super(`you have asked for too much at once: ${got} wait, the limit is ${limit}. Try again later`);
  }
}

export class HeavyWork {
  /** Those whose turn is next come first. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #running = 0;

  readonly #options: HeavyWorkOptions;

  constructor(options: HeavyWorkOptions) {
    this.#options = options;
  }

  /** Runs the work when it has its turn. Throws HeavyWorkFull. `isWanted` is asked when the turn has come. */
  async run<T>(owner: string, isWanted: () => boolean, work: () => Promise<T>): Promise<T | undefined> {
    if (this.#running < this.#options.runningMax) this.#running++;
    else await this.#turnOf(owner);
    try {
      return isWanted() ? await work() : undefined;
    } finally {
      this.#passOn();
    }
  }

  #turnOf(owner: string): Promise<void> {
    const own = this.#waiting.get(owner) ?? [];
    const limit = this.#options.waitingMax;
    if (own.length >= limit) throw new HeavyWorkFull(own.length + 1, limit);
    this.#waiting.set(owner, own);
    return new Promise((go) => own.push(go));
  }

  #passOn(): void {
    const [next] = this.#waiting;
    if (!next) return void this.#running--;
    const [owner, own] = next;
    const go = own.shift()!;
    this.#waiting.delete(owner);
    if (own.length > 0) this.#waiting.set(owner, own);
    go();
  }
}
