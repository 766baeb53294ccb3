/** What a person reads of the rates. Pure: text out. */
import { table } from "../kit/table";
import type { Row } from "./rows";

const megabytes = (bytesPerSec: number): string => Math.round(bytesPerSec / 1e6).toLocaleString("en");

function rowLine(row: Row): string[] {
  const who = row.rival ?? (row.throughAddon ? "ours, through the addon" : "ours");
  return [
    who,
    row.engine === "-" ? "" : row.engine,
    row.runtime,
    row.request,
    String(row.outputs),
    megabytes(row.outputBytesPerSec),
    (row.gfBytesPerSec / 1e9).toFixed(1),
  ];
}

/** The rates of each group of cases, the fastest first. */
export function rateTables(rows: readonly Row[]): string {
  const groups = [...new Set(rows.map((row) => row.group))].filter((group) => !group.startsWith("grid "));
  return groups
    .map((group) => {
      const lines = rows
        .filter((row) => row.group === group)
        .sort((a, b) => b.outputBytesPerSec - a.outputBytesPerSec)
        .map(rowLine);
      return `${group}\n\n${table(["who", "engine or path", "runtime", "timed", "outputs", "MB/s", "GF GB/s"], lines)}`;
    })
    .join("\n\n");
}
