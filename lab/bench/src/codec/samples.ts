/**
 * What was measured. A sample is the median seconds an operation of one round. The rounds of a group go A B A B, so a
 * ratio is the median of the ratios of the rounds.
 */
import { median } from "../kit/figures";
import { caseKey, type Case } from "./cases";

export interface Measured {
  readonly case: Case;
  /** Seconds an operation, by round. */
  readonly seconds: readonly number[];
}

/** Bytes that one operation produces. */
export const outputBytesOf = (c: Case): number => c.outputs * c.symbolBytes;

export const outputBytesPerSec = (measured: Measured): number =>
  outputBytesOf(measured.case) / median(measured.seconds);

/** Output bytes a second of `a` over those of `b`. Both are of one group. */
export function speedRatio(a: Measured, b: Measured): number {
  const [bytesA, bytesB] = [outputBytesOf(a.case), outputBytesOf(b.case)];
  return median(
    a.seconds.slice(0, b.seconds.length).map((seconds, round) => bytesA / seconds / (bytesB / b.seconds[round]!)),
  );
}

/** The measured cases of one group, found by what they are. */
export class GroupSamples {
  readonly #byKey = new Map<string, Measured>();

  constructor(
    readonly name: string,
    measured: readonly Measured[],
  ) {
    for (const one of measured) this.#byKey.set(caseKey(one.case), one);
  }

  all(): Measured[] {
    return [...this.#byKey.values()];
  }

  /** The fastest of the cases that agree with `wanted`. */
  fastest(wanted: Partial<Omit<Case, "path">> & { path?: string | readonly string[] }): Measured | undefined {
    const { path, ...rest } = wanted;
    const paths = path === undefined ? undefined : typeof path === "string" ? [path] : path;
    const fitting = this.all().filter(
      ({ case: c }) =>
        (paths === undefined || paths.includes(c.path)) &&
        Object.entries(rest).every(([name, value]) => c[name as keyof Case] === value),
    );
    return fitting.sort((a, b) => outputBytesPerSec(b) - outputBytesPerSec(a))[0];
  }
}
