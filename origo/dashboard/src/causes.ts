/**
 * Causes: groups the reports of errors by their cause. One cause at one download is reported once for each proxy, so
 * reports that differ only in the proxy, the time and the client are one row. Pure.
 */
import type { ErrorReport } from "@tributary/contract/schema";

export interface Cause {
  latest: ErrorReport;
  count: number;
  /** The names of the proxies in the messages, in alphabetical order. */
  proxies: string[];
}

/** Clients write the name of the proxy before the message. */
const OF_PROXY = /^Proxy (.{1,64}?): (.*)$/s;

/** Splits the name of the proxy from the message. */
export function messageOf({ message }: Pick<ErrorReport, "message">): { proxy: string | undefined; text: string } {
  const [, proxy, text = message] = OF_PROXY.exec(message) ?? [];
  return { proxy, text };
}

/** `errors` are newest first, and so are the causes. */
export function causesOf(errors: readonly ErrorReport[]): Cause[] {
  const causes = new Map<string, Cause>();
  for (const error of errors) {
    const { proxy, text } = messageOf(error);
    const key = JSON.stringify([error.source, error.kind, text, error.url, error.ledTo]);
    const cause = causes.get(key) ?? { latest: error, count: 0, proxies: [] };
    causes.set(key, cause);
    cause.count++;
    if (proxy !== undefined && !cause.proxies.includes(proxy)) cause.proxies = [...cause.proxies, proxy].sort();
  }
  return [...causes.values()];
}
