/**
 * Quantities as people write them in a scenario: "896 KB/s", "25 ms", "2 %", "64 KB". A plain number is in the base
 * unit: bytes per second, milliseconds, a share from 0 to 1, or bytes. Units are decimal: 1 KB is 1,000 bytes. Pure.
 */
export interface Quantity {
  /** The allowed values, for an error message. */
  readonly wanted: string;
  readonly units: Readonly<Record<string, number>>;
  readonly min: number;
  readonly max: number;
}

export const RATE: Quantity = {
  wanted: 'a rate from 100 B/s to 10 GB/s, such as "896 KB/s" or "10 Mbit/s"',
  units: {
    "B/s": 1,
    "KB/s": 1e3,
    "MB/s": 1e6,
    "GB/s": 1e9,
    "KiB/s": 1024,
    "MiB/s": 1_048_576,
    "bit/s": 1 / 8,
    "kbit/s": 125,
    "Mbit/s": 125e3,
    "Gbit/s": 125e6,
  },
  min: 100,
  max: 1e10,
};

export const TIME: Quantity = {
  wanted: 'a time from 0 to 1 h, such as "25 ms" or "5 s"',
  units: { us: 1e-3, ms: 1, s: 1e3, min: 6e4, h: 3.6e6 },
  min: 0,
  max: 3.6e6,
};

export const SHARE: Quantity = {
  wanted: 'a share from 0 to 100 %, such as "2 %"',
  units: { "%": 0.01 },
  min: 0,
  max: 1,
};

export const SIZE: Quantity = {
  wanted: 'a size from 1 B to 1 GB, such as "64 KB"',
  units: { B: 1, KB: 1e3, MB: 1e6, GB: 1e9, KiB: 1024, MiB: 1_048_576 },
  min: 1,
  max: 1e9,
};

/** The value in the base unit. Undefined if it has another form or is out of bounds. */
export function parseQuantity(quantity: Quantity, value: unknown): number | undefined {
  const number = typeof value === "number" ? value : typeof value === "string" ? valueOf(quantity, value) : undefined;
  return number !== undefined && number >= quantity.min && number <= quantity.max ? number : undefined;
}

function valueOf({ units }: Quantity, text: string): number | undefined {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([A-Za-z/%]+)\s*$/.exec(text);
  const factor = match && Object.hasOwn(units, match[2]!) ? units[match[2]!] : undefined;
  // Rounded to 12 digits, so that 2 % is exactly 0.02.
  return factor === undefined ? undefined : Number((Number(match![1]) * factor).toPrecision(12));
}
