/**
 * Turns: lets costly work of strangers run a few at a time, so that other work of the process does not wait for it. One
 * key has one place at most, running or waiting, so nobody takes the places of others. In memory; times are not its
 * business.
 */
export interface TurnsOptions {
  /** This much runs at once. */
  runningMax: number;
  /** This much waits for its turn, besides work that goes first. */
  waitingMax: number;
}

export class Turns {
  readonly #keys = new Set<string>();
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  readonly #options: TurnsOptions;

  constructor(options: TurnsOptions) {
    this.#options = options;
  }

  /**
   * Runs the work when it has its turn. Undefined at once if there is no place for this key. `goesFirst`: it always has
   * a place, before everyone who waits.
   */
  async run<T extends object>(key: string, goesFirst: boolean, work: () => Promise<T>): Promise<T | undefined> {
    const { runningMax, waitingMax } = this.#options;
    if (this.#keys.has(key)) return undefined;
    if (this.#running >= runningMax) {
      if (!goesFirst && this.#waiting.length >= waitingMax) return undefined;
      this.#keys.add(key);
      await new Promise<void>((go) => (goesFirst ? this.#waiting.unshift(go) : this.#waiting.push(go)));
    } else {
      this.#keys.add(key);
      this.#running++;
    }
    try {
      return await work();
    } finally {
      this.#keys.delete(key);
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running--;
    }
  }
}
