/**
 * Emulation: one XMLHttpRequest that the transport answers. States, events and their order follow the XHR standard
 * (https://xhr.spec.whatwg.org/, §3.5 and §3.6). If the transport declines the request, the browser's own fetch
 * delivers the same bytes into the same states.
 */
import { formatRange } from "@tributary/contract";
import type { Carrier, MediaRequest } from "../shared/carry";
import type { PageResponseHead } from "../shared/messages";
import type { Link } from "./link";
import { natives } from "./natives";

const UNSENT = 0;
const OPENED = 1;
const HEADERS_RECEIVED = 2;
const LOADING = 3;
const DONE = 4;
/** The shortest time between two `progress` events in the standard. */
const PROGRESS_MS = 50;

export class Emulation {
  readonly #xhr: XMLHttpRequest;
  readonly #link: Link;
  readonly #request: MediaRequest;
  #state = OPENED;
  #sent = false;
  #head: PageResponseHead | null = null;
  #body = new Body();
  #cached: { value: unknown } | null = null;
  #source: { abort(): void } | null = null;
  #timer: number | undefined;
  #startedMs = 0;
  #lastProgressMs = 0;

  constructor(xhr: XMLHttpRequest, link: Link, request: MediaRequest) {
    this.#xhr = xhr;
    this.#link = link;
    this.#request = request;
  }

  get readyState(): number {
    return this.#state;
  }
  get status(): number {
    return this.#head?.status ?? 0;
  }
  get statusText(): string {
    return this.#head?.statusText ?? "";
  }
  get responseURL(): string {
    return this.#head?.url ?? "";
  }
  get responseText(): string {
    return this.#head === null || this.#state < LOADING ? "" : this.#body.text(this.header("content-type"));
  }

  get response(): unknown {
    const type = this.#xhr.responseType;
    if (type === "" || type === "text") return this.responseText;
    if (this.#state !== DONE || this.#head === null) return null;
    this.#cached ??= { value: this.#body.as(type, this.header("content-type")) };
    return this.#cached.value;
  }

  header(name: string): string | null {
    const headers = this.#head?.headers ?? {};
    const wanted = name.toLowerCase();
    return Object.hasOwn(headers, wanted) ? headers[wanted]! : null;
  }

  allHeaders(): string {
    const names = Object.keys(this.#head?.headers ?? {}).sort();
    return names.map((name) => `${name}: ${this.header(name)}\r\n`).join("");
  }

  assertUnsent(what: string): void {
    if (this.#sent || this.#state !== OPENED) throw invalidState(what, "be OPENED.");
  }

  assertNotLoading(what: string): void {
    if (this.#state >= LOADING) throw invalidState(what, "not be LOADING or DONE.");
  }

  send(): void {
    this.#sent = true;
    this.#startedMs = performance.now();
    this.#progress("loadstart", 0);
    if (!this.#sent || this.#state !== OPENED) return;
    this.setTimer();
    void this.#link.ready().then((carrier) => {
      if (!this.#sent) return;
      if (carrier !== null) this.#carry(carrier);
      else void this.#fetchNatively();
    });
  }

  /** `timeout` counts from `send`, even if it is set later. 0 means no timeout. */
  setTimer(): void {
    natives.clearTimeout(this.#timer);
    if (!this.#sent || this.#xhr.timeout === 0) return;
    const leftMs = Math.max(0, this.#startedMs + this.#xhr.timeout - performance.now());
    this.#timer = natives.setTimeout(() => this.#endInError("timeout"), leftMs);
  }

  abort(): void {
    const isUnderWay = this.#sent && this.#state < DONE;
    if (isUnderWay) this.#endInError("abort");
    if (this.#state === DONE) {
      this.#state = UNSENT;
      this.#clearResponse();
    }
  }

  /** Ends without another event, because the page opens the object again. */
  forget(): void {
    this.#stop();
    this.#state = UNSENT;
  }

  #carry(carrier: Carrier): void {
    const carried = carrier.carry(this.#request, {
      native: () => void this.#fetchNatively(),
      head: (head) => this.#handleHead(head),
      bytes: (bytes) => {
        this.#handleBytes(bytes);
        carried.credit();
      },
      end: () => this.#handleEnd(),
      error: () => this.#endInError("error"),
    });
    this.#source = carried;
  }

  async #fetchNatively(): Promise<void> {
    const controller = new natives.AbortController();
    this.#source = controller;
    const { url, range } = this.#request;
    const isCurrent = (): boolean => this.#source === controller;
    try {
      const headers: HeadersInit = range === null ? {} : { Range: formatRange(range) };
      const response = await natives.fetch(url, { headers, signal: controller.signal });
      if (!isCurrent()) return;
      this.#handleHead(headOf(response));
      const reader = response.body?.getReader();
      for (let piece = await reader?.read(); isCurrent() && piece?.value !== undefined; piece = await reader?.read())
        this.#handleBytes(piece.value);
      if (!isCurrent()) return;
      this.#link.noteDirect(this.#body.bytes);
      this.#handleEnd();
    } catch {
      if (isCurrent()) this.#endInError("error");
    }
  }

  #handleHead(head: PageResponseHead): void {
    this.#head = head;
    this.#state = HEADERS_RECEIVED;
    this.#changed();
  }

  #handleBytes(bytes: Uint8Array<ArrayBuffer>): void {
    if (!this.#sent) return;
    this.#body.push(bytes);
    const nowMs = performance.now();
    if (this.#state === LOADING && nowMs - this.#lastProgressMs < PROGRESS_MS) return;
    this.#lastProgressMs = nowMs;
    this.#state = LOADING;
    this.#changed();
    if (this.#sent) this.#progress("progress", this.#body.bytes);
  }

  #handleEnd(): void {
    if (!this.#sent) return;
    if (this.#body.bytes > 0) this.#progress("progress", this.#body.bytes);
    if (!this.#sent) return;
    this.#stop();
    this.#state = DONE;
    this.#changed();
    if (this.#state !== DONE) return;
    this.#progress("load", this.#body.bytes);
    if (this.#state === DONE) this.#progress("loadend", this.#body.bytes);
  }

  #endInError(event: "error" | "abort" | "timeout"): void {
    this.#stop();
    this.#clearResponse();
    this.#state = DONE;
    this.#changed();
    if (this.#state !== DONE) return;
    this.#progress(event, 0);
    if (this.#state === DONE) this.#progress("loadend", 0);
  }

  #stop(): void {
    this.#sent = false;
    natives.clearTimeout(this.#timer);
    const source = this.#source;
    this.#source = null;
    source?.abort();
  }

  #clearResponse(): void {
    this.#head = null;
    this.#body = new Body();
    this.#cached = null;
  }

  #changed(): void {
    this.#xhr.dispatchEvent(new Event("readystatechange"));
  }

  #progress(type: string, loaded: number): void {
    const total = loaded === 0 && this.#head === null ? 0 : (this.#head?.totalBytes ?? 0);
    this.#xhr.dispatchEvent(new ProgressEvent(type, { lengthComputable: total > 0, loaded, total }));
  }
}

/** The body. The first read joins its parts into one piece. */
class Body {
  #parts: Uint8Array<ArrayBuffer>[] = [];
  bytes = 0;

  push(bytes: Uint8Array<ArrayBuffer>): void {
    this.#parts.push(bytes);
    this.bytes += bytes.length;
  }

  text(contentType: string | null): string {
    const charset = /;\s*charset="?([^";\s]+)/i.exec(contentType ?? "")?.[1] ?? "utf-8";
    const bytes = this.#gathered();
    try {
      return new TextDecoder(charset).decode(bytes);
    } catch {
      return new TextDecoder().decode(bytes);
    }
  }

  as(type: XMLHttpRequestResponseType, contentType: string | null): unknown {
    if (type === "arraybuffer") return this.#gathered().buffer;
    if (type === "blob") return new Blob([this.#gathered()], { type: contentType ?? "text/xml" });
    if (type !== "json") return null;
    try {
      return JSON.parse(new TextDecoder().decode(this.#gathered())) as unknown;
    } catch {
      return null;
    }
  }

  #gathered(): Uint8Array<ArrayBuffer> {
    const gathered = new Uint8Array(this.bytes);
    let at = 0;
    for (const part of this.#parts) {
      gathered.set(part, at);
      at += part.length;
    }
    this.#parts = [gathered];
    return gathered;
  }
}

function headOf(response: Response): PageResponseHead {
  const { status, statusText, type, url, redirected } = response;
  const length = Number(response.headers.get("content-length") ?? NaN);
  const isEncoded = response.headers.has("content-encoding");
  return {
    status,
    statusText,
    headers: Object.fromEntries(response.headers),
    responseType: type,
    url,
    redirected,
    totalBytes: Number.isNaN(length) || isEncoded ? null : length,
  };
}

function invalidState(what: string, why: string): DOMException {
  return new DOMException(
    `Failed to execute '${what}' on 'XMLHttpRequest': The object's state must ${why}`,
    "InvalidStateError",
  );
}
