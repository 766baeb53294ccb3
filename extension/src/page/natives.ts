/**
 * Natives: the browser's own functions, kept before a script of the page could replace them. What the language itself
 * has is in primordials.ts.
 */
import { add, apply, freeze, getterOf, methodOf, options, readerOf } from "../shared/primordials";

const xhr = Object.getOwnPropertyDescriptors(XMLHttpRequest.prototype) as Record<string, PropertyDescriptor>;
const { addEventListener, dispatchEvent } = EventTarget.prototype;
const { stopImmediatePropagation, preventDefault } = Event.prototype;
const { postMessage, start, close } = MessagePort.prototype;
const { CustomEvent: NativeEvent, Event: PlainEvent, ProgressEvent: NativeProgress } = window;

/** Frozen, because a script of the page can get it: it can pass for the carrying script. */
export const natives = freeze({
  fetch: window.fetch.bind(window),
  Request: window.Request,
  Response: window.Response,
  Headers: window.Headers,
  ReadableStream: window.ReadableStream,
  XMLHttpRequest: window.XMLHttpRequest,
  AbortController: window.AbortController,
  responseUrl: getterOf(window.Response, "url"),
  getXhr: (name: string, of: XMLHttpRequest): unknown => apply(xhr[name]!.get!, of, []),
  setXhr: (name: string, of: XMLHttpRequest, value: unknown): void => apply(xhr[name]!.set!, of, [value]),
  callXhr: (name: string, of: XMLHttpRequest, ...args: unknown[]): unknown =>
    apply(xhr[name]!.value as () => unknown, of, args),
  apply,
  listen: <E extends Event = ProgressEvent>(to: EventTarget, type: string, listener: (event: E) => void): void =>
    apply(addEventListener, to, [type, listener, to === window]),
  send: (port: MessagePort, message: unknown, transfer: Transferable[]): void =>
    apply(postMessage, port, transfer.length === 0 ? [message] : [message, transfer]),
  start: (port: MessagePort): void => apply(start, port, []),
  close: (port: MessagePort): void => apply(close, port, []),
  /** Tells the content script. True if it cancels the event. */
  tell: (type: string, detail?: string): boolean =>
    !apply(dispatchEvent, document, [new NativeEvent(type, options({ cancelable: true, detail }))]),
  /** Dispatches a plain event. */
  fire: (to: EventTarget, type: string): void => void apply(dispatchEvent, to, [new PlainEvent(type)]),
  fireProgress: (to: EventTarget, type: string, progress: ProgressEventInit): void =>
    void apply(dispatchEvent, to, [new NativeProgress(type, options(progress))]),
  origin: getterOf(MessageEvent, "origin"),
  data: getterOf(MessageEvent, "data"),
  ports: getterOf(MessageEvent, "ports"),
  detail: getterOf(CustomEvent, "detail"),
  blockedUri: getterOf(SecurityPolicyViolationEvent, "blockedURI"),
  disposition: getterOf(SecurityPolicyViolationEvent, "disposition"),
  hide: (event: Event): void => apply(stopImmediatePropagation, event, []),
  cancel: (event: Event): void => apply(preventDefault, event, []),
  play: HTMLMediaElement.prototype.play,
  setTimeout: window.setTimeout.bind(window),
  clearTimeout: window.clearTimeout.bind(window),
});
export type Natives = typeof natives;

export const requestOf = readerOf(
  Request,
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
export const isAborted = getterOf(AbortSignal, "aborted");
export const responseOf = readerOf(Response, "url", "status", "statusText", "headers");
export const bodyOf = getterOf(Response, "body");
export const headerOf = methodOf<Headers, [string], string | null>(Headers.prototype.get);
const forEach = methodOf<Headers, [(value: string, name: string) => void], void>(Headers.prototype.forEach);

export function headersOf(headers: Headers): [string, string][] {
  const list: [string, string][] = [];
  forEach(headers, (value, name) => add(list, [name, value]));
  return list;
}

const baseUri = getterOf(Node, "baseURI");
const charset = getterOf(Document, "characterSet");
const select = methodOf<Document, [string], NodeListOf<Element>>(Document.prototype.querySelectorAll);
const lengthOf = getterOf(NodeList, "length");
/** What the document tells. */
export const page = {
  baseUri: (): string => baseUri(document),
  charset: (): string => charset(document),
  count: (selector: string): number => lengthOf(select(document, selector)),
  nowMs: performance.now.bind(performance),
};
export const videoCountOf = getterOf(HTMLCollection, "length");
export const stopMutations = methodOf<MutationObserver, [], void>(MutationObserver.prototype.disconnect);

export const progressOf = getterOf(ProgressEvent, "loaded");
export const eventOf = readerOf(Event, "type", "target");
export const VideoElement = HTMLVideoElement;
export const videoOf = {
  url: getterOf(HTMLMediaElement, "currentSrc"),
  preload: getterOf(HTMLMediaElement, "preload"),
};

/** Resource Timing. */
export const Observer = PerformanceObserver;
export const observe = methodOf<PerformanceObserver, [PerformanceObserverInit], void>(Observer.prototype.observe);
export const takeRecords = methodOf<PerformanceObserver, [], PerformanceEntryList>(Observer.prototype.takeRecords);
export const entriesOf = methodOf<PerformanceObserverEntryList, [], PerformanceEntryList>(
  PerformanceObserverEntryList.prototype.getEntries,
);
export const entryOf = readerOf(PerformanceEntry, "name", "startTime");

/** Reading a body. */
export const wholeBody = methodOf<Response, [], Promise<ArrayBuffer>>(Response.prototype.arrayBuffer);
export const cancelBody = methodOf<ReadableStream, [], Promise<void>>(ReadableStream.prototype.cancel);
