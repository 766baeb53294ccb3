/** Random draws of the load: who comes when, and what they watch. */
import { Random } from "@tributary/lab-sim";

/** Time until the next arrival of a Poisson process, in ms. */
export const nextArrivalMs = (random: Random, perSec: number): number => (-1000 * Math.log(1 - random.unit())) / perSec;

/** A stay of exponential length, in ms. */
export const stayMs = (random: Random, meanMs: number): number => -meanMs * Math.log(1 - random.unit());

/** Draws channels 0..count-1 by popularity: the share of channel c is proportional to 1 / (c + 1)^exponent. */
export class Zipf {
  readonly #upTo: number[] = [];

  constructor(count: number, exponent: number) {
    let sum = 0;
    for (let rank = 1; rank <= count; rank++) this.#upTo.push((sum += rank ** -exponent));
  }

  draw(random: Random): number {
    const at = random.unit() * this.#upTo.at(-1)!;
    return this.#upTo.findIndex((upTo) => at < upTo);
  }
}
