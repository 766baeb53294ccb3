/**
 * The sections of docs/measurements.md that commands write: each between two marks that name it and its command.
 * What lies outside the marks is people's.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

const DOCUMENT = path.resolve(__dirname, "../../../docs/measurements.md");

/** A table as Markdown has it. */
export function markdownTable(head: readonly string[], lines: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...lines].map((line) => `| ${line.join(" | ")} |`).join("\n");
}

/** `document` with `text` as the section `name`: in the old one's place, else at the end. */
export function withSection(document: string, name: string, command: string, text: string): string {
  const end = `<!-- ${name}: end -->`;
  const marked = `<!-- ${name}: begin, made by ${command} -->\n\n${text.trim()}\n\n${end}`;
  const [from, to] = [document.indexOf(`<!-- ${name}: begin`), document.indexOf(end)];
  if (from >= 0 && to > from) return document.slice(0, from) + marked + document.slice(to + end.length);
  return `${document.trimEnd()}\n\n${marked}\n`;
}

/** Writes the section into docs/measurements.md. */
export function writeSection(name: string, command: string, text: string): void {
  writeFileSync(DOCUMENT, withSection(existsSync(DOCUMENT) ? readFileSync(DOCUMENT, "utf8") : "", name, command, text));
}
