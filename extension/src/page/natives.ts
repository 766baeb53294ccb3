/**
 * Natives: the browser's own functions, kept before any script of the page could replace them.
 */
export const nativeFetch = window.fetch.bind(window);
export const NativeRequest = window.Request;
export const NativeResponse = window.Response;
export const NativeHeaders = window.Headers;
export const NativeStream = window.ReadableStream;
export const NativeAbortController = window.AbortController;
export const nativeSetTimeout = window.setTimeout.bind(window);
export const nativeClearTimeout = window.clearTimeout.bind(window);

/**
 * `original` with its calls going through `call`. A Proxy keeps name, length and the source text that
 * `Function.prototype.toString` shows.
 */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export function wrapFunction<F extends (...args: any[]) => any>(
  original: F,
  call: (target: F, receiver: unknown, args: unknown[]) => unknown,
): F {
  return new Proxy(original, { apply: (target, receiver, args: unknown[]) => call(target, receiver, args) as ReturnType<F> });
}
