/**
 * Xhr: XMLHttpRequest with the transport in front of it for media requests. The native prototype is patched in place,
 * so objects, `instanceof` and subclasses stay the browser's own. For an object with a carried request an Emulation
 * answers, and events are dispatched on the object itself.
 * Sync requests, other methods, bodies, credentials, unusual headers, text and documents stay native.
 */
import type { Carrier, MediaRequest, XhrAsk, XhrEmulation } from "../shared/carry";
import { carriedHeaders, isNativeForm, isPublishedUrl, mediaUrl } from "../shared/rules";
import {
  add,
  apply,
  firstOf,
  lowerCase,
  matches,
  methodOf,
  newTable,
  Notes,
  upperCase,
  url as part,
  withoutHash,
} from "../shared/primordials";
import { loadedOf } from "../shared/platform";
import { heedManifest, HeldXhr } from "./held";
import type { Link } from "./link";
import { getXhr, listen, natives, page } from "./natives";
import type { Answered, Permits } from "./permits";
import { attempt, patchProperty, type AnyFunction } from "./wrap";

/** An object after `open`. */
interface Opened extends XhrAsk {
  url: URL | null;
  emulation: XhrEmulation | null;
  /** Hears of the response before the page gets it. */
  see: ((response: unknown) => void) | undefined;
}

type Xhr = XMLHttpRequest;

/** What has the transport in front of it. Where an emulation answers, it knows the rule of each. */
const PATCHED = {
  value: [
    "open",
    "send",
    "abort",
    "setRequestHeader",
    "overrideMimeType",
    "getResponseHeader",
    "getAllResponseHeaders",
  ],
  get: ["upload", "readyState", "status", "statusText", "responseURL", "response", "responseText", "responseXML"],
  set: ["responseType", "withCredentials", "timeout"],
} as const;

const HEADERS_RECEIVED = 2;

const sendXhr = methodOf<Xhr, [], void>("XMLHttpRequest", "send");

export function patchXhr(link: Link, permits: Permits): void {
  const states = new Notes<Xhr, Opened>();
  /** Objects whose `upload` the page has. A listener there makes the browser ask another host for permission first. */
  const uploading = new Notes<Xhr, true>();

  function call(name: string, target: AnyFunction, xhr: Xhr, args: unknown[]): unknown {
    const opened = states.get(xhr);
    if (name === "open") return open(opened?.emulation, target, xhr, args);
    if (opened?.emulation && name !== "upload") return opened.emulation.answer(name, target, args);
    if (opened && name === "send") return send(opened, target, xhr, args);
    const value: unknown = apply(target, xhr, args);
    if (name === "upload") uploading.set(xhr, true);
    if (name === "response") opened?.see?.(value);
    if (opened && name === "setRequestHeader") add(opened.headers, [`${args[0]}`, `${args[1]}`]);
    if (opened && name === "overrideMimeType") opened.mime = `${args[0]}`;
    return value;
  }

  function open(before: XhrEmulation | null | undefined, target: AnyFunction, xhr: Xhr, args: unknown[]): void {
    const isChanged = before?.forget();
    try {
      apply(target, xhr, args);
    } finally {
      if (before) states.delete(xhr);
    }
    states.set(xhr, openedBy(args));
    if (isChanged) natives.fire(xhr, "readystatechange");
    heedManifest(`${args[1]}`, link);
  }

  function send(opened: Opened, target: AnyFunction, xhr: Xhr, args: unknown[]): unknown {
    const sendItself = (): unknown => apply(target, xhr, args);
    const mayAskFirst = uploading.get(xhr) === true && !!opened.url && part.origin(opened.url) !== location.origin;
    const request = link.isNative || mayAskFirst ? null : carriedRequest(xhr, opened, args[0]);
    if (request === null) return sendItself();
    const noteAnswer = (of: Xhr): void => {
      const seen = (name: string): unknown => getXhr(name, of);
      listen(of, "readystatechange", () => {
        if (seen("readyState") !== HEADERS_RECEIVED) return;
        const answer = { status: seen("status"), statusText: seen("statusText") } as Answered;
        permits.note(request.url, seen("responseURL") as string, answer);
      });
      listen(of, "load", (event) => {
        link.prepare();
        link.noteDirect(loadedOf(event));
      });
    };
    const sendNatively = (copy: Xhr): void => {
      noteAnswer(copy);
      sendXhr(copy);
    };
    const isPublished = isPublishedUrl(request.url);
    const carrier = isPublished || permits.allows(request.url) ? link.carrier : null;
    if (carrier === null && isPublished) {
      opened.emulation = new HeldXhr(xhr, opened, link, {
        carry: (by) => (isNativeForm(getXhr("responseType", xhr), opened.mime) ? sendNow() : emulate(by)),
        sendItself: sendNow,
      });
      return opened.emulation.send();
    }
    if (carrier === null) {
      noteAnswer(xhr);
      if (link.state === "ready") opened.see = attempt(() => link.carrier?.observeXhr(request, xhr));
      return sendItself();
    }
    return emulate(carrier);

    function sendNow(): void {
      opened.emulation = null;
      noteAnswer(xhr);
      sendItself();
    }

    function emulate(by: Carrier): void {
      try {
        opened.emulation = by.emulate({ xhr, asked: opened, sendNatively }, request!);
        opened.emulation.send();
      } catch {
        // Functions of the page can make the carrying script fail. The site itself then answers.
        sendNow();
      }
    }
  }

  for (const kind in PATCHED)
    firstOf(PATCHED[kind as keyof typeof PATCHED], (name) =>
      patchProperty(natives.XMLHttpRequest.prototype, name, kind as keyof typeof PATCHED, (target, xhr, args) =>
        call(name, target, xhr as Xhr, args),
      ),
    );
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
  const url = isPlain && isPortable ? mediaUrl(address, page.baseUri()) : null;
  return { address, url, headers: [], mime: undefined, emulation: null, see: undefined };
}

function carriedRequest(xhr: Xhr, opened: Opened, body: unknown): MediaRequest | null {
  const { url, headers } = opened;
  const isBare = (body ?? null) === null && getXhr("withCredentials", xhr) === false;
  if (url === null || !isBare || isNativeForm(getXhr("responseType", xhr), opened.mime)) return null;
  const names = newTable<true>();
  for (let at = 0; at < headers.length; at++) {
    const name = lowerCase(headers[at]![0]);
    if (name in names) return null;
    names[name] = true;
  }
  const carried = carriedHeaders(headers, part.origin(url) === location.origin);
  return carried === undefined ? null : { url: withoutHash(url), ...carried };
}
