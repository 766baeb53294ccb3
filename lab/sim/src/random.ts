/**
 * Random streams of a simulation. Each use draws from its own stream, which the run's seed and two numbers identify.
 * One more link, or one more draw on a link, changes nothing on the others, so runs can be compared in pairs. The
 * generator is sfc32 (Doty-Humphrey, PractRand), started by the finalizer of MurmurHash3.
 */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number, stream = 0, part = 0) {
    this.#a = mixed(seed ^ 0x9e3779b9);
    this.#b = mixed(this.#a ^ Math.imul(stream + 1, 0x85ebca6b));
    this.#c = mixed(this.#b ^ Math.imul(part + 1, 0xc2b2ae35));
    for (let i = 0; i < 12; i++) this.u32();
  }

  u32(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  /** Uniform in [0, 1). */
  unit(): number {
    return this.u32() / 0x1_0000_0000;
  }
}

function mixed(value: number): number {
  let z = value | 0;
  z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
  z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
  return z ^ (z >>> 16);
}
