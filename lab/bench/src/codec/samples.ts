/**
 * What was measured, and what may be said of it. A case's samples are its median seconds an operation, one a round; the
 * rounds of a group go A B A B, so a ratio is taken round by round first, and the median of those ratios is the ratio.
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

/** How many times as many output bytes a second `a` makes as `b`; both are of one group. */
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

  /** The fastest of the cases that agree with `wanted`; undefined when there is none. */
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
