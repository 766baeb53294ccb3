/**
 * CSV (RFC 4180): writes and reads one cell. If a spreadsheet would take a text for a formula, an apostrophe is put
 * before it; reading removes the apostrophe. Numbers do not change. The dashboard uses this file too, so it imports
 * nothing.
 */

/** A text that already has apostrophes before such a start gets one more, so that every text reads back unchanged. */
const FORMULA = /^'*[=+\-@\t\r\n]/;
const GUARDED = /^'+[=+\-@\t\r\n]/;

/** The empty cell stands for no value; `""` stands for an empty text. */
export function csvCell(cell: unknown): string {
  if (cell === null || cell === undefined) return "";
  const text = typeof cell === "string" && FORMULA.test(cell) ? `'${cell}` : String(cell);
  return text === "" || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Restores a text that `csvCell` wrote and a CSV reader read. */
export const withoutGuard = (text: string): string => (GUARDED.test(text) ? text.slice(1) : text);
