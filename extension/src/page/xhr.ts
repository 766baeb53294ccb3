/**
 * Xhr: XMLHttpRequest with the transport in front of it for media requests. The native prototype is patched in place,
 * so objects, `instanceof` and subclasses stay the browser's own. For an object with a carried request an Emulation
 * answers, and events are dispatched on the object itself.
 * Sync requests, other methods, bodies, credentials, unusual headers and documents stay native.
 */
import type { MediaRequest } from "../shared/carry";
import { carriedHeaders, isManifestUrl, mediaUrl } from "../shared/rules";
import { Emulation } from "./emulation";
import type { Link } from "./link";
import { wrapFunction } from "./natives";

/** What the page told an object in `open` and after it. */
interface Opened {
  url: URL | null;
  headers: [string, string][];
  overridesMime: boolean;
}

interface ObjectState {
  opened: Opened | null;
  emulation: Emulation | null;
}

type Xhr = XMLHttpRequest;
const CARRIED_TYPES = new Set<XMLHttpRequestResponseType>(["", "text", "arraybuffer", "blob", "json"]);

export function patchXhr(link: Link): void {
  const states = new WeakMap<Xhr, ObjectState>();
  const prototype = XMLHttpRequest.prototype;
  const stateOf = (xhr: unknown): ObjectState | undefined => states.get(xhr as Xhr);
  const emulationOf = (xhr: unknown): Emulation | null => stateOf(xhr)?.emulation ?? null;

  patchMethod(prototype, "open", (target, xhr, args) => {
    const before = emulationOf(xhr);
    const stateBefore = before?.readyState;
    before?.forget();
    try {
      Reflect.apply(target, xhr, args);
    } finally {
      if (before !== null) states.delete(xhr);
    }
    states.set(xhr, { opened: openedBy(args), emulation: null });
    if (stateBefore !== undefined && stateBefore !== XMLHttpRequest.OPENED)
      xhr.dispatchEvent(new Event("readystatechange"));
    if (isManifestUrl(String(args[1]), document.baseURI)) link.warm();
  });

  patchMethod(prototype, "setRequestHeader", (target, xhr, args) => {
    emulationOf(xhr)?.assertUnsent("setRequestHeader");
    Reflect.apply(target, xhr, args);
    stateOf(xhr)?.opened?.headers.push([String(args[0]), String(args[1])]);
  });

  patchMethod(prototype, "overrideMimeType", (target, xhr, args) => {
    emulationOf(xhr)?.assertNotLoading("overrideMimeType");
    Reflect.apply(target, xhr, args);
    const opened = stateOf(xhr)?.opened;
    if (opened !== null && opened !== undefined) opened.overridesMime = true;
  });

  patchMethod(prototype, "send", (target, xhr, args) => {
    const state = stateOf(xhr);
    state?.emulation?.assertUnsent("send");
    const request = state?.opened && !link.isNative ? carriedRequest(xhr, state.opened, args[0]) : null;
    if (state === undefined || request === null) return Reflect.apply(target, xhr, args);
    state.emulation = new Emulation(xhr, link, request);
    state.emulation.send();
  });

  patchMethod(prototype, "abort", (target, xhr, args) => {
    const emulation = emulationOf(xhr);
    if (emulation === null) return Reflect.apply(target, xhr, args);
    emulation.abort();
  });

  patchMethod(prototype, "getResponseHeader", (target, xhr, args) => {
    const emulation = emulationOf(xhr);
    return emulation === null || args.length === 0
      ? Reflect.apply(target, xhr, args)
      : emulation.header(String(args[0]));
  });
  patchMethod(
    prototype,
    "getAllResponseHeaders",
    (target, xhr, args) => emulationOf(xhr)?.allHeaders() ?? Reflect.apply(target, xhr, args),
  );

  patchGetters(prototype, emulationOf);
  patchSetters(prototype, emulationOf);
}

function patchGetters(prototype: Xhr, emulationOf: (xhr: unknown) => Emulation | null): void {
  for (const name of ["readyState", "status", "statusText", "responseURL", "response"] as const) {
    patchAccessor(prototype, name, {
      get: (native, xhr) => {
        const emulation = emulationOf(xhr);
        return emulation === null ? native() : emulation[name];
      },
    });
  }
  patchAccessor(prototype, "responseText", {
    get: (native, xhr) => {
      const nativeText = native();
      return emulationOf(xhr)?.responseText ?? nativeText;
    },
  });
}

function patchSetters(prototype: Xhr, emulationOf: (xhr: unknown) => Emulation | null): void {
  patchAccessor(prototype, "responseType", {
    set: (native, xhr) => {
      emulationOf(xhr)?.assertNotLoading("responseType");
      native();
    },
  });
  patchAccessor(prototype, "withCredentials", {
    set: (native, xhr) => {
      emulationOf(xhr)?.assertUnsent("withCredentials");
      native();
    },
  });
  patchAccessor(prototype, "timeout", {
    set: (native, xhr) => {
      native();
      emulationOf(xhr)?.setTimer();
    },
  });
}

function openedBy(args: unknown[]): Opened {
  const [method, url, isAsync, user, password] = args;
  const isPlain =
    String(method).toUpperCase() === "GET" &&
    (args.length < 3 || Boolean(isAsync)) &&
    (user ?? null) === null &&
    (password ?? null) === null;
  return { url: isPlain ? mediaUrl(String(url), document.baseURI) : null, headers: [], overridesMime: false };
}

function carriedRequest(xhr: Xhr, opened: Opened, body: unknown): MediaRequest | null {
  if (opened.url === null || (body ?? null) !== null || xhr.withCredentials || !CARRIED_TYPES.has(xhr.responseType))
    return null;
  if (opened.overridesMime && xhr.responseType !== "arraybuffer") return null;
  const names = opened.headers.map(([name]) => name.toLowerCase());
  const carried = carriedHeaders(opened.headers, opened.url.origin === location.origin);
  if (carried === undefined || new Set(names).size !== names.length) return null;
  const url = new URL(opened.url);
  url.hash = "";
  return { url: url.href, ...carried };
}

type MethodName =
  "open" | "send" | "abort" | "setRequestHeader" | "overrideMimeType" | "getResponseHeader" | "getAllResponseHeaders";
// eslint-disable-next-line @typescript-eslint/no-explicit-any
type AnyFunction = (...args: any[]) => any;

function patchMethod(
  prototype: Xhr,
  name: MethodName,
  call: (target: AnyFunction, xhr: Xhr, args: unknown[]) => unknown,
): void {
  const descriptor = Object.getOwnPropertyDescriptor(prototype, name);
  if (descriptor === undefined) return;
  const value = wrapFunction(descriptor.value as AnyFunction, (target, xhr, args) => call(target, xhr as Xhr, args));
  Object.defineProperty(prototype, name, { ...descriptor, value });
}

interface AccessorPatch {
  get?: (native: () => unknown, xhr: Xhr) => unknown;
  set?: (native: () => unknown, xhr: Xhr) => void;
}

function patchAccessor(prototype: Xhr, name: string, patch: AccessorPatch): void {
  const descriptor = Object.getOwnPropertyDescriptor(prototype, name);
  if (descriptor === undefined) return;
  const wrap = (
    original: AnyFunction | undefined,
    hook: ((native: () => unknown, xhr: Xhr) => unknown) | undefined,
  ): AnyFunction | undefined =>
    original === undefined || hook === undefined
      ? original
      : wrapFunction(original, (target, xhr, args) => hook(() => Reflect.apply(target, xhr, args), xhr as Xhr));
  const accessor: PropertyDescriptor = { ...descriptor };
  const get = wrap(descriptor.get, patch.get);
  const set = wrap(descriptor.set, patch.set);
  if (get !== undefined) accessor.get = get;
  if (set !== undefined) accessor.set = set;
  Object.defineProperty(prototype, name, accessor);
}
