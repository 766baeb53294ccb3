/**
 * Natives: the browser's own functions, kept before a script of the page could replace them.
 */
const xhr = Object.getOwnPropertyDescriptors(XMLHttpRequest.prototype) as Record<string, PropertyDescriptor>;
const { addEventListener } = EventTarget.prototype;

/** Reads `url`, also after a script of the page has replaced the property. */
function urlGetter({ prototype }: { prototype: Request | Response }): (of: Request | Response) => string {
  const { get } = Object.getOwnPropertyDescriptor(prototype, "url")!;
  return (of) => get!.call(of) as string;
}

const subtle = window.crypto.subtle as SubtleCrypto | undefined;
const digest = subtle?.digest.bind(subtle);
const sha256 =
  digest === undefined ? undefined : (bytes: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer> => digest("SHA-256", bytes);

export const natives = {
  fetch: window.fetch.bind(window),
  /** SHA-256. Pages over http have none. */
  digest: sha256,
  Request: window.Request,
  Response: window.Response,
  Headers: window.Headers,
  ReadableStream: window.ReadableStream,
  XMLHttpRequest: window.XMLHttpRequest,
  AbortController: window.AbortController,
  requestUrl: urlGetter(window.Request),
  responseUrl: urlGetter(window.Response),
  getXhr: (name: string, of: XMLHttpRequest): unknown => xhr[name]!.get!.call(of),
  setXhr: (name: string, of: XMLHttpRequest, value: unknown): void => xhr[name]!.set!.call(of, value),
  callXhr: (name: string, of: XMLHttpRequest, ...args: unknown[]): unknown =>
    (xhr[name]!.value as (...args: unknown[]) => unknown).apply(of, args),
  listen: (to: EventTarget, type: string, listener: (event: ProgressEvent) => void): void =>
    addEventListener.call(to, type, listener as (event: Event) => void),
  play: HTMLMediaElement.prototype.play,
  setTimeout: window.setTimeout.bind(window),
  clearTimeout: window.clearTimeout.bind(window),
};
export type Natives = typeof natives;
