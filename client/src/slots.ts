/** A number of slots, which may change; whoever finds none free waits, first come first served. */
export class Slots {
  private taken = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly most: () => number) {}

  async take(): Promise<void> {
    if (this.taken < this.most()) this.taken++;
    else await new Promise<void>((resolve) => this.waiting.push(resolve));
  }

  give(): void {
    this.taken--;
    for (let next; this.taken < this.most() && (next = this.waiting.shift()); next()) this.taken++;
  }
}
