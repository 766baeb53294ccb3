/**
 * Emulation: one XMLHttpRequest that the transport answers. States, events and their order follow the XHR standard
 * (https://xhr.spec.whatwg.org/, §3.5 and §3.6). If the transport declines the request, or the page wants the answer in
 * a form that only the browser can give, a native object asks the site. It lends its states, events and answer to the
 * page's object.
 */
import type { Carrier, MediaRequest, PageXhr, RequestHandle, StateRule, XhrEmulation } from "../shared/carry";
import type { PageResponseHead } from "../shared/messages";
import type { Natives } from "../page/natives";
import { fieldsOf, type Fields } from "../shared/fields";
import { add, firstOf, globalOf, lowerCase, matches, namesOf, options } from "../shared/primordials";
import { bytes as part, max, OwnBytes, sorted } from "../shared/late-primordials";
import { eventOf, pageMs } from "../shared/platform";
import { OwnProgress, progressOf } from "../shared/late-platform";
import { isNativeForm } from "../shared/rules";
import { callXhr, copyType, SiteXhr } from "./site-xhr";
import { WORDS } from "./words";

const UNSENT = 0;
const OPENED = 1;
const HEADERS_RECEIVED = 2;
const LOADING = 3;
const DONE = 4;
/** The shortest time between two `progress` events in the standard. */
const PROGRESS_MS = 50;
/** Browsers disagree about the type of a Blob whose Content-Type has parameters or no value. */
const PLAIN_TYPE = /^[a-z\d]+\/[\w.+-]+$/;

const OwnBlob = globalOf("Blob");
const OwnException = globalOf("DOMException");

export class Emulation implements XhrEmulation {
  readonly #xhr: XMLHttpRequest;
  readonly #page: PageXhr;
  readonly #natives: Natives;
  readonly #carry: Carrier["carry"];
  readonly #request: MediaRequest;
  #native: XMLHttpRequest | null = null;
  /** Asked beside the proxies. */
  #site: SiteXhr | null = null;
  #state = OPENED;
  #sent = false;
  #head: PageResponseHead | null = null;
  #body = new Body();
  #cached: { value: unknown } | null = null;
  #source: { abort(): void } | null = null;
  #carried: RequestHandle | null = null;
  #timer: number | undefined;
  #startedMs = 0;
  #lastProgressMs = 0;

  constructor(page: PageXhr, request: MediaRequest, natives: Natives, carry: Carrier["carry"]) {
    this.#xhr = page.xhr;
    this.#page = page;
    this.#request = request;
    this.#natives = natives;
    this.#carry = carry;
  }

  answer(name: string, target: (...args: never[]) => unknown, args: unknown[]): unknown {
    const callOn = (xhr: XMLHttpRequest): unknown => this.#natives.apply(target as () => unknown, xhr, args);
    const answering = this.#answering;
    switch (name) {
      case "abort":
        return this.#abort();
      case "send":
      case "setRequestHeader":
        throw forbidden(name, this.#state === OPENED);
      case "withCredentials":
        if (this.#state !== UNSENT) throw forbidden(name, this.#state === OPENED);
        return callOn(this.#xhr);
      case "responseType":
      case "overrideMimeType":
        if (this.#state >= LOADING) throw forbidden(name, false);
        callOn(this.#xhr);
        if (name === "overrideMimeType") this.#page.asked.mime = `${args[0]}`;
        return this.#changeForm(name);
      case "timeout":
        callOn(this.#xhr);
        return this.#setTimer();
      case "responseText":
      case "responseXML":
        return callOn(answering ?? this.#xhr);
      default:
        return answering !== null || args.length < target.length
          ? callOn(answering ?? this.#xhr)
          : this.#told(name, args);
    }
  }

  /** The native object that answers in place of the transport, once it has come as far as the transport had. */
  get #answering(): XMLHttpRequest | null {
    const state = this.#native === null ? UNSENT : (this.#natives.getXhr("readyState", this.#native) as number);
    return state >= this.#state ? this.#native : null;
  }

  /** What the transport's answer says. */
  #told(name: string, args: unknown[]): unknown {
    switch (name) {
      case "getResponseHeader":
        return this.#header(`${args[0]}`);
      case "getAllResponseHeaders":
        return this.#allHeaders();
      case "readyState":
        return this.#state;
      case "status":
        return this.#head?.status ?? 0;
      case "responseURL":
        return this.#head?.url ?? "";
      case "statusText":
        return this.#head?.statusText ?? "";
      default:
        return this.#response;
    }
  }

  get #response(): unknown {
    if (this.#state !== DONE) return null;
    const responseType = this.#natives.getXhr("responseType", this.#xhr) as XMLHttpRequestResponseType;
    if (this.#head === null && !(WORDS.hasEmptyBuffer && responseType === "arraybuffer")) return null;
    this.#cached ??= { value: this.#body.as(responseType, this.#fields["content-type"] ?? null) };
    return this.#cached.value;
  }

  get #fields(): Fields {
    return fieldsOf(this.#head?.headers ?? {});
  }

  #header(name: string): string | null {
    return this.#fields[lowerCase(name)] ?? null;
  }

  #allHeaders(): string {
    const names = sorted(namesOf(this.#fields));
    let lines = "";
    firstOf(names, (name) => void (lines += `${name}: ${this.#header(name)}\r\n`));
    return lines;
  }

  send(): void {
    this.#sent = true;
    this.#startedMs = pageMs();
    this.#progress("loadstart", 0);
    if (!this.#sent || this.#state !== OPENED) return;
    this.#setTimer();
    const carried = this.#carry(this.#request, {
      askSite: () => (this.#site = new SiteXhr(this.#page, this.#natives)),
      native: (site) => this.#serve(site),
      head: (head) => this.#handleHead(head),
      bytes: (bytes) => {
        this.#handleBytes(bytes);
        carried.credit();
      },
      end: () => this.#handleEnd(),
      error: () => this.#endInError("error"),
    });
    this.#source = this.#carried = carried;
  }

  /** `timeout` counts from `send`, even if it is set later. 0 means no timeout. */
  #setTimer(): void {
    this.#natives.clearTimeout(this.#timer);
    const timeoutMs = this.#natives.getXhr("timeout", this.#xhr) as number;
    if (!this.#sent || timeoutMs === 0) return;
    const leftMs = max(0, this.#startedMs + timeoutMs - pageMs());
    this.#timer = this.#natives.setTimeout(() => this.#endInError("timeout"), leftMs);
  }

  #abort(): void {
    const isUnderWay = this.#sent && this.#state < DONE;
    if (isUnderWay) this.#endInError("abort");
    if (this.#state === DONE) {
      this.#state = UNSENT;
      this.#clearResponse();
    }
  }

  forget(): boolean {
    const isChanged = this.#state !== OPENED;
    this.#stop();
    this.#state = UNSENT;
    return isChanged;
  }

  /** The page wants the answer in another form, which perhaps only the browser can give. */
  #changeForm(by: "responseType" | "overrideMimeType"): void {
    const { mime } = this.#page.asked;
    const native = this.#native ?? (this.#sent && this.#wantsNative() ? null : this.#site?.native);
    if (native === null) this.#carried?.useSite();
    else if (native !== undefined && by === "responseType") copyType(this.#xhr, native, this.#natives);
    else if (native !== undefined) callXhr(by, native, mime);
  }

  #wantsNative(): boolean {
    return isNativeForm(this.#natives.getXhr("responseType", this.#xhr), this.#page.asked.mime);
  }

  #serve(site: SiteXhr): void {
    if (site.hasFailed) return this.#endInError("error");
    const { native } = site;
    this.#native = native;
    this.#source = {
      abort: () => {
        this.#native = null;
        site.abort();
      },
    };
    firstOf(["readystatechange", "progress", "load", "error", "loadend"], (type) =>
      this.#natives.listen(native, type, (event) => {
        if (this.#native === native) this.#repeat(native, event);
      }),
    );
    if ((this.#natives.getXhr("readyState", native) as number) > OPENED) this.#repeatState(native);
  }

  /** Repeats an event of the native object on the page's object. */
  #repeat(native: XMLHttpRequest, event: ProgressEvent): void {
    const { type } = eventOf(event);
    if (type === "readystatechange") this.#repeatState(native);
    else this.#fireProgress(type, progressOf(event));
  }

  #repeatState(native: XMLHttpRequest): void {
    const state = this.#natives.getXhr("readyState", native) as number;
    if (state <= this.#state && state !== LOADING) return;
    this.#state = state;
    if (state === DONE) {
      this.#sent = false;
      this.#natives.clearTimeout(this.#timer);
    }
    this.#changed();
  }

  #handleHead(head: PageResponseHead): void {
    this.#site = null;
    if (
      this.#natives.getXhr("responseType", this.#xhr) === "blob" &&
      !matches(PLAIN_TYPE, fieldsOf(head.headers)["content-type"] ?? "")
    )
      return this.#carried?.useSite();
    this.#head = head;
    this.#state = HEADERS_RECEIVED;
    this.#changed();
  }

  #handleBytes(bytes: Uint8Array<ArrayBuffer>): void {
    if (!this.#sent) return;
    this.#body.push(bytes);
    const nowMs = pageMs();
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
    const { bytes } = this.#body;
    this.#progress("load", bytes);
    this.#progress("loadend", bytes);
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
    this.#natives.clearTimeout(this.#timer);
    const source = this.#source;
    this.#source = null;
    source?.abort();
  }

  #clearResponse(): void {
    this.#native = null;
    this.#head = null;
    this.#body = new Body();
    this.#cached = null;
  }

  #fireProgress(type: string, progress: ProgressEventInit): void {
    this.#natives.dispatch(this.#xhr, new OwnProgress(type, options(progress)));
  }

  #changed(): void {
    this.#natives.fire(this.#xhr, "readystatechange");
  }

  #progress(type: string, loaded: number): void {
    const total = loaded === 0 && this.#head === null ? 0 : (this.#head?.totalBytes ?? 0);
    this.#fireProgress(type, { lengthComputable: total > 0, loaded, total });
  }
}

/** The body. The first read joins its parts into one piece. */
class Body {
  #parts: Uint8Array<ArrayBuffer>[] = [];
  bytes = 0;

  push(bytes: Uint8Array<ArrayBuffer>): void {
    add(this.#parts, bytes);
    this.bytes += part.count(bytes);
  }

  as(type: XMLHttpRequestResponseType, contentType: string | null): ArrayBuffer | Blob {
    const bytes = this.#gathered();
    return type === "arraybuffer" ? part.buffer(bytes) : new OwnBlob([bytes], options({ type: contentType ?? "" }));
  }

  #gathered(): Uint8Array<ArrayBuffer> {
    const gathered = new OwnBytes(this.bytes);
    let at = 0;
    firstOf(this.#parts, (each) => {
      part.put(gathered, each, at);
      at += part.count(each);
    });
    this.#parts = [gathered];
    return gathered;
  }
}

function forbidden(rule: StateRule, isSending: boolean): DOMException {
  return new OwnException(WORDS.forbids(rule, isSending), "InvalidStateError");
}
