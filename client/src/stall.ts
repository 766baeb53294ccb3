/** Tells when nothing has come for too long. Time spent waiting for the reader does not count. */
export class StallWatch {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private begun = false;

  constructor(
    private readonly firstMs: number,
    private readonly nextMs: number,
    private readonly onStall: (silentMs: number) => void,
  ) {
    this.arm();
  }

  progress(): void {
    this.begun = true;
    this.arm();
  }

  /** Until the next `progress`. */
  pause(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private arm(): void {
    clearTimeout(this.timer);
    const ms = this.begun ? this.nextMs : this.firstMs;
    this.timer = setTimeout(() => this.onStall(ms), ms);
  }
}
