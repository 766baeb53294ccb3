/**
 * Xhr: XMLHttpRequest with the transport in front of it for media requests. The native prototype is patched in place,
 * so objects, `instanceof` and subclasses stay the browser's own. For an object with a carried request an Emulation
 * answers, and events are dispatched on the object itself.
 * Sync requests, other methods, bodies, credentials, unusual headers, text and documents stay native.
 */
import type { MediaRequest, XhrEmulation } from "../shared/carry";
import { carriedHeaders, isManifestUrl, mediaUrl } from "../shared/rules";
import {
  add,
  firstOf,
  lowerCase,
  matches,
  Notes,
  newTable,
  upperCase,
  url as part,
  withoutHash,
} from "../shared/primordials";
import type { Link } from "./link";
import { natives, page, progressOf } from "./natives";
import type { Answered, Permits } from "./permits";
import { attempt, patchProperty, type AnyFunction } from "./wrap";

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

const OPENED = 1;

export function patchXhr(link: Link, permits: Permits): void {
  const states = new Notes<Xhr, ObjectState>();
  /** Objects whose `upload` the page has. A listener there makes the browser ask another host for permission first. */
  const uploading = new Notes<Xhr, true>();
  const { prototype } = natives.XMLHttpRequest;
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
    if (stateBefore !== undefined && stateBefore !== OPENED) natives.fire(xhr, "readystatechange");
    if (isManifestUrl(`${args[1]}`, page.baseUri())) link.warm();
  });

  patchMethod(prototype, "setRequestHeader", (target, xhr, args) => {
    emulationOf(xhr)?.assertUnsent("setRequestHeader");
    natives.apply(target, xhr, args);
    const headers = stateOf(xhr)?.opened?.headers;
    if (headers !== undefined) add(headers, [`${args[0]}`, `${args[1]}`]);
  });

  patchMethod(prototype, "overrideMimeType", (target, xhr, args) => {
    emulationOf(xhr)?.assertNotLoading("overrideMimeType");
    natives.apply(target, xhr, args);
    const state = stateOf(xhr);
    if (!state?.opened) return;
    const mime = (state.opened.mime = `${args[0]}`);
    state.emulation?.changeForm(isNativeForm(xhr, state.opened), (native) =>
      natives.callXhr("overrideMimeType", native, mime),
    );
  });

  patchMethod(prototype, "send", (target, xhr, args) => {
    const state = stateOf(xhr);
    state?.emulation?.assertUnsent("send");
    const opened = state?.opened;
    const mayAskFirst = uploading.get(xhr) === true && !!opened?.url && part.origin(opened.url) !== location.origin;
    const request = opened && !link.isNative && !mayAskFirst ? carriedRequest(xhr, opened, args[0]) : null;
    if (!state || !opened || request === null) return natives.apply(target, xhr, args);
    const noteAnswer = (of: Xhr): void =>
      natives.listen(of, "load", (event) => {
        const seen = (name: string): unknown => natives.getXhr(name, of);
        const answer = { status: seen("status"), statusText: seen("statusText") } as Answered;
        permits.note(request.url, seen("responseURL") as string, answer);
        link.prepare();
        link.noteDirect(progressOf(event));
      });
    const carrier = permits.allows(request.url) ? link.carrier : null;
    if (carrier === null) {
      noteAnswer(xhr);
      if (link.state === "ready") state.see = attempt(() => link.carrier?.observeXhr(request, xhr));
      return natives.apply(target, xhr, args);
    }
    const sendNatively = (copy: Xhr): void => {
      noteAnswer(copy);
      natives.callXhr("send", copy);
    };
    try {
      state.emulation = carrier.emulate({ xhr, nativeCopy: () => copyOf(xhr, opened), sendNatively }, request);
      state.emulation.send();
    } catch {
      // Functions of the page can make the carrying script fail. The site itself then answers.
      state.emulation = null;
      noteAnswer(xhr);
      natives.apply(target, xhr, args);
    }
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
  patchReader("getResponseHeader", (from, args) => from.header(`${args[0]}`));
  patchReader("getAllResponseHeaders", (from) => from.allHeaders());

  patchAccessor(prototype, "upload", "get", (native, xhr) => {
    const upload = native();
    uploading.set(xhr, true);
    return upload;
  });
  patchGetters(prototype, stateOf);
  patchSetters(prototype, stateOf);
}

const ANSWER = ["readyState", "status", "statusText", "responseURL", "response"] as const;
const FORMS = ["responseText", "responseXML"] as const;

function patchGetters(prototype: Xhr, stateOf: (xhr: unknown) => ObjectState | undefined): void {
  const emulationOf = (xhr: unknown): XhrEmulation | null => stateOf(xhr)?.emulation ?? null;
  firstOf(ANSWER, (name) => {
    patchAccessor(prototype, name, "get", (native, xhr) => {
      const emulation = emulationOf(xhr);
      if (emulation === null) {
        const value = native();
        if (name === "response") stateOf(xhr)?.see?.(value);
        return value;
      }
      return emulation.native === null ? emulation[name] : natives.getXhr(name, emulation.native);
    });
  });
  firstOf(FORMS, (name) => {
    patchAccessor(prototype, name, "get", (native, xhr) => {
      const answering = emulationOf(xhr)?.native;
      return answering ? natives.getXhr(name, answering) : native();
    });
  });
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
  const isPlain =
    upperCase(`${args[0]}`) === "GET" &&
    (args.length < 3 || !!args[2]) &&
    (args[3] ?? null) === null &&
    (args[4] ?? null) === null;
  const address = `${args[1]}`;
  // In a document in another charset, an XMLHttpRequest writes a query's other letters in that charset (URL standard).
  const isPortable = page.charset() === "UTF-8" || !matches(/[^\0-\x7f]/, address);
  return { address, url: isPlain && isPortable ? mediaUrl(address, page.baseUri()) : null, headers: [] };
}

/** Whether only the browser can give the answer in the form that the page wants. */
function isNativeForm(xhr: Xhr, { mime }: Opened): boolean {
  const form = natives.getXhr("responseType", xhr);
  return (form !== "arraybuffer" && form !== "blob") || (form === "blob" && mime !== undefined);
}

/** A native object that asks what `xhr` asks. Its timeout is the emulation's affair. */
function copyOf(xhr: Xhr, { address, headers, mime }: Opened): Xhr {
  const copy = new natives.XMLHttpRequest();
  natives.callXhr("open", copy, "GET", address, true);
  firstOf(headers, (header) => natives.callXhr("setRequestHeader", copy, header[0], header[1]));
  if (mime !== undefined) natives.callXhr("overrideMimeType", copy, mime);
  copyType(xhr, copy);
  return copy;
}

function copyType(xhr: Xhr, copy: Xhr): void {
  natives.setXhr("responseType", copy, natives.getXhr("responseType", xhr));
}

function carriedRequest(xhr: Xhr, opened: Opened, body: unknown): MediaRequest | null {
  const { url, headers } = opened;
  const isBare = (body ?? null) === null && natives.getXhr("withCredentials", xhr) === false;
  if (url === null || !isBare || isNativeForm(xhr, opened)) return null;
  const names = newTable<true>();
  for (let at = 0; at < headers.length; at++) {
    const name = lowerCase(headers[at]![0]);
    if (name in names) return null;
    names[name] = true;
  }
  const carried = carriedHeaders(headers, part.origin(url) === location.origin);
  return carried === undefined ? null : { url: withoutHash(url), ...carried };
}

type MethodName =
  "open" | "send" | "abort" | "setRequestHeader" | "overrideMimeType" | "getResponseHeader" | "getAllResponseHeaders";
function patchMethod(
  prototype: Xhr,
  name: MethodName,
  call: (target: AnyFunction, xhr: Xhr, args: unknown[]) => unknown,
): void {
  patchProperty(prototype, name, "value", (target, xhr, args) => call(target, xhr as Xhr, args));
}

function patchAccessor(
  prototype: Xhr,
  name: string,
  kind: "get" | "set",
  call: (native: () => unknown, xhr: Xhr) => unknown,
): void {
  patchProperty(prototype, name, kind, (target, xhr, args) => call(() => natives.apply(target, xhr, args), xhr as Xhr));
}
