/**
 * Natives: the browser's own functions, kept before a script of the page could replace them.
 */
/** `Reflect.apply`: unlike `call` of a function, a page cannot replace it afterwards. */
const { apply } = Reflect;
const xhr = Object.getOwnPropertyDescriptors(XMLHttpRequest.prototype) as Record<string, PropertyDescriptor>;
const { addEventListener, dispatchEvent } = EventTarget.prototype;
const { stopImmediatePropagation, preventDefault } = Event.prototype;
const { startsWith } = String.prototype;
const { postMessage, start, close } = MessagePort.prototype;
const { CustomEvent: NativeEvent, Event: PlainEvent, ProgressEvent: NativeProgress } = window;

/** Reads the property `name`, also after a script of the page has replaced it. */
function getterOf<Owner extends object, Name extends keyof Owner & string>(
  { prototype }: { prototype: Owner },
  name: Name,
): (of: Owner) => Owner[Name] {
  const { get } = Object.getOwnPropertyDescriptor(prototype, name)!;
  return (of) => apply(get!, of, []) as Owner[Name];
}

/** Frozen, because a script of the page can get it: it can pass for the carrying script. */
export const natives = Object.freeze({
  fetch: window.fetch.bind(window),
  Request: window.Request,
  Response: window.Response,
  Headers: window.Headers,
  ReadableStream: window.ReadableStream,
  XMLHttpRequest: window.XMLHttpRequest,
  AbortController: window.AbortController,
  requestUrl: getterOf(window.Request, "url"),
  responseUrl: getterOf(window.Response, "url"),
  getXhr: (name: string, of: XMLHttpRequest): unknown => apply(xhr[name]!.get!, of, []),
  setXhr: (name: string, of: XMLHttpRequest, value: unknown): void => apply(xhr[name]!.set!, of, [value]),
  callXhr: (name: string, of: XMLHttpRequest, ...args: unknown[]): unknown =>
    apply(xhr[name]!.value as () => unknown, of, args),
  apply,
  listen: <E extends Event = ProgressEvent>(to: EventTarget, type: string, listener: (event: E) => void): void =>
    apply(addEventListener, to, [type, listener, to === window]),
  send: (port: MessagePort, message: unknown, transfer: Transferable[]): void =>
    apply(postMessage, port, [message, transfer]),
  start: (port: MessagePort): void => apply(start, port, []),
  close: (port: MessagePort): void => apply(close, port, []),
  /** Tells the content script. True if it cancels the event. */
  tell: (type: string): boolean => !apply(dispatchEvent, document, [new NativeEvent(type, { cancelable: true })]),
  /** Dispatches a plain event. */
  fire: (to: EventTarget, type: string): void => void apply(dispatchEvent, to, [new PlainEvent(type)]),
  fireProgress: (to: EventTarget, type: string, progress: ProgressEventInit): void =>
    void apply(dispatchEvent, to, [new NativeProgress(type, progress)]),
  origin: getterOf(MessageEvent, "origin"),
  data: getterOf(MessageEvent, "data"),
  ports: getterOf(MessageEvent, "ports"),
  detail: getterOf(CustomEvent, "detail"),
  hide: (event: Event): void => apply(stopImmediatePropagation, event, []),
  cancel: (event: Event): void => apply(preventDefault, event, []),
  startsWith: (text: string, start: string): boolean => apply(startsWith, text, [start]),
  play: HTMLMediaElement.prototype.play,
  setTimeout: window.setTimeout.bind(window),
  clearTimeout: window.clearTimeout.bind(window),
});
export type Natives = typeof natives;
