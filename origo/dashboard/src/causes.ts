/**
 * Causes: groups the reports of errors by their cause. One cause at one download is reported once for each proxy, and
 * again as the reason of a fallback. So reports that differ only in the proxy, the time, the client and what they led
 * to are one row. Pure.
 */
import type { ErrorReport } from "@tributary/contract/schema";

export interface Cause {
  latest: ErrorReport;
  /** How often one proxy had it, or the client itself: the largest of these numbers. */
  count: number;
  /** The names of the proxies in the messages, in alphabetical order. */
  proxies: string[];
  clientIds: string[];
  ledTo: ErrorReport["ledTo"];
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
  const groups = new Map<string, ErrorReport[]>();
  for (const error of errors) {
    const key = JSON.stringify([error.source, error.kind, messageOf(error).text, error.url]);
    groups.set(key, [...(groups.get(key) ?? []), error]);
  }
  return [...groups.values()].map(causeOf);
}

function causeOf(errors: ErrorReport[]): Cause {
  const counts = new Map<string, number>();
  const proxies = new Set<string>();
  for (const error of errors) {
    const { proxy } = messageOf(error);
    if (proxy !== undefined) proxies.add(proxy);
    const key = JSON.stringify([proxy, error.ledTo]);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return {
    latest: errors[0] as ErrorReport,
    count: Math.max(...counts.values()),
    proxies: [...proxies].sort(),
    clientIds: [...new Set(errors.flatMap(({ clientId }) => clientId ?? []))],
    ledTo: errors.find(({ ledTo }) => ledTo !== undefined)?.ledTo,
  };
}
