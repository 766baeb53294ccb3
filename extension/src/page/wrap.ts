/**
 * Wrap: puts a function of the extension in front of one of the browser's.
 */

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
