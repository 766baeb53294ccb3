/**
 * Late platform: what only the scripts that come into a page later use of the browser (platform.ts).
 */
import { clock, entriesOf, forEach, observe, Observer } from "./platform";
import { firstOf, getterOf, globalOf, methodOf, newTable, options, readerOf } from "./primordials";

export const reasonOf = getterOf("AbortSignal", "reason");
export const signalOf = getterOf("AbortController", "signal");
export const abort = methodOf<AbortController, [unknown?], void>("AbortController", "abort");
export const OwnAbortController = globalOf("AbortController");

export const bodyUsedOf = getterOf("Response", "bodyUsed");
export const cloneOf = methodOf<Response, [], Response>("Response", "clone");

/** By name in lower case. */
export function headerTable(headers: Headers): Record<string, string> {
  const table = newTable<string>();
  forEach(headers, (value, name) => void (table[name] = value));
  return table as Record<string, string>;
}

export const wholeBlob = methodOf<Blob, [], Promise<ArrayBuffer>>("Blob", "arrayBuffer");

type Body = ReadableStream<Uint8Array<ArrayBuffer>>;
type Reader = ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;
const getReader = methodOf<Body, [], Reader>("ReadableStream", "getReader");
const readFrom = methodOf<Reader, [], ReturnType<Reader["read"]>>("ReadableStreamDefaultReader", "read");

const cancelReader = methodOf<Reader, [], Promise<void>>("ReadableStreamDefaultReader", "cancel");

/** Reads a body piece by piece: undefined at its end. */
export type Read = () => Promise<Uint8Array<ArrayBuffer> | undefined>;

export function readerOfBody(body: Body): { read: Read; stop(): void } {
  const reader = getReader(body);
  return { read: async () => (await readFrom(reader)).value, stop: () => void drop(cancelReader(reader)) };
}

/** Ends the wait for what may fail. */
export async function drop(ended: Promise<unknown>): Promise<void> {
  try {
    await ended;
  } catch {
    // Nobody needs it.
  }
}

/** Calls `action` once the running script has ended. */
export async function soon(action: () => void): Promise<void> {
  await undefined;
  action();
}

export const OwnProgress = globalOf("ProgressEvent");
export const progressOf = readerOf("ProgressEvent", "loaded", "total", "lengthComputable");

export const resourceOf = readerOf(
  "PerformanceResourceTiming",
  "initiatorType",
  "workerStart",
  "transferSize",
  "decodedBodySize",
);

const entriesByType = methodOf<Performance, [string], PerformanceEntryList>("Performance", "getEntriesByType");
export const resources = (): PerformanceResourceTiming[] =>
  entriesByType(clock, "resource") as PerformanceResourceTiming[];

/** Hears each entry from now on. */
export function hearEntries(wanted: PerformanceObserverInit, hear: (entry: PerformanceEntry) => void): void {
  const note = (list: PerformanceObserverEntryList): void => void firstOf(entriesOf(list), hear);
  observe(new Observer(note), options(wanted));
}

export const rangeCount = getterOf("TimeRanges", "length");
export const startOf = methodOf<TimeRanges, [number], number>("TimeRanges", "start");
export const endOf = methodOf<TimeRanges, [number], number>("TimeRanges", "end");

const serviceWorkerOf = getterOf("Navigator", "serviceWorker");
const browser = globalOf("navigator");
/** Throws where the page may have no service worker. */
export const containerOf = (): ServiceWorkerContainer => serviceWorkerOf(browser);
export const controllerOf = getterOf("ServiceWorkerContainer", "controller");
export const linkOf = getterOf("HTMLLinkElement", "href");

const OwnCustomEvent = globalOf("CustomEvent");
const dispatch = methodOf<EventTarget, [Event], boolean>("EventTarget", "dispatchEvent");
/** Tells the page script that a script has loaded, and what it gives. */
export const announce = (type: string, detail: unknown): void =>
  void dispatch(document, new OwnCustomEvent(type, options({ detail })));
