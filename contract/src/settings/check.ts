/** Check: says what is wrong with the value of a setting. Origo and its dashboard share it, so their limits agree. */
import type { SettingRow } from "./row";

export interface SettingFault {
  message: string;
  /** Given if a number is out of its range. */
  numbers?: { got: number; limit: number };
}

/** The parts of a row that decide whether a value is allowed. */
export interface Allowed {
  type: SettingRow["type"];
  min?: number | undefined;
  max?: number | undefined;
  options?: readonly string[] | undefined;
}

/** Undefined if the value is allowed. */
export function settingFault({ type, min, max, options = [] }: Allowed, value: unknown): SettingFault | undefined {
  switch (type) {
    case "boolean":
      return typeof value === "boolean" ? undefined : fault("true or false", value);
    case "choice":
      return options.includes(value as string) ? undefined : fault(`one of ${options.join(", ")}`, value);
    case "integer":
      if (typeof value !== "number" || !Number.isInteger(value)) return fault("a whole number", value);
      if (min !== undefined && value < min) return outOfRange("at least", min, value);
      return max !== undefined && value > max ? outOfRange("at most", max, value) : undefined;
  }
}

const fault = (allowed: string, got: unknown): SettingFault => ({ message: `must be ${allowed}, got ${textOf(got)}` });

const outOfRange = (bound: string, limit: number, got: number): SettingFault => ({
  ...fault(`${bound} ${textOf(limit)}`, got),
  numbers: { got, limit },
});

/** `8,388,608`, `0.5`, `"text"`. */
export const textOf = (value: unknown): string => {
  if (typeof value === "number") return Number.isInteger(value) ? value.toLocaleString("en") : String(value);
  return JSON.stringify(value) ?? String(value);
};
