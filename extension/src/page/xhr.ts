/**
 * Xhr: XMLHttpRequest with the transport in front of it for media requests. The native prototype is patched in place,
 * so objects, `instanceof` and subclasses stay the browser's own. For an object with a carried request an Emulation
 * answers, and events are dispatched on the object itself.
 * Sync requests, other methods, bodies, credentials, unusual headers, text and documents stay native.
 */
import type { MediaRequest, XhrEmulation } from "../shared/carry";
import { carriedHeaders, isManifestUrl, mediaUrl } from "../shared/rules";
import type { Link } from "./link";
import { natives } from "./natives";
import type { Permits } from "./permits";
import { wrapFunction } from "./wrap";

/** What the page told an object in `open` and after it. */
interface Opened {
  /** As the page wrote it. */
  address: string;
  url: URL | null;
  headers: [string, string][];
  mime?: string;
}

interface ObjectState {
  opened: Opened | null;
  emulation: XhrEmulation | null;
  /** Hears of the response before the page gets it. */
  see?: ((response: unknown) => void) | undefined;
}

type Xhr = XMLHttpRequest;
export function patchXhr(link: Link, permits: Permits): void {
  const states = new WeakMap<Xhr, ObjectState>();
  const prototype = XMLHttpRequest.prototype;
  const stateOf = (xhr: unknown): ObjectState | undefined => states.get(xhr as Xhr);
  const emulationOf = (xhr: unknown): XhrEmulation | null => stateOf(xhr)?.emulation ?? null;

  patchMethod(prototype, "open", (target, xhr, args) => {
    const before = emulationOf(xhr);
    const stateBefore = before?.readyState;
    before?.forget();
    try {
      natives.apply(target, xhr, args);
    } finally {
      if (before !== null) states.delete(xhr);
    }
    states.set(xhr, { opened: openedBy(args), emulation: null });
    if (stateBefore !== undefined && stateBefore !== XMLHttpRequest.OPENED) natives.fire(xhr, "readystatechange");
    if (isManifestUrl(String(args[1]), document.baseURI)) link.warm();
  });

  patchMethod(prototype, "setRequestHeader", (target, xhr, args) => {
    emulationOf(xhr)?.assertUnsent("setRequestHeader");
    natives.apply(target, xhr, args);
    stateOf(xhr)?.opened?.headers.push([String(args[0]), String(args[1])]);
  });

  patchMethod(prototype, "overrideMimeType", (target, xhr, args) => {
    emulationOf(xhr)?.assertNotLoading("overrideMimeType");
    natives.apply(target, xhr, args);
    const state = stateOf(xhr);
    if (!state?.opened) return;
    const mime = (state.opened.mime = String(args[0]));
    state.emulation?.changeForm(isNativeForm(xhr, state.opened), (native) =>
      natives.callXhr("overrideMimeType", native, mime),
    );
  });

  patchMethod(prototype, "send", (target, xhr, args) => {
    const state = stateOf(xhr);
    state?.emulation?.assertUnsent("send");
    const opened = state?.opened;
    const request = opened && !link.isNative ? carriedRequest(xhr, opened, args[0]) : null;
    if (!state || !opened || request === null) return natives.apply(target, xhr, args);
    const noteAnswer = (of: Xhr): void =>
      natives.listen(of, "load", ({ loaded }) => {
        const seen = (name: string): unknown => natives.getXhr(name, of);
        const answer = { status: seen("status"), statusText: seen("statusText") } as Xhr;
        permits.note(request.url, seen("responseURL") as string, answer);
        link.noteDirect(loaded);
      });
    const carrier = permits.allows(request.url) ? link.carrier : null;
    if (carrier === null) {
      link.prepare();
      noteAnswer(xhr);
      state.see = link.carrier?.observeXhr(request, xhr);
      return natives.apply(target, xhr, args);
    }
    const sendNatively = (copy: Xhr): void => {
      noteAnswer(copy);
      natives.callXhr("send", copy);
    };
    state.emulation = carrier.emulate({ xhr, nativeCopy: () => copyOf(xhr, opened), sendNatively }, request);
    state.emulation.send();
  });
  patchMethod(prototype, "abort", (target, xhr, args) => {
    const emulation = emulationOf(xhr);
    return emulation === null ? natives.apply(target, xhr, args) : emulation.abort();
  });

  const patchReader = (name: MethodName, read: (from: XhrEmulation, args: unknown[]) => string | null): void =>
    patchMethod(prototype, name, (target, xhr, args) => {
      const emulation = emulationOf(xhr);
      return emulation === null || emulation.native !== null || args.length < target.length
        ? natives.apply(target, emulation?.native ?? xhr, args)
        : read(emulation, args);
    });
  patchReader("getResponseHeader", (from, [header]) => from.header(String(header)));
  patchReader("getAllResponseHeaders", (from) => from.allHeaders());

  patchGetters(prototype, stateOf);
  patchSetters(prototype, stateOf);
}

function patchGetters(prototype: Xhr, stateOf: (xhr: unknown) => ObjectState | undefined): void {
  const emulationOf = (xhr: unknown): XhrEmulation | null => stateOf(xhr)?.emulation ?? null;
  for (const name of ["readyState", "status", "statusText", "responseURL", "response"] as const) {
    patchAccessor(prototype, name, "get", (native, xhr) => {
      const emulation = emulationOf(xhr);
      if (emulation === null) {
        const value = native();
        if (name === "response") stateOf(xhr)?.see?.(value);
        return value;
      }
      return emulation.native === null ? emulation[name] : natives.getXhr(name, emulation.native);
    });
  }
  for (const name of ["responseText", "responseXML"]) {
    patchAccessor(prototype, name, "get", (native, xhr) => {
      const answering = emulationOf(xhr)?.native;
      return answering ? natives.getXhr(name, answering) : native();
    });
  }
}

function patchSetters(prototype: Xhr, stateOf: (xhr: unknown) => ObjectState | undefined): void {
  patchAccessor(prototype, "responseType", "set", (native, xhr) => {
    const { opened, emulation } = stateOf(xhr) ?? {};
    emulation?.assertNotLoading("responseType");
    native();
    if (opened) emulation?.changeForm(isNativeForm(xhr, opened), (inner) => copyType(xhr, inner));
  });
  patchAccessor(prototype, "withCredentials", "set", (native, xhr) => {
    stateOf(xhr)?.emulation?.assertUnsent("withCredentials");
    native();
  });
  patchAccessor(prototype, "timeout", "set", (native, xhr) => {
    native();
    stateOf(xhr)?.emulation?.setTimer();
  });
}

function openedBy(args: unknown[]): Opened {
  const [method, url, isAsync, user, password] = args;
  const isPlain =
    String(method).toUpperCase() === "GET" &&
    (args.length < 3 || Boolean(isAsync)) &&
    (user ?? null) === null &&
    (password ?? null) === null;
  const address = String(url);
  // In a document in another charset, an XMLHttpRequest writes a query's other letters in that charset (URL standard).
  const isPortable = document.characterSet === "UTF-8" || !/[^\0-\x7f]/.test(address);
  return { address, url: isPlain && isPortable ? mediaUrl(address, document.baseURI) : null, headers: [] };
}

/** Whether only the browser can give the answer in the form that the page wants. */
function isNativeForm({ responseType }: Xhr, { mime }: Opened): boolean {
  return (responseType !== "arraybuffer" && responseType !== "blob") || (responseType === "blob" && mime !== undefined);
}

/** A native object that asks what `xhr` asks. Its timeout is the emulation's affair. */
function copyOf(xhr: Xhr, { address, headers, mime }: Opened): Xhr {
  const copy = new natives.XMLHttpRequest();
  natives.callXhr("open", copy, "GET", address, true);
  for (const header of headers) natives.callXhr("setRequestHeader", copy, ...header);
  if (mime !== undefined) natives.callXhr("overrideMimeType", copy, mime);
  copyType(xhr, copy);
  return copy;
}

function copyType(xhr: Xhr, copy: Xhr): void {
  natives.setXhr("responseType", copy, xhr.responseType);
}

function carriedRequest(xhr: Xhr, opened: Opened, body: unknown): MediaRequest | null {
  if (opened.url === null || (body ?? null) !== null || xhr.withCredentials || isNativeForm(xhr, opened)) return null;
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
  patch(prototype, name, "value", call);
}

function patchAccessor(
  prototype: Xhr,
  name: string,
  kind: "get" | "set",
  call: (native: () => unknown, xhr: Xhr) => unknown,
): void {
  patch(prototype, name, kind, (target, xhr, args) => call(() => natives.apply(target, xhr, args), xhr));
}

function patch(
  prototype: Xhr,
  name: string,
  kind: "value" | "get" | "set",
  call: (target: AnyFunction, xhr: Xhr, args: unknown[]) => unknown,
): void {
  const descriptor = Object.getOwnPropertyDescriptor(prototype, name);
  const original = descriptor?.[kind] as AnyFunction | undefined;
  if (original === undefined) return;
  const wrapped = wrapFunction(original, (target, xhr, args) => call(target, xhr as Xhr, args));
  Object.defineProperty(prototype, name, { ...descriptor, [kind]: wrapped });
}
