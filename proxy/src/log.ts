/**
 * Log: JSON lines, one per decision. No field may contain a client's address, a path or a query string: the log of a
 * proxy must not reveal who watched what.
 */
export type LogFields = Record<string, string | number | boolean | null | undefined>;
export type Log = (event: string, fields?: LogFields) => void;

export function jsonLog(name: string, write: (line: string) => void): Log {
  return (event, fields = {}) =>
    write(`${JSON.stringify({ at: new Date().toISOString(), proxy: name, event, ...fields })}\n`);
}

/** The host and port of a URL. Nothing else of a URL may be logged. */
export function hostForLog(url: string): string {
  return URL.canParse(url) ? new URL(url).host : "(not a URL)";
}
