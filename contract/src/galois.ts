/** Arithmetic in GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1, as the codec's. Addition is XOR. */
const ORDER = 255;
/** The powers of 2, twice in a row, so that a sum of two logarithms needs no division. */
const POWERS = new Uint8Array(2 * ORDER);
const LOGARITHMS = new Uint8Array(ORDER + 1);
for (let exponent = 0, power = 1; exponent < ORDER; exponent++) {
  POWERS[exponent] = POWERS[exponent + ORDER] = power;
  LOGARITHMS[power] = exponent;
  power = (power << 1) ^ (power & 0x80 ? 0x11d : 0);
}

export function product(a: number, b: number): number {
  return a === 0 || b === 0 ? 0 : POWERS[LOGARITHMS[a]! + LOGARITHMS[b]!]!;
}

/** Throws for 0. */
export function inverse(a: number): number {
  if (a === 0) throw new RangeError("0 has no inverse");
  return POWERS[ORDER - LOGARITHMS[a]!]!;
}

/** Adds `coefficient` times `vector` to `sum`, in place. */
export function addProduct(sum: Uint8Array, vector: Uint8Array, coefficient: number): void {
  if (coefficient === 0) return;
  const logarithm = LOGARITHMS[coefficient]!;
  for (let at = 0; at < vector.length; at++)
    if (vector[at] !== 0) sum[at]! ^= POWERS[logarithm + LOGARITHMS[vector[at]!]!]!;
}
