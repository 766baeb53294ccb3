/**
 * Natives: the browser's own functions, kept before a script of the page could replace them.
 */
export const natives = {
  fetch: window.fetch.bind(window),
  Request: window.Request,
  Response: window.Response,
  Headers: window.Headers,
  ReadableStream: window.ReadableStream,
  AbortController: window.AbortController,
  setTimeout: window.setTimeout.bind(window),
  clearTimeout: window.clearTimeout.bind(window),
};
export type Natives = typeof natives;

/**
 * A function that passes each call of `original` to `call`. A Proxy keeps the name, the length and the source text that
 * `Function.prototype.toString` shows.
 */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export function wrapFunction<F extends (...args: any[]) => any>(
  original: F,
  call: (target: F, receiver: unknown, args: unknown[]) => unknown,
): F {
  return new Proxy(original, {
    apply: (target, receiver, args: unknown[]) => call(target, receiver, args) as ReturnType<F>,
  });
}
