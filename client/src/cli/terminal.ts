/** Text for people. Servers and names of files choose parts of it, so control characters never reach the terminal. */
import { withoutPasswords } from "../errors";

/**
 * C0 and C1 controls without the line feed, DEL, and the characters that change the direction of text or end a line.
 * Escape sequences begin with one of them.
 */
// eslint-disable-next-line no-control-regex
const CONTROLS = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** The text with each control character as its code, e.g. `\u{1b}`. */
export function printable(text: string): string {
  return text.replace(CONTROLS, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);
}

/** JSON of one line. It is valid JSON, and no control character is left in it. */
export function jsonLine(value: unknown): string {
  const escape = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return `${JSON.stringify(value).replace(CONTROLS, escape)}\n`;
}

/** Writes to standard error. */
export function say(text: string): void {
  process.stderr.write(printable(withoutPasswords(text)));
}

/** Writes to standard output. */
export function print(text: string): void {
  process.stdout.write(printable(text));
}

/** The last line of a terminal, which is drawn again and again. Does nothing where standard error is no terminal. */
export class LiveLine {
  readonly isShown = process.stderr.isTTY;
  #isOpen = false;

  /** Draws the line that `format` makes for a width. */
  draw(format: (columns: number) => string): void {
    if (!this.isShown) return;
    this.#isOpen = true;
    process.stderr.write(`\r\x1b[K${printable(format(process.stderr.columns - 1))}`);
  }

  /** Makes room for a sentence where the line was. */
  clear(): void {
    if (this.#isOpen) process.stderr.write("\r\x1b[K");
  }

  /** Leaves the line as it was drawn last. */
  end(): void {
    if (this.#isOpen) process.stderr.write("\n");
    this.#isOpen = false;
  }
}
