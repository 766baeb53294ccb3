/**
 * Primordials: the language's own functions, taken before a script of the page could replace them. The page script uses
 * these and natives.ts, and neither iterators nor members of the language's and the browser's objects, which a page can
 * replace at any time. The rule in eslint-primordials.mjs checks it. Not here: what only a document has.
 */
export const { apply, defineProperty, getOwnPropertyDescriptor } = Reflect;
const { freeze } = Object;
export { freeze };
export const parseJson = JSON.parse;
export const OwnURL = URL;
export const OwnPromise = Promise;
export const OwnProxy = Proxy;

type Method<Self, Args extends unknown[], Result> = (self: Self, ...args: Args) => Result;

/** `method` as a function of its object. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export function methodOf<Self, Args extends unknown[], Result>(method: (...args: any[]) => any) {
  return ((self, ...args) => apply(method, self, args)) as Method<Self, Args, Result>;
}

/** Reads the property `name`, also after a script of the page has replaced it. */
export function getterOf<Owner extends object, Name extends keyof Owner & string>(
  { prototype }: { prototype: Owner },
  name: Name,
): (of: Owner) => Owner[Name] {
  const { get } = getOwnPropertyDescriptor(prototype, name)!;
  return (of) => apply(get!, of, []) as Owner[Name];
}

export const startsWith = methodOf<string, [string], boolean>("".startsWith);
export const endsWith = methodOf<string, [string], boolean>("".endsWith);
export const indexOf = methodOf<string, [string, number?], number>("".indexOf);
export const slice = methodOf<string, [number, number?], string>("".slice);
export const trim = methodOf<string, [], string>("".trim);
export const lowerCase = methodOf<string, [], string>("".toLowerCase);
export const upperCase = methodOf<string, [], string>("".toUpperCase);
/** `test` would look for `exec`. */
export const exec = methodOf<RegExp, [string], RegExpExecArray | null>(/^/.exec);
export const matches = (pattern: RegExp, text: string): boolean => exec(pattern, text) !== null;

/** The parts of `text` between separators. `split` would look for `Symbol.split`. */
export function partsOf(text: string, separator: string): string[] {
  const parts: string[] = [];
  let from = 0;
  for (let at = indexOf(text, separator); at >= 0; at = indexOf(text, separator, from)) {
    add(parts, slice(text, from, at));
    from = at + separator.length;
  }
  add(parts, slice(text, from));
  return parts;
}

/** Adds to the end of `list`. */
export function add<Value>(list: Value[], value: Value): void {
  const added = { __proto__: null, value, writable: true, enumerable: true, configurable: true } as PropertyDescriptor;
  defineProperty(list, list.length, added);
}

/** The first item for which `meets` holds. If it never holds, it has met all items. */
export function firstOf<Value>(list: readonly Value[], meets: (item: Value) => unknown): Value | undefined {
  for (let at = 0; at < list.length; at++) if (meets(list[at]!) === true) return list[at];
  return undefined;
}

export function isOneOf(list: readonly string[], text: string): boolean {
  return firstOf(list, (each) => each === text) !== undefined;
}

/** Values by name, in the order in which they were set. Nothing is inherited. */
export type Table<Value> = Record<string, Value | undefined>;

export const newTable = <Value>(): Table<Value> => ({ __proto__: null }) as unknown as Table<Value>;

const OwnSet = Set;
export const newSet = (): Set<string> => new OwnSet();
export const addTo = methodOf<Set<string>, [string], void>(Set.prototype.add);
export const removeFrom = methodOf<Set<string>, [string], void>(Set.prototype.delete);

const { get, set, delete: remove } = WeakMap.prototype;
const OwnWeakMap = WeakMap;

/** A value for each object. */
export class Notes<Key extends object, Value> {
  readonly #map = new OwnWeakMap<Key, Value>();

  get(key: Key): Value | undefined {
    return apply(get, this.#map, [key]) as Value | undefined;
  }
  set(key: Key, value: Value): void {
    apply(set, this.#map, [key, value]);
  }
  delete(key: Key): void {
    apply(remove, this.#map, [key]);
  }
}

/** Reads several properties at once. */
export function readerOf<Owner extends object, Name extends keyof Owner & string>(
  owner: { prototype: Owner },
  ...names: Name[]
): (of: Owner) => { [Each in Exclude<Name, never>]: Owner[Each] } {
  const getters = newTable<(of: Owner) => unknown>();
  firstOf(names, (name) => void (getters[name] = getterOf(owner, name)));
  return (of) => {
    const read = newTable<unknown>();
    for (const name in getters) read[name] = getters[name]!(of);
    return read as { [Each in Name]: Owner[Each] };
  };
}

/** Options for a function of the browser, which would also heed what they inherit. */
export function options<Options extends object>(given: Options): Options {
  return { __proto__: null, ...given };
}

export const functions = Function.prototype;
const isInstance = methodOf<unknown, [unknown], boolean>(functions[Symbol.hasInstance]);

/** `instanceof` would look for `Symbol.hasInstance`. */
export function isA<Owner extends object>(owner: { prototype: Owner }, value: unknown): value is Owner {
  return isInstance(owner, value);
}

/** The parts of an address. */
export const url = {
  href: getterOf(URL, "href"),
  origin: getterOf(URL, "origin"),
  protocol: getterOf(URL, "protocol"),
  host: getterOf(URL, "hostname"),
  path: getterOf(URL, "pathname"),
  query: getterOf(URL, "search"),
  user: getterOf(URL, "username"),
  password: getterOf(URL, "password"),
};

/** The address without its fragment. */
export function withoutHash(of: URL): string {
  return partsOf(url.href(of), "#")[0]!;
}
