/**
 * Source: byte ranges of one file and its index box, which may be at any place. The bytes come through the transport
 * or, if it fails, by the page's own fetch. All answers must belong to one representation (RFC 9110 §8.8), or the
 * source fails.
 */
import type { Carrier } from "../shared/carry";
import { formatRange, parseContentRange, type ByteRange } from "@tributary/contract";
import type { Link } from "../page/link";
import { SiteFetch } from "../carry/site-fetch";
import type { Natives } from "../page/natives";
import { headerOf } from "./boxes";
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
    const controller = new AbortController();
    return { bytes: this.#read(range, controller.signal), abort: () => controller.abort() };
  }

  async #read(range: ByteRange, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    const { carrier } = this.link;
    return carrier === null ? this.#ofSite(this.#askSite(range, signal), range) : this.#carried(carrier, range, signal);
  }

  /** The bytes through the transport, or from the site if the transport declines the request. */
  #carried(carrier: Carrier, range: ByteRange, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    return new Promise((resolve, reject) => {
      const whole = new Uint8Array(range.end - range.start + 1);
      let got = 0;
      const carried = carrier.carry(
        { url: this.url, range },
        {
          askSite: () => this.#askSite(range, signal),
          native: (site) => resolve(this.#ofSite(site, range)),
          head: (head) => {
            const fault = this.#faultOf(head.status, new Headers(head.headers), range);
            if (fault !== undefined) refuse(fault);
          },
          bytes: (bytes) => {
            if (got + bytes.length > whole.length)
              return refuse(`more than the ${whole.length} bytes that were asked for`);
            whole.set(bytes, got);
            got += bytes.length;
            carried.credit();
          },
          end: () => resolve(whole.subarray(0, got)),
          error: () => reject(new Error("the rest could not be had")),
        },
      );
      const refuse = (fault: string): void => {
        carried.abort();
        reject(new Unsupported(fault));
      };
      signal.addEventListener("abort", () => {
        carried.abort();
        reject(new Error("given up"));
      });
    });
  }

  #askSite(range: ByteRange, signal: AbortSignal): SiteFetch {
    const headers = { Range: formatRange(range) };
    return new SiteFetch(this.natives, (own) => this.natives.fetch(this.url, { headers, signal: own }), signal);
  }

  async #ofSite(site: SiteFetch, range: ByteRange): Promise<Uint8Array<ArrayBuffer>> {
    const response = await site.response;
    const fault = this.#faultOf(response.status, response.headers, range);
    if (fault !== undefined) throw new Unsupported(fault);
    const bytes = new Uint8Array(await response.arrayBuffer());
    site.noteEnd(bytes.length);
    this.link.noteDirect(bytes.length);
    return bytes;
  }

  /**
   * Why an answer is not the asked range of the same file; undefined if it is. A header that the page may not see
   * counts as equal.
   */
  #faultOf(status: number, headers: Headers, range: ByteRange): string | undefined {
    if (status !== 206) return `status ${status} for a range`;
    const contentRange = headers.get("content-range");
    const told = parseContentRange(contentRange);
    if (contentRange !== null && told?.start !== range.start)
      return `a range from ${told?.start} instead of ${range.start}`;
    const validators = `${headers.get("etag")} ${headers.get("last-modified")}`;
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
      for (let header = headerOf(bytes); header !== undefined; header = headerOf(bytes.subarray(inside))) {
        if (at + inside === 0 && header.type !== "ftyp") throw new Unsupported("not an MP4 file");
        if (header.type === "moov") return this.#whole(at + inside, header.bytes, bytes.subarray(inside));
        if (header.bytes === Infinity || ++boxCount > BOXES_MAX) throw new Unsupported("no index");
        inside += header.bytes;
        if (inside > bytes.length) break;
      }
      if (inside === 0) throw new Unsupported("no index");
      at += inside;
    }
    throw new Unsupported("no index");
  }

  #readSome(at: number): Promise<Uint8Array<ArrayBuffer>> {
    const end = Math.min(at + FIRST_BYTES, this.#totalBytes ?? Infinity) - 1;
    if (end < at) throw new Unsupported("no index");
    return this.read({ start: at, end }).bytes;
  }

  async #whole(at: number, bytes: number, known: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
    if (bytes > INDEX_BYTES_MAX) throw new Unsupported(`an index of ${bytes} bytes`);
    if (known.length >= bytes) return known.subarray(0, bytes);
    const rest = await this.read({ start: at + known.length, end: at + bytes - 1 }).bytes;
    return new Uint8Array(await new Blob([known, rest]).arrayBuffer());
  }
}
