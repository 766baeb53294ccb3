/** Site XHR: a request to the site by a native XMLHttpRequest. */
import type { PageXhr, SiteEnd, SiteRequest } from "../shared/carry";
import type { SiteHead } from "../shared/messages";
import type { Natives } from "../page/natives";

const HEADERS_RECEIVED = 2;
const DONE = 4;

export class SiteXhr implements SiteRequest {
  readonly native: XMLHttpRequest;
  readonly head: Promise<SiteHead>;
  readonly end: Promise<SiteEnd>;
  readonly copy: () => AsyncIterable<Uint8Array<ArrayBuffer>>;
  hasFailed = false;
  readonly #natives: Natives;

  constructor(page: PageXhr, natives: Natives) {
    const native = (this.native = copyOf(page, natives));
    this.#natives = natives;
    this.head = headOfXhr(native, natives);
    this.head.catch(() => (this.hasFailed = true));
    this.end = endOfXhr(native, natives);
    this.copy = bodyOfXhr(native, natives).copy;
    page.sendNatively(native);
  }

  abort(): void {
    this.#natives.callXhr("abort", this.native);
  }
}

/** A native object that asks what the page's object asks. Its timeout is the emulation's affair. */
function copyOf({ xhr, asked }: PageXhr, natives: Natives): XMLHttpRequest {
  const copy = new natives.XMLHttpRequest();
  natives.callXhr("open", copy, "GET", asked.address, true);
  for (const [name, value] of asked.headers) natives.callXhr("setRequestHeader", copy, name, value);
  if (asked.mime !== undefined) natives.callXhr("overrideMimeType", copy, asked.mime);
  copyType(xhr, copy, natives);
  return copy;
}

export function copyType(from: XMLHttpRequest, to: XMLHttpRequest, natives: Natives): void {
  natives.setXhr("responseType", to, natives.getXhr("responseType", from));
}

/** The head of the answer to `xhr`, which is not sent yet. */
export function headOfXhr(xhr: XMLHttpRequest, natives: Natives): Promise<SiteHead> {
  return new Promise((resolve, reject) => {
    natives.listen(xhr, "readystatechange", () => {
      if (natives.getXhr("readyState", xhr) !== HEADERS_RECEIVED) return;
      const lines = (natives.callXhr("getAllResponseHeaders", xhr) as string).split("\r\n").filter(Boolean);
      const headers = lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]);
      resolve({
        status: natives.getXhr("status", xhr) as number,
        url: natives.getXhr("responseURL", xhr) as string,
        headers: Object.fromEntries(headers) as Record<string, string>,
      });
    });
    natives.listen(xhr, "loadend", () => reject(new TypeError("no answer")));
  });
}

/** The end of the answer to `xhr`, which is not sent yet. The events of an abort or an error tell no bytes. */
function endOfXhr(xhr: XMLHttpRequest, natives: Natives): Promise<SiteEnd> {
  return new Promise((resolve) => {
    const end: SiteEnd = { bytes: 0, outcome: "failed" };
    natives.listen(xhr, "progress", ({ loaded }) => (end.bytes = loaded));
    natives.listen(xhr, "load", () => (end.outcome = "complete"));
    natives.listen(xhr, "abort", () => (end.outcome = "aborted"));
    natives.listen(xhr, "loadend", () => resolve(end));
  });
}

/** The body of an answer that an XMLHttpRequest gets. */
export interface XhrBody {
  /** The body in one piece. Throws if the page asked for another form than bytes. */
  copy(): AsyncIterable<Uint8Array<ArrayBuffer>>;
  /** Must be called with the response before the page gets it, because players hand its buffer to a worker. */
  see(response: unknown): void;
}

/** The body of the answer to `xhr`, which is not sent yet. It is copied once. */
export function bodyOfXhr(xhr: XMLHttpRequest, natives: Natives): XhrBody {
  let see!: (response: unknown) => void;
  const done = new Promise<unknown>((resolve) => {
    let isSeen = false;
    see = (response) => {
      if (isSeen || natives.getXhr("readyState", xhr) !== DONE) return;
      isSeen = true;
      resolve(response instanceof ArrayBuffer ? response.slice() : response);
    };
  });
  natives.listen(xhr, "readystatechange", () => see(natives.getXhr("response", xhr)));
  async function* copy(): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    const body = await done;
    const buffer = body instanceof Blob ? await body.arrayBuffer() : body;
    if (!(buffer instanceof ArrayBuffer)) throw new TypeError("a body that is not bytes");
    yield new Uint8Array(buffer);
  }
  return { copy, see };
}
