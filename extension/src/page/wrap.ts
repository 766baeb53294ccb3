/**
 * Wrap: puts a function of the extension in front of one of the browser's, and keeps its failures from the page.
 */

import {
  apply,
  defineProperty,
  functions,
  getOwnPropertyDescriptor,
  Notes,
  options,
  OwnProxy,
  setPrototypeOf,
} from "../shared/primordials";

// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type AnyFunction = (...args: any[]) => any;

const originals = new Notes<object, AnyFunction>();

/** A function that passes each call of `original` to `call`. A Proxy keeps the name and the length. */
export function wrapFunction<F extends AnyFunction>(
  original: F,
  call: (target: F, receiver: unknown, args: unknown[]) => unknown,
): F {
  const pass = (target: F, receiver: unknown, args: unknown[]): unknown => {
    // An argument that is not given would be looked up in what the page has made of arrays.
    setPrototypeOf(args, null);
    return call(target, receiver, args);
  };
  const wrapped = new OwnProxy(original, options({ apply: pass }));
  originals.set(wrapped, original);
  return wrapped;
}

/** Has `toString` tell the originals' source texts. That of a Proxy has no name. */
export function keepSourceTexts(): void {
  patchProperty(
    functions,
    "toString",
    "value",
    (target, wrapped, args) => apply(target, originals.get(wrapped as object) ?? wrapped, args) as unknown,
  );
}

/** Puts `call` in front of a method (`value`) or an accessor of all objects with that prototype, if they have it. */
export function patchProperty(
  prototype: object,
  name: string,
  kind: "value" | "get" | "set",
  call: (target: AnyFunction, receiver: unknown, args: unknown[]) => unknown,
): void {
  const found = getOwnPropertyDescriptor(prototype, name);
  const descriptor = found && options(found);
  const original = descriptor?.[kind] as AnyFunction | undefined;
  if (original !== undefined)
    defineProperty(prototype, name, options({ ...descriptor, [kind]: wrapFunction(original, call) }));
}

/** What `action` gives; undefined if functions of the page make it fail. */
export function attempt<Value>(action: () => Value): Value | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}
