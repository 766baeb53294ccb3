/**
 * Natives: the browser's own functions, bound to this page before a script of the page could replace them.
 */
import { keptOf } from "../shared/kept";
import { apply, freeze, getterOf, globalOf, methodOf, options } from "../shared/primordials";

const xhr = keptOf("XMLHttpRequest")!.members;
const { addEventListener, dispatchEvent } = EventTarget.prototype;
const { postMessage } = MessagePort.prototype;
const { CustomEvent: NativeEvent, Event: PlainEvent, ProgressEvent: NativeProgress } = window;

/** Frozen, because a script of the page can get it: it can pass for the carrying script. */
export const natives = freeze({
  fetch: window.fetch.bind(window),
  Request: window.Request,
  XMLHttpRequest: window.XMLHttpRequest,
  getXhr: (name: string, of: XMLHttpRequest): unknown => apply(xhr[name]!.get!, of, []),
  setXhr: (name: string, of: XMLHttpRequest, value: unknown): void => apply(xhr[name]!.set!, of, [value]),
  callXhr: (name: string, of: XMLHttpRequest, ...args: unknown[]): unknown =>
    apply(xhr[name]!.value as () => unknown, of, args),
  apply,
  listen: <E extends Event = ProgressEvent>(to: EventTarget, type: string, listener: (event: E) => void): void =>
    apply(addEventListener, to, [type, listener, to === window]),
  send: (port: MessagePort, message: unknown, transfer: Transferable[]): void =>
    apply(postMessage, port, transfer.length === 0 ? [message] : [message, transfer]),
  start: methodOf<MessagePort, [], void>("MessagePort", "start"),
  close: methodOf<MessagePort, [], void>("MessagePort", "close"),
  /** Tells the content script. True if it cancels the event. */
  tell: (type: string, detail?: string): boolean =>
    !apply(dispatchEvent, document, [new NativeEvent(type, options({ cancelable: true, detail }))]),
  /** Dispatches a plain event. */
  fire: (to: EventTarget, type: string): void => void apply(dispatchEvent, to, [new PlainEvent(type)]),
  fireProgress: (to: EventTarget, type: string, progress: ProgressEventInit): void =>
    void apply(dispatchEvent, to, [new NativeProgress(type, options(progress))]),
  hide: methodOf<Event, [], void>("Event", "stopImmediatePropagation"),
  cancel: methodOf<Event, [], void>("Event", "preventDefault"),
  play: HTMLMediaElement.prototype.play,
  setTimeout: window.setTimeout.bind(window),
  clearTimeout: window.clearTimeout.bind(window),
});
export type Natives = typeof natives;

export const originOf = getterOf("MessageEvent", "origin");
export const dataOf = getterOf("MessageEvent", "data");
export const portsOf = getterOf("MessageEvent", "ports");
export const detailOf = getterOf("CustomEvent", "detail");
export const blockedUri = getterOf("SecurityPolicyViolationEvent", "blockedURI");
export const dispositionOf = getterOf("SecurityPolicyViolationEvent", "disposition");

const baseUri = getterOf("Node", "baseURI");
const charset = getterOf("Document", "characterSet");
/** What the document tells. */
export const page = { baseUri: (): string => baseUri(document), charset: (): string => charset(document) };
export const videoCountOf = getterOf("HTMLCollection", "length");
export const stopMutations = methodOf<MutationObserver, [], void>("MutationObserver", "disconnect");

export const VideoElement = globalOf("HTMLVideoElement");
export const videoOf = {
  url: getterOf("HTMLMediaElement", "currentSrc"),
  preload: getterOf("HTMLMediaElement", "preload"),
};
