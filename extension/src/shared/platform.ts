/**
 * Platform: readers and methods of the browser's objects, as they were before a script of the page could replace them.
 * What the language itself has is in primordials.ts.
 */
import { add, getterOf, globalOf, methodOf, readerOf } from "./primordials";

export const requestOf = readerOf(
  "Request",
  "url",
  "method",
  "headers",
  "mode",
  "credentials",
  "cache",
  "redirect",
  "referrer",
  "referrerPolicy",
  "integrity",
  "keepalive",
  "signal",
);
export const isAborted = getterOf("AbortSignal", "aborted");
export const responseOf = readerOf("Response", "url", "status", "statusText", "headers");
export const bodyOf = getterOf("Response", "body");
export const headerOf = methodOf<Headers, [string], string | null>("Headers", "get");
export const forEach = methodOf<Headers, [(value: string, name: string) => void], void>("Headers", "forEach");

export function headersOf(headers: Headers): [string, string][] {
  const list: [string, string][] = [];
  forEach(headers, (value, name) => add(list, [name, value]));
  return list;
}

export const wholeBody = methodOf<Response, [], Promise<ArrayBuffer>>("Response", "arrayBuffer");
export const cancelBody = methodOf<ReadableStream, [], Promise<void>>("ReadableStream", "cancel");

const now = methodOf<Performance, [], number>("Performance", "now");
export const clock = globalOf("performance");
/** Since the page's start. */
export const pageMs = (): number => now(clock);

export const eventOf = readerOf("Event", "type", "target");
export const detailOf = getterOf("CustomEvent", "detail");
export const loadedOf = getterOf("ProgressEvent", "loaded");

/** Resource Timing. */
export const Observer = globalOf("PerformanceObserver");
export const observe = methodOf<PerformanceObserver, [PerformanceObserverInit], void>("PerformanceObserver", "observe");
export const takeRecords = methodOf<PerformanceObserver, [], PerformanceEntryList>(
  "PerformanceObserver",
  "takeRecords",
);
export const entriesOf = methodOf<PerformanceObserverEntryList, [], PerformanceEntryList>(
  "PerformanceObserverEntryList",
  "getEntries",
);
export const entryOf = readerOf("PerformanceEntry", "name", "startTime");

export const select = methodOf<Document, [string], NodeListOf<Element>>("Document", "querySelectorAll");
export const nodeCount = getterOf("NodeList", "length");
