/**
 * Costs: what coding takes of the event loop's time, by measurement: a symbol that is made on the loop, and a batch
 * that is handed to the coder service. It says which of the two is cheaper for a batch (ADR 0007).
 */

const SAMPLE_WEIGHT = 1 / 16;

export class Costs {
  /** For a million multiplied bytes on the loop: output bytes times the symbols of the generation. */
  inlineMsPerMega: number | undefined;
  /** For one batch that goes to the service and comes back. Infinity while nothing is handed over. */
  handoverMs = Infinity;

  noteInline(work: number, ms: number): void {
    const sample = (ms * 1e6) / work;
    const known = this.inlineMsPerMega;
    // A sample that is far too long has another process in it.
    const bounded = known === undefined ? sample : Math.min(sample, 4 * known);
    this.inlineMsPerMega = known === undefined ? sample : known + SAMPLE_WEIGHT * (bounded - known);
  }

  /** Whether the service is cheaper for a batch of `work` multiplied bytes. */
  prefersService(work: number): boolean {
    return this.inlineMsPerMega !== undefined && (work / 1e6) * this.inlineMsPerMega > this.handoverMs;
  }
}
