/** Tables for a terminal, in Markdown, so that they can be pasted into a document. */

/** Columns are padded to one width. */
export function table(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) =>
    Math.max(3, title.length, ...lines.map((line) => (line[column] ?? "").length)),
  );
  const rule = widths.map((width) => "-".repeat(width));
  return [head, rule, ...lines]
    .map((line) => `| ${widths.map((width, column) => (line[column] ?? "").padEnd(width)).join(" | ")} |`)
    .join("\n");
}

export const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;

export const quartilesText = (
  { q1, median, q3 }: { q1: number; median: number; q3: number },
  digits: number,
  scale = 1,
): string => [q1, median, q3].map((value) => (value * scale).toFixed(digits)).join(" / ");
