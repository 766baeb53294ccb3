/**
 * CSV (RFC 4180): one cell. A text that a spreadsheet would take for a formula has an apostrophe before it, which
 * reading back takes off again; numbers stay as they are. Imports nothing, so that the page shares it.
 */

/** Texts with apostrophes before what begins a formula have one more, so that each reads back as it was. */
const FORMULA = /^'*[=+\-@\t\r\n]/;
const GUARDED = /^'+[=+\-@\t\r\n]/;

/** Nothing where there is no value; an empty text is `""`. */
export function csvCell(cell: unknown): string {
  if (cell === null || cell === undefined) return "";
  const text = typeof cell === "string" && FORMULA.test(cell) ? `'${cell}` : String(cell);
  return text === "" || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A text that csvCell wrote and a reader of CSV read, as it was before. */
export const withoutGuard = (text: string): string => (GUARDED.test(text) ? text.slice(1) : text);
