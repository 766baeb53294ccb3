/** Site XHR: a request to the site by a native XMLHttpRequest. */
import type { PageXhr, SiteBody, SiteEnd, SiteRequest } from "../shared/carry";
import type { SiteHead } from "../shared/messages";
import type { Natives } from "../page/natives";
import {
  apply,
  firstOf,
  globalOf,
  indexOf,
  isA,
  memberOf,
  newTable,
  OwnPromise,
  partsOf,
  setterOf,
  slice,
  trim,
} from "../shared/primordials";
import { copyOfBuffer, OwnBytes, OwnTypeError } from "../shared/late-primordials";
import { loadedOf } from "../shared/platform";
import { wholeBlob } from "../shared/late-platform";

const HEADERS_RECEIVED = 2;
const DONE = 4;

const setType = setterOf("XMLHttpRequest", "responseType");
/** Calls the method `name`. */
export const callXhr = (name: string, of: XMLHttpRequest, ...args: unknown[]): unknown =>
  apply(memberOf("XMLHttpRequest", name) as (...args: unknown[]) => unknown, of, args);

export class SiteXhr implements SiteRequest {
  readonly native: XMLHttpRequest;
  readonly head: Promise<SiteHead>;
  readonly end: Promise<SiteEnd>;
  readonly copy: () => SiteBody;
  hasFailed = false;

  constructor(page: PageXhr, natives: Natives) {
    const native = (this.native = copyOf(page, natives));
    // The page script hears of the answer first.
    page.sendNatively(native);
    this.head = headOfXhr(native, natives);
    void this.#heedFailure();
    this.end = endOfXhr(native, natives);
    this.copy = bodyOfXhr(native, natives).copy;
  }

  async #heedFailure(): Promise<void> {
    try {
      await this.head;
    } catch {
      this.hasFailed = true;
    }
  }

  abort(): void {
    callXhr("abort", this.native);
  }
}

/** A native object that asks what the page's object asks. Its timeout is the emulation's affair. */
function copyOf({ xhr, asked }: PageXhr, natives: Natives): XMLHttpRequest {
  const copy = new natives.XMLHttpRequest();
  callXhr("open", copy, "GET", asked.address, true);
  firstOf(asked.headers, (header) => void callXhr("setRequestHeader", copy, header[0], header[1]));
  if (asked.mime !== undefined) callXhr("overrideMimeType", copy, asked.mime);
  copyType(xhr, copy, natives);
  return copy;
}

export function copyType(from: XMLHttpRequest, to: XMLHttpRequest, natives: Natives): void {
  setType(to, natives.getXhr("responseType", from) as XMLHttpRequestResponseType);
}

/** The head of the answer to `xhr`, which is not sent yet. */
export function headOfXhr(xhr: XMLHttpRequest, natives: Natives): Promise<SiteHead> {
  return new OwnPromise((resolve, reject) => {
    natives.listen(xhr, "readystatechange", () => {
      if (natives.getXhr("readyState", xhr) !== HEADERS_RECEIVED) return;
      resolve({
        status: natives.getXhr("status", xhr) as number,
        url: natives.getXhr("responseURL", xhr) as string,
        headers: headersIn(callXhr("getAllResponseHeaders", xhr) as string),
      });
    });
    natives.listen(xhr, "loadend", () => reject(new OwnTypeError("no answer")));
  });
}

function headersIn(lines: string): Record<string, string> {
  const headers = newTable<string>();
  firstOf(partsOf(lines, "\r\n"), (line) => {
    const colon = indexOf(line, ":");
    if (colon > 0) headers[slice(line, 0, colon)] = trim(slice(line, colon + 1));
  });
  return headers as Record<string, string>;
}

/** The end of the answer to `xhr`, which is not sent yet. The events of an abort or an error tell no bytes. */
function endOfXhr(xhr: XMLHttpRequest, natives: Natives): Promise<SiteEnd> {
  return new OwnPromise((resolve) => {
    const end: SiteEnd = { bytes: 0, outcome: "failed" };
    natives.listen(xhr, "progress", (event) => (end.bytes = loadedOf(event)));
    natives.listen(xhr, "load", () => (end.outcome = "complete"));
    natives.listen(xhr, "abort", () => (end.outcome = "aborted"));
    natives.listen(xhr, "loadend", () => resolve(end));
  });
}

const OwnBlob = globalOf("Blob");
const OwnBuffer = globalOf("ArrayBuffer");

/** The body of an answer that an XMLHttpRequest gets. */
export interface XhrBody {
  /** The body in one piece. Reading throws if the page asked for another form than bytes. */
  copy(): SiteBody;
  /** Must be called with the response before the page gets it, because players hand its buffer to a worker. */
  see(response: unknown): void;
}

/** The body of the answer to `xhr`, which is not sent yet. It is copied once. */
export function bodyOfXhr(xhr: XMLHttpRequest, natives: Natives): XhrBody {
  let see!: (response: unknown) => void;
  const done = new OwnPromise<unknown>((resolve) => {
    let isSeen = false;
    see = (response) => {
      if (isSeen || natives.getXhr("readyState", xhr) !== DONE) return;
      isSeen = true;
      resolve(isA(OwnBuffer, response) ? copyOfBuffer(response) : response);
    };
  });
  natives.listen(xhr, "readystatechange", () => see(natives.getXhr("response", xhr)));
  let isRead = false;
  const read = async (): Promise<Uint8Array<ArrayBuffer> | undefined> => {
    if (isRead) return undefined;
    isRead = true;
    const body = await done;
    const buffer = isA(OwnBlob, body) ? await wholeBlob(body) : body;
    if (!isA(OwnBuffer, buffer)) throw new OwnTypeError("a body that is not bytes");
    return new OwnBytes(buffer);
  };
  return { copy: () => ({ read, stop: () => undefined }), see };
}
