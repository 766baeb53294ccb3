/**
 * Primordials: the language's own functions, as they were before a script of the page could replace them (kept.ts). The
 * scripts in the page's world use these and platform.ts, and neither iterators nor members of the language's and the
 * browser's objects, which a page can replace at any time. The rule in eslint-primordials.mjs checks it. Not here: what
 * only a browser has.
 */
import { keptOf, type Table } from "./kept";

export type { Table };

type Globals = typeof globalThis;
type Owner = { [Name in keyof Globals]: Globals[Name] extends { prototype: object } ? Name : never }[keyof Globals] &
  string;
type Of<Name extends Owner> = Globals[Name]["prototype"];

/** The global object `name`. Its members are those that the page has made of them. */
export function globalOf<Name extends keyof Globals & string>(name: Name): Globals[Name] {
  return keptOf(name)?.self as Globals[Name];
}

/** The function `member` of the global object `name` itself. */
export const staticOf = (name: string, member: string): unknown => keptOf(name)?.own[member]?.value as unknown;

export const apply = staticOf("Reflect", "apply") as typeof Reflect.apply;
export const defineProperty = staticOf("Reflect", "defineProperty") as typeof Reflect.defineProperty;
export const getOwnPropertyDescriptor = staticOf(
  "Reflect",
  "getOwnPropertyDescriptor",
) as typeof Reflect.getOwnPropertyDescriptor;
export const setPrototypeOf = staticOf("Reflect", "setPrototypeOf") as typeof Reflect.setPrototypeOf;
export const freeze = staticOf("Object", "freeze") as typeof Object.freeze;
export const parseJson = staticOf("JSON", "parse") as typeof JSON.parse;
export const OwnURL = globalOf("URL");
export const OwnPromise = globalOf("Promise");
export const OwnProxy = globalOf("Proxy");

type Method<Self, Args extends unknown[], Result> = (self: Self, ...args: Args) => Result;

/** The method `name` of objects with that prototype. */
export const memberOf = (owner: string, name: PropertyKey): (() => unknown) =>
  keptOf(owner)?.members[name]?.value as () => unknown;

/** The same as a function of its object. */
export function methodOf<Self, Args extends unknown[], Result>(owner: string, name: PropertyKey) {
  const method = memberOf(owner, name);
  return ((self, ...args) => apply(method, self, args as never)) as Method<Self, Args, Result>;
}

/** Reads the property `name`, also after a script of the page has replaced it. */
export function getterOf<Name extends Owner, Key extends keyof Of<Name> & string>(
  owner: Name,
  name: Key,
): (of: Of<Name>) => Of<Name>[Key] {
  const get = keptOf(owner)?.members[name]?.get as () => unknown;
  return (of) => apply(get, of, []) as Of<Name>[Key];
}

/** Sets the property `name`. */
export function setterOf<Name extends Owner, Key extends keyof Of<Name> & string>(
  owner: Name,
  name: Key,
): (of: Of<Name>, value: Of<Name>[Key]) => void {
  const set = keptOf(owner)?.members[name]?.set as () => void;
  return (of, value) => apply(set, of, [value] as never);
}

export const startsWith = methodOf<string, [string], boolean>("String", "startsWith");
export const endsWith = methodOf<string, [string], boolean>("String", "endsWith");
export const indexOf = methodOf<string, [string, number?], number>("String", "indexOf");
export const slice = methodOf<string, [number, number?], string>("String", "slice");
export const trim = methodOf<string, [], string>("String", "trim");
export const lowerCase = methodOf<string, [], string>("String", "toLowerCase");
export const upperCase = methodOf<string, [], string>("String", "toUpperCase");
/** `test` would look for `exec`. */
export const exec = methodOf<RegExp, [string], RegExpExecArray | null>("RegExp", "exec");
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

/** undefined past the end, where an array would inherit. */
export const itemOf = <Value>(list: readonly Value[], at: number): Value | undefined =>
  at < list.length ? list[at] : undefined;

/** The first item for which `meets` holds. If it never holds, it has met all items. */
export function firstOf<Value>(list: readonly Value[], meets: (item: Value) => unknown): Value | undefined {
  for (let at = 0; at < list.length; at++) if (meets(list[at]!) === true) return list[at];
  return undefined;
}

export function isOneOf(list: readonly string[], text: string): boolean {
  return firstOf(list, (each) => each === text) !== undefined;
}

/** The items for which `meets` holds. */
export function those<Value>(list: readonly Value[], meets: (item: Value) => boolean): Value[] {
  const found: Value[] = [];
  for (let at = 0; at < list.length; at++) if (meets(list[at]!)) add(found, list[at]!);
  return found;
}

export const newTable = <Value>(): Table<Value> => ({ __proto__: null }) as unknown as Table<Value>;

/** The names in the table. */
export function namesOf(table: Readonly<Record<string, unknown>>): string[] {
  const names: string[] = [];
  for (const name in table) add(names, name);
  return names;
}

const get = methodOf<WeakMap<object, unknown>, [object], unknown>("WeakMap", "get");
const set = methodOf<WeakMap<object, unknown>, [object, unknown], void>("WeakMap", "set");
const remove = methodOf<WeakMap<object, unknown>, [object], void>("WeakMap", "delete");
const OwnWeakMap = globalOf("WeakMap");

/** A value for each object. */
export class Notes<Key extends object, Value> {
  readonly #map = new OwnWeakMap<object, unknown>();

  get(key: Key): Value | undefined {
    return get(this.#map, key) as Value | undefined;
  }
  set(key: Key, value: Value): void {
    set(this.#map, key, value);
  }
  delete(key: Key): void {
    remove(this.#map, key);
  }
}

/** Reads each property by its name. */
export function gettersOf<Name extends Owner, Key extends keyof Of<Name> & string>(
  owner: Name,
  names: readonly Key[],
): { [Each in Key]: (of: Of<Name>) => Of<Name>[Each] } {
  const getters = newTable<(of: Of<Name>) => unknown>();
  firstOf(names, (name) => void (getters[name] = getterOf(owner, name)));
  return getters as { [Each in Key]: (of: Of<Name>) => Of<Name>[Each] };
}

/** Reads several properties at once. */
export function readerOf<Name extends Owner, Key extends keyof Of<Name> & string>(
  owner: Name,
  ...names: Key[]
): (of: Of<Name>) => { [Each in Exclude<Key, never>]: Of<Name>[Each] } {
  const getters = gettersOf(owner, names);
  return (of) => {
    const read = newTable<unknown>();
    for (const name in getters) read[name] = getters[name](of);
    return read as { [Each in Key]: Of<Name>[Each] };
  };
}

/** Options for a function of the browser, which would also heed what they inherit. */
export function options<Options extends object>(given: Options): Options {
  return { __proto__: null, ...given };
}

export const functions = globalOf("Function").prototype;
const isInstance = methodOf<unknown, [unknown], boolean>("Function", staticOf("Symbol", "hasInstance") as symbol);

/** `instanceof` would look for `Symbol.hasInstance`. */
export function isA<Value extends object>(owner: { prototype: Value }, value: unknown): value is Value {
  return isInstance(owner, value);
}

/** The parts of an address. */
export const url = gettersOf("URL", [
  "href",
  "origin",
  "protocol",
  "hostname",
  "pathname",
  "search",
  "username",
  "password",
]);

/** The address without its fragment. */
export function withoutHash(of: URL): string {
  return partsOf(url.href(of), "#")[0]!;
}
