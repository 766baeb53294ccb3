/**
 * Format: writes numbers for the page. Pure. One MB is 1,000,000 bytes, as in the paper's tables.
 */
export const NONE = "–";

export function count(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ",");
}

/** `1 request`, `2,000 requests`. */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** About three significant digits: `812 B`, `4.10 kB`, `1.62 MB`, `12.4 GB`. */
export function bytes(value: number): string {
  if (value < 1000) return `${Math.round(value)} B`;
  const units = ["kB", "MB", "GB", "TB", "PB"];
  let scaled = value / 1000;
  let unit = 0;
  while (scaled >= 999.5 && unit < units.length - 1) {
    scaled /= 1000;
    unit++;
  }
  return `${scaled.toFixed(scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0)} ${units[unit] ?? ""}`;
}

/** Always in MB/s, so that rows are easy to compare. */
export function rate(bytesPerSec: number | null | undefined): string {
  return bytesPerSec === null || bytesPerSec === undefined || !Number.isFinite(bytesPerSec)
    ? NONE
    : `${(bytesPerSec / 1e6).toFixed(2)} MB/s`;
}

/** `0.271 s`: three decimals, as in the paper's list. */
export function seconds(ms: number | null | undefined): string {
  return ms === null || ms === undefined ? NONE : `${(ms / 1000).toFixed(3)} s`;
}

/** A place on Earth to 0.1 degrees: `47.5°, 19.1°`. */
export function degrees({ lat, lon }: { lat: number; lon: number }): string {
  return `${lat.toFixed(1)}°, ${lon.toFixed(1)}°`;
}

export function ratio(value: number): string {
  return value.toFixed(3);
}

/** `45 s`, `3 min 20 s`, `5 h 02 min`, `3 d 4 h`. */
export function span(ms: number): string {
  const s = Math.floor(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} min`;
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3600)} h`;
}

/** The local time of day, with the date before it when that is not the day of `nowMs`. */
export function clock(epochMs: number, nowMs: number): string {
  const at = new Date(epochMs);
  const two = (value: number): string => String(value).padStart(2, "0");
  const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  if (at.toDateString() === new Date(nowMs).toDateString()) return time;
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${time}`;
}

/** The last part of a URL's path, decoded where possible, or the host when the path is empty. */
export function leaf(url: string): string {
  const { host, pathname } = new URL(url);
  const last = pathname
    .split("/")
    .filter((part) => part !== "")
    .pop();
  if (last === undefined) return host;
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}

/** A number with three significant digits and a fitting unit: `279 ms`, `1.23 s`, `896 kB/s`, `1.62 MB`, `0.887`. */
export function quantity(value: number, unit: string | null): string {
  if (!Number.isFinite(value)) return NONE;
  const sign = value < 0 ? "-" : "";
  const size = Math.abs(value);
  if (unit === "ms") return size < 1000 ? `${sign}${digits(size)} ms` : `${sign}${digits(size / 1000)} s`;
  if (unit === "B") return `${sign}${bytes(size)}`;
  if (unit === "B/s") return `${sign}${bytes(size)}/s`;
  return unit === null || unit === "" ? `${sign}${digits(size)}` : `${sign}${digits(size)} ${unit}`;
}

function digits(value: number): string {
  if (value >= 1000) return count(value);
  return Number(value.toPrecision(3)).toString();
}

/** A cell of the table of downloads. A column has one unit, so that rows are easy to compare. */
export function cellOf(
  value: string | number | boolean | null,
  type: "number" | "text" | "time" | "boolean",
  unit: string | null,
  nowMs: number,
): string {
  if (value === null || value === "") return NONE;
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return value;
  if (type === "time") return clock(value, nowMs);
  if (unit === "ms") return value !== 0 && value < 10 ? quantity(value, unit) : seconds(value);
  if (unit === "B/s") return rate(value);
  if (unit === null && !Number.isInteger(value) && Math.abs(value) < 10) return ratio(value);
  return quantity(value, unit);
}
