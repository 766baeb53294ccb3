/** What checking costs, from samples that were made in turns. */
import { median } from "../kit/figures";

/** The share of `whole` that is more than `without`: the median over the turns. Negative if `whole` is less. */
export const shareOfMore = (whole: readonly number[], without: readonly number[]): number =>
  median(whole.map((value, turn) => 1 - without[turn]! / value));

/** How many round trips later `later` came than `before`: the median over the turns. */
export const roundTripsMore = (later: readonly number[], before: readonly number[], rttMs: number): number =>
  median(later.map((ms, turn) => (ms - before[turn]!) / rttMs));
