/**
 * Wrap: puts a function of the extension in front of one of the browser's, and keeps its failures from the page.
 */

import { options, OwnProxy } from "../shared/primordials";

/**
 * A function that passes each call of `original` to `call`. A Proxy keeps the name, the length and the source text that
 * `Function.prototype.toString` shows.
 */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export function wrapFunction<F extends (...args: any[]) => any>(
  original: F,
  call: (target: F, receiver: unknown, args: unknown[]) => unknown,
): F {
  const apply = (target: F, receiver: unknown, args: unknown[]): unknown => call(target, receiver, args);
  return new OwnProxy(original, options({ apply }));
}

/** What `action` gives; undefined if functions of the page make it fail. */
export function attempt<Value>(action: () => Value): Value | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}
