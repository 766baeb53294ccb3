/** Limits how many tasks run at once. The limit may change. Waiting tasks get free slots in order of arrival. */
export class Slots {
  #taken = 0;
  readonly #waiting: (() => void)[] = [];

  readonly #most: () => number;

  constructor(most: () => number) {
    this.#most = most;
  }

  async take(): Promise<void> {
    if (this.#taken < this.#most()) this.#taken++;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  give(): void {
    this.#taken--;
    for (let next; this.#taken < this.#most() && (next = this.#waiting.shift()); next()) this.#taken++;
  }
}
