/**
 * Decisions, as JSON lines. Fields are chosen by whoever logs, and none of them may hold a client's address, a path or
 * a query string: a proxy's log must not tell who watched what.
 */
export type LogFields = Record<string, string | number | boolean | null | undefined>;
export type Log = (event: string, fields?: LogFields) => void;

export function jsonLog(name: string, write: (line: string) => void): Log {
  return (event, fields = {}) =>
    write(`${JSON.stringify({ at: new Date().toISOString(), proxy: name, event, ...fields })}\n`);
}

/** The host and port of a URL: all of it that may be logged. */
export function hostForLog(url: string): string {
  return URL.canParse(url) ? new URL(url).host : "(not a URL)";
}
