/**
 * Natives: the browser's own functions, bound to this page before a script of the page could replace them.
 */
import { keptOf } from "../shared/kept";
import { detailOf } from "../shared/platform";
import { apply, freeze, getterOf, globalOf, methodOf, options } from "../shared/primordials";

const xhr = keptOf("XMLHttpRequest")!.members;
const { addEventListener } = EventTarget.prototype;
const { postMessage } = MessagePort.prototype;
const dispatch = methodOf<EventTarget, [Event], boolean>("EventTarget", "dispatchEvent");
const { CustomEvent: NativeEvent, Event: PlainEvent } = window;

export const listen = <E extends Event = ProgressEvent>(
  to: EventTarget,
  type: string,
  listener: (event: E) => void,
): void => apply(addEventListener, to, [type, listener, to === window]);

export const getXhr = (name: string, of: XMLHttpRequest): unknown => apply(xhr[name]!.get!, of, []);

/** Tells the content script. True if it cancels the event. */
export const tell = (type: string, detail?: string): boolean =>
  !dispatch(document, new NativeEvent(type, options({ cancelable: true, detail })));

/** Frozen, because a script of the page can get it: it can pass for the carrying script. */
export const natives = freeze({
  fetch: window.fetch.bind(window),
  Request: window.Request,
  XMLHttpRequest: window.XMLHttpRequest,
  getXhr,
  apply,
  listen,
  dispatch,
  /** Dispatches a plain event. */
  fire: (to: EventTarget, type: string): void => void dispatch(to, new PlainEvent(type)),
  play: HTMLMediaElement.prototype.play,
  setTimeout: window.setTimeout.bind(window),
  clearTimeout: window.clearTimeout.bind(window),
});
export type Natives = typeof natives;

export const hide = methodOf<Event, [], void>("Event", "stopImmediatePropagation");
export const cancel = methodOf<Event, [], void>("Event", "preventDefault");
export const start = methodOf<MessagePort, [], void>("MessagePort", "start");
export const close = methodOf<MessagePort, [], void>("MessagePort", "close");
export const send = (port: MessagePort, message: unknown, transfer: Transferable[]): void =>
  apply(postMessage, port, transfer.length === 0 ? [message] : [message, transfer]);

export const originOf = getterOf("MessageEvent", "origin");
export const dataOf = getterOf("MessageEvent", "data");
export const portsOf = getterOf("MessageEvent", "ports");
/** Hears what an event of the extension's other scripts tells. */
export const hear = <Detail>(type: string, listener: (detail: Detail) => void): void =>
  listen<CustomEvent<Detail>>(document, type, (event) => listener(detailOf(event) as Detail));
export const blockedUri = getterOf("SecurityPolicyViolationEvent", "blockedURI");
export const dispositionOf = getterOf("SecurityPolicyViolationEvent", "disposition");

const baseUri = getterOf("Node", "baseURI");
const charset = getterOf("Document", "characterSet");
/** What the document tells. */
export const page = { baseUri: (): string => baseUri(document), charset: (): string => charset(document) };
export const stopMutations = methodOf<MutationObserver, [], void>("MutationObserver", "disconnect");

export const VideoElement = globalOf("HTMLVideoElement");
export const videoOf = {
  url: getterOf("HTMLMediaElement", "currentSrc"),
  preload: getterOf("HTMLMediaElement", "preload"),
};
