/**
 * Kept: objects of the language and the browser with all their members, as they were before a script of the page could
 * replace any. The page script keeps them at document start. Scripts that come into the page later get them from it
 * (handed-over.ts). Elsewhere no page is near, so each context keeps its own.
 */
/** What only later scripts need. */
const LATER =
  "AbortController ArrayBuffer Blob DOMException Date Element Error Float64Array HTMLLinkElement Math MediaSource " +
  "Navigator Number PerformanceResourceTiming RangeError ReadableByteStreamController ReadableStreamBYOBRequest " +
  "ReadableStreamDefaultReader ServiceWorkerContainer SourceBuffer TimeRanges TypeError TypedArray Uint8Array " +
  "navigator";

/** Values by name, in the order in which they were set. Nothing is inherited. */
export type Table<Value> = Record<string, Value | undefined>;

interface Members {
  readonly [name: PropertyKey]: PropertyDescriptor | undefined;
}

export interface KeptObject {
  readonly self: unknown;
  readonly own: Members;
  /** Of its prototype. */
  readonly members: Members;
}
export type Kept = Readonly<Table<KeptObject>>;

let kept = { __proto__: null } as unknown as Table<KeptObject>;

/** Has this context use what another one kept. */
export function useKept(given: Kept): void {
  kept = given as typeof kept;
}

/** The global object `name`; undefined if there is none. */
export function keptOf(name: string): KeptObject | undefined {
  return name in kept ? kept[name] : (kept[name] = keep(name));
}

/* eslint-disable tributary/primordials -- This runs before the page. */
/** What later scripts get. Frozen, because a script of the page can ask for it, too. */
export function keepForLater(): Kept {
  LATER.split(" ").forEach(keptOf);
  return Object.freeze(kept);
}

function keep(name: string): KeptObject | undefined {
  const globals = globalThis as unknown as Record<string, { prototype?: object } | undefined>;
  const self = name === "TypedArray" ? (Object.getPrototypeOf(Uint8Array) as { prototype: object }) : globals[name];
  return self && Object.freeze({ self, own: membersOf(self), members: membersOf(self.prototype ?? {}) });
}

function membersOf(owner: object): Members {
  const members = { __proto__: null, ...Object.getOwnPropertyDescriptors(owner) } as Record<
    PropertyKey,
    unknown
  > as Record<PropertyKey, object>;
  Reflect.ownKeys(members).forEach((name) => (members[name] = Object.freeze({ __proto__: null, ...members[name] })));
  return Object.freeze(members);
}
