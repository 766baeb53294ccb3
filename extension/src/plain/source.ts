/**
 * Source: byte ranges of one file and its index box, which may be at any place. The bytes come through the transport
 * or, if it fails, by the page's own fetch. All answers must belong to one representation (RFC 9110 §8.8), or the
 * source fails.
 */
import type { ByteRange } from "@tributary/contract";
import type { Link } from "../page/link";
import type { Natives } from "../page/natives";
import { SiteFetch } from "../carry/site-fetch";
import type { Carrier } from "../shared/carry";
import { contentRange, fieldsOf, rangeText, type Fields } from "../shared/fields";
import { options, OwnPromise } from "../shared/primordials";
import { bytes as part, min, OwnBytes, OwnError } from "../shared/late-primordials";
import { responseOf, wholeBody } from "../shared/platform";
import { abort, headerTable, OwnAbortController, signalOf } from "../shared/late-platform";
import { headerOf } from "./boxes";
import { hear } from "./elements";
import { Unsupported } from "./mp4";

const FIRST_BYTES = 64 * 1024;
const INDEX_BYTES_MAX = 16 * 1024 * 1024;
/** The search for the index ends after this many boxes. */
const BOXES_MAX = 8;

export interface Reading {
  bytes: Promise<Uint8Array<ArrayBuffer>>;
  abort(): void;
}

export class Source {
  #validators: string | undefined;
  #totalBytes: number | undefined;

  constructor(
    readonly url: string,
    readonly link: Link,
    readonly natives: Natives,
  ) {}

  /** Rejects if no one sends the bytes, or if they belong to another version of the file. */
  read(range: ByteRange): Reading {
    const controller = new OwnAbortController();
    return { bytes: this.#read(range, signalOf(controller)), abort: () => abort(controller) };
  }

  async #read(range: ByteRange, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    const { carrier } = this.link;
    if (carrier === null) return await this.#ofSite(this.#askSite(range, signal), range);
    return await this.#carried(carrier, range, signal);
  }

  /** The bytes through the transport, or from the site if the transport declines the request. */
  #carried(carrier: Carrier, range: ByteRange, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    return new OwnPromise((resolve, reject) => {
      const size = range.end - range.start + 1;
      const whole = new OwnBytes(size);
      let got = 0;
      const carried = carrier.carry(
        { url: this.url, range, cache: "default" },
        {
          askSite: () => this.#askSite(range, signal),
          native: (site) => void take(site),
          head: (head) => {
            const fault = this.#faultOf(head.status, fieldsOf(head.headers), range);
            if (fault !== undefined) refuse(fault);
          },
          bytes: (bytes) => {
            const count = part.count(bytes);
            if (got + count > size) return refuse(`more than the ${size} bytes that were asked for`);
            part.put(whole, bytes, got);
            got += count;
            carried.credit();
          },
          end: () => resolve(part.part(whole, 0, got)),
          error: () => reject(new OwnError("the rest could not be had")),
        },
      );
      // To resolve with a promise would ask it for `then`.
      const take = async (site: SiteFetch): Promise<void> => {
        try {
          resolve(await this.#ofSite(site, range));
        } catch (error) {
          reject(error);
        }
      };
      const refuse = (fault: string): void => {
        carried.abort();
        reject(new Unsupported(fault));
      };
      hear(signal, "abort", () => {
        carried.abort();
        reject(new OwnError("given up"));
      });
    });
  }

  #askSite(range: ByteRange, signal: AbortSignal): SiteFetch {
    const headers = options({ Range: rangeText(range.start, range.end) });
    const ask = (own: AbortSignal): Promise<Response> =>
      this.natives.fetch(this.url, options({ headers, signal: own }));
    return new SiteFetch(this.natives, ask, signal);
  }

  async #ofSite(site: SiteFetch, range: ByteRange): Promise<Uint8Array<ArrayBuffer>> {
    const response = await site.response;
    const { status, headers } = responseOf(response);
    const fault = this.#faultOf(status, headerTable(headers), range);
    if (fault !== undefined) throw new Unsupported(fault);
    const bytes = new OwnBytes(await wholeBody(response));
    site.noteEnd(part.count(bytes));
    this.link.noteDirect(part.count(bytes));
    return bytes;
  }

  /**
   * Why an answer is not the asked range of the same file; undefined if it is. A header that the page may not see
   * counts as equal.
   */
  #faultOf(status: number, headers: Fields, range: ByteRange): string | undefined {
    if (status !== 206) return `status ${status} for a range`;
    const field = headers["content-range"];
    const told = contentRange(field);
    if (field !== undefined && told?.start !== range.start) return `the range "${field}", not one from ${range.start}`;
    const validators = `${headers.etag} ${headers["last-modified"]}`;
    const totalBytes = told?.resourceBytes ?? undefined;
    if (validators !== (this.#validators ??= validators) || totalBytes !== (this.#totalBytes ??= totalBytes))
      return "the file has changed";
    return undefined;
  }

  /** The bytes of the `moov` box. */
  async index(): Promise<Uint8Array<ArrayBuffer>> {
    let at = 0;
    for (let boxCount = 0; boxCount < BOXES_MAX;) {
      const bytes = await this.#readSome(at);
      let inside = 0;
      for (let header = headerOf(bytes); header !== undefined; header = headerOf(part.part(bytes, inside))) {
        if (at + inside === 0 && header.type !== "ftyp") throw new Unsupported("not an MP4 file");
        if (header.type === "moov") return await this.#whole(at + inside, header.bytes, part.part(bytes, inside));
        if (header.bytes === Infinity || ++boxCount > BOXES_MAX) throw new Unsupported("no index");
        inside += header.bytes;
        if (inside > part.count(bytes)) break;
      }
      if (inside === 0) throw new Unsupported("no index");
      at += inside;
    }
    throw new Unsupported("no index");
  }

  #readSome(at: number): Promise<Uint8Array<ArrayBuffer>> {
    const end = min(at + FIRST_BYTES, this.#totalBytes ?? Infinity) - 1;
    if (end < at) throw new Unsupported("no index");
    return this.read({ start: at, end }).bytes;
  }

  async #whole(at: number, bytes: number, known: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
    if (bytes > INDEX_BYTES_MAX) throw new Unsupported(`an index of ${bytes} bytes`);
    const count = part.count(known);
    if (count >= bytes) return part.part(known, 0, bytes);
    const whole = new OwnBytes(bytes);
    part.put(whole, known, 0);
    const rest = await this.read({ start: at + count, end: at + bytes - 1 }).bytes;
    if (count + part.count(rest) !== bytes) throw new Unsupported("the index is cut short");
    part.put(whole, rest, count);
    return whole;
  }
}
