/**
 * The only way out of a proxy: one GET of a vetted URL. It follows redirects and vets each of them. It sends no header
 * of the client except a range and the origin of a page, and the validators of an answer that the proxy keeps. It
 * limits sizes and times. A body of another length than announced is an error. Not here: what may be fetched
 * (policy.ts), and sharing and keeping (../chunks.ts).
 */
import http from "node:http";
import https from "node:https";
import { isIP } from "node:net";
import type tls from "node:tls";
import type { Client } from "../clients";
import { abortable } from "./abortable";
import { VettedAgents, type VettedRequestOptions } from "./dial";
import { EgressError, egressError } from "./error";
import { Lookup } from "./lookup";
import { hostOf, portOf, vetAddresses, vetUrl, type EgressPolicy } from "./policy";
import {
  formatHops,
  formatRange,
  HOPS_HEADER,
  type Hop,
  type RangeRequest,
  type ResponseHead,
  type RejectionKind,
} from "@tributary/contract";
import { PROXY_SETTINGS } from "@tributary/contract/settings";
import { LIMITS } from "@tributary/protocol";
import { checkContentRange } from "./range";

export interface EgressTimes {
  /** From the request to the origin's head, redirects included. */
  headMs: number;
  /** Between two pieces of the body, while it is being read. */
  stallMs: number;
  /** From the head to the end of the body. */
  totalMs: number;
}

const TIMES_DEFAULT: EgressTimes = {
  headMs: PROXY_SETTINGS["proxy.originHeadMs"].default,
  stallMs: PROXY_SETTINGS["proxy.originStallMs"].default,
  totalMs: PROXY_SETTINGS["proxy.originTotalMs"].default,
};

/** As in the Fetch standard. */
const REDIRECTS_MAX = 20;
const HEADER_BYTES_MAX = 65_536;
const REDIRECT_STATUSES = [301, 302, 303, 307, 308];
/** Interim responses have a lower status. A plan cannot carry a higher one (docs/spec/protocol.md §3). */
const STATUS_MIN = 200;
const STATUS_MAX = 599;
const USER_AGENT = "tributary-proxy/0.1";

/**
 * The last answer to one fetch. A header sent several times is joined with commas. `location` and `hops` are set only
 * when the proxy followed redirects: where they led, and what each of them allowed (`Hop`).
 */
export interface OriginResponse extends ResponseHead {
  /** From the start of the fetch to the head, in ms. */
  serverFetchMs: number;
  /** Ends after exactly `totalBytes`, or throws an `EgressError`. Leaving it early cancels the fetch. */
  body: AsyncIterable<Uint8Array>;
  /** Ends the fetch without reading the body. */
  cancel(): void;
  /** The proofs of an object's pieces, if the answer is an object or a part of it. */
  proof?: (piece: number) => Uint8Array;
}

export interface FetchDetails {
  /** Headers by which the origin tells whether a stored answer is still right (RFC 9110 §13.1). */
  conditions?: Record<string, string> | undefined;
  /** The web page for which the client asks. */
  pageOrigin?: string | undefined;
}

interface Wanted extends FetchDetails {
  range: RangeRequest | undefined;
}

type Headers = Record<string, string>;

interface Followed {
  message: http.IncomingMessage;
  url: URL;
  hops: readonly Hop[];
}

export interface EgressOptions {
  policy: EgressPolicy;
  times?: Partial<EgressTimes>;
  /** All addresses of a host. Throws an `EgressError`. Default: `Lookup`. */
  resolve?: (host: string, client: string) => Promise<string[]>;
  tls?: tls.SecureContextOptions;
}

export class Egress {
  readonly #policy: EgressPolicy;
  #times: EgressTimes;
  readonly #resolve: (host: string, client: string) => Promise<string[]>;
  readonly #agents: VettedAgents;

  constructor(options: EgressOptions) {
    this.#policy = options.policy;
    this.#times = { ...TIMES_DEFAULT, ...options.times };
    const { allowPrivate } = options.policy;
    const lookup = new Lookup({ isPrivate: (host) => allowPrivate.some((rule) => rule.host === host) });
    this.#resolve = options.resolve ?? ((host, client) => lookup.addressesOf(host, client));
    this.#agents = new VettedAgents(options.tls);
  }

  /** Counts for later requests. */
  setTimes(times: EgressTimes): void {
    this.#times = times;
  }

  /** The URL in canonical form. Throws an `EgressError` when this proxy may not fetch it. */
  vet(text: string): URL {
    const url = vetUrl(text, this.#policy);
    if (!(url instanceof URL)) throw new EgressError(url);
    return url;
  }

  /**
   * Resolves with the head of the last response. Throws an `EgressError`. `signal` also ends the body. The look-ups and
   * the bytes count for `client`.
   */
  async fetch(
    text: string,
    range: RangeRequest | undefined,
    signal: AbortSignal,
    client?: Client,
    details: FetchDetails = {},
  ): Promise<OriginResponse> {
    const refused = client?.bytesRefusal();
    if (refused) throw new EgressError(refused);
    const startMs = performance.now();
    const cancel = new AbortController();
    const stop = (): void => cancel.abort(egressError("aborted", "The request was given up."));
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    const tooLate = egressError("originTimeout", `The origin did not answer within ${this.#times.headMs} ms.`, {
      limit: this.#times.headMs,
    });
    const timer = setTimeout(() => cancel.abort(tooLate), this.#times.headMs);
    const done = (): void => signal.removeEventListener("abort", stop);
    try {
      const followed = await this.#follow(text, { range, ...details }, cancel.signal, client?.name ?? "");
      followed.message.once("close", done);
      const noteBytes = (bytes: number): void => client?.noteOrigin(bytes);
      return this.#describe(followed, range, performance.now() - startMs, cancel, noteBytes);
    } catch (error) {
      done();
      throw toEgressError(
        cancel.signal.aborted ? cancel.signal.reason : error,
        "originUnreachable",
        "The origin could not be reached",
      );
    } finally {
      clearTimeout(timer);
    }
  }

  close(): void {
    this.#agents.destroy();
  }

  async #follow(text: string, wanted: Wanted, signal: AbortSignal, client: string): Promise<Followed> {
    const seen = new Set<string>();
    const hops: Hop[] = [];
    for (let url = this.vet(text); ;) {
      const numbers = { got: seen.size, limit: REDIRECTS_MAX };
      if (seen.has(url.href)) throw egressError("redirectLoop", "The origin redirects in a loop.", numbers);
      if (seen.size > REDIRECTS_MAX) {
        throw egressError("tooManyRedirects", `The origin redirects too often: limit ${REDIRECTS_MAX}.`, numbers);
      }
      seen.add(url.href);
      const origin = originHeader(wanted.pageOrigin, [...hops, url]);
      const addresses = await this.#addressesOf(url, signal, client);
      const message = await this.#get(url, addresses, headersOf(wanted, origin), signal);
      const location = message.headers.location;
      if (!REDIRECT_STATUSES.includes(message.statusCode!) || location === undefined) return { message, url, hops };
      message.destroy();
      hops.push({
        origin: url.origin,
        allowedOrigin: message.headers["access-control-allow-origin"] ?? null,
        setsCookie: message.headers["set-cookie"] !== undefined,
      });
      checkHops(hops);
      if (!URL.canParse(location, url.href))
        throw egressError("badRedirect", "The origin redirects to a location that is not a URL.");
      const target = this.vet(new URL(location, url.href).href);
      checkScheme(wanted.pageOrigin, url, target);
      url = target;
    }
  }

  /** The addresses of the URL's host. Throws when one of them must not be dialled. */
  async #addressesOf(url: URL, signal: AbortSignal, client: string): Promise<string[]> {
    const host = hostOf(url);
    const addresses = isIP(host) === 0 ? await abortable(this.#lookUp(host, client), signal) : [host];
    const refused = vetAddresses(url, addresses, this.#policy);
    if (refused) throw new EgressError(refused);
    return addresses;
  }

  async #lookUp(host: string, client: string): Promise<string[]> {
    const addresses = await this.#resolve(host, client).catch((error: unknown) => {
      if (error instanceof EgressError) throw error;
      return [];
    });
    if (addresses.length === 0) throw egressError("dnsFailed", `The name ${host} could not be resolved.`);
    return addresses;
  }

  /** The origin may close a kept-alive connection just when it is used again. The request then repeats on a new one. */
  async #get(url: URL, addresses: string[], headers: Headers, signal: AbortSignal): Promise<http.IncomingMessage> {
    const first = this.#send(url, addresses, headers, signal);
    try {
      return await first.response;
    } catch (error) {
      if (!first.request.reusedSocket || signal.aborted) throw error;
      return await this.#send(url, addresses, headers, signal).response;
    }
  }

  #send(url: URL, vettedAddresses: string[], headers: Headers, signal: AbortSignal) {
    const options: VettedRequestOptions = {
      method: "GET",
      hostname: hostOf(url),
      port: portOf(url),
      path: pathOf(url),
      headers: { host: url.host, ...headers },
      agent: this.#agents.of(url.protocol),
      maxHeaderSize: HEADER_BYTES_MAX,
      signal,
      vettedAddresses,
      unwanted: signal,
    };
    const request = (url.protocol === "https:" ? https : http).request(options);
    const response = new Promise<http.IncomingMessage>((resolve, reject) => {
      request.once("response", resolve);
      request.on("error", reject);
      request.once("upgrade", (_message, socket) => {
        socket.destroy();
        reject(egressError("originFailed", "The origin changed the protocol."));
      });
    });
    request.end();
    return { request, response };
  }

  #describe(
    { message, url, hops }: Followed,
    range: RangeRequest | undefined,
    serverFetchMs: number,
    cancel: AbortController,
    noteBytes: (bytes: number) => void,
  ): OriginResponse {
    const headers = flatten({
      ...message.headers,
      location: hops.length > 0 ? url.href : undefined,
      [HOPS_HEADER]: hops.length > 0 ? formatHops(hops) : undefined,
    });
    const status = message.statusCode!;
    message.on("error", () => undefined);
    try {
      if (status < STATUS_MIN || status > STATUS_MAX) {
        const text = `The origin answered with a wrong status: got ${status}, allowed ${STATUS_MIN} to ${STATUS_MAX}.`;
        throw egressError("originFailed", text, { got: status, limit: STATUS_MAX });
      }
      const totalBytes = lengthOf(status, headers, range);
      const encoding = headers["content-encoding"] ?? "identity";
      if (encoding.toLowerCase() !== "identity") {
        throw egressError("contentEncoded", `The origin sent ${encoding} although identity was asked for.`);
      }
      const quit = (): void => {
        message.destroy();
      };
      return {
        status,
        headers,
        totalBytes,
        serverFetchMs,
        body: readBody(message, totalBytes, this.#times, cancel.signal, noteBytes),
        cancel: quit,
      };
    } catch (error) {
      message.destroy();
      throw error;
    }
  }
}

function headersOf({ range, conditions }: Wanted, origin: string | undefined): Headers {
  return {
    "user-agent": USER_AGENT,
    accept: "*/*",
    "accept-encoding": "identity",
    ...(origin === undefined ? {} : { origin }),
    ...(range ? { range: formatRange(range) } : {}),
    ...conditions,
  };
}

/**
 * The Origin header of a browser's request for a page (Fetch standard, HTTP-redirect fetch and "append a request Origin
 * header"). `way` holds the redirects so far and the address to ask. A page's own origin gets no header. Once the way
 * has left the page's origin, each request has one. It is `null` after a hop from another origin to a third one.
 */
export function originHeader(pageOrigin: string | undefined, way: readonly Pick<Hop, "origin">[]): string | undefined {
  if (pageOrigin === undefined || way.every(({ origin }) => origin === pageOrigin)) return undefined;
  const isTainted = way.some(({ origin }, at) => {
    const before = way[at - 1]?.origin ?? origin;
    return before !== origin && before !== pageOrigin;
  });
  return isTainted ? "null" : pageOrigin;
}

/**
 * For a page, a redirect from https to http is not followed. The page's browser may block that (mixed content) or ask
 * over https, by policies that a proxy does not know.
 */
function checkScheme(pageOrigin: string | undefined, { protocol, host }: URL, target: URL): void {
  if (pageOrigin === undefined || protocol !== "https:" || target.protocol === "https:") return;
  throw egressError("badRedirect", `The origin redirects from https to http: ${host} to ${target.host}.`);
}

/** Without the hops nobody could judge the answer as the Fetch standard does, so a client must get all of them. */
function checkHops(hops: readonly Hop[]): void {
  const [got, limit] = [Buffer.byteLength(formatHops(hops)), LIMITS.headerValueBytesMax];
  if (got <= limit) return;
  const message = `The origin redirects too often: the hops take ${got} bytes, limit ${limit}.`;
  throw egressError("tooManyRedirects", message, { got, limit });
}

/** The path and query as they are written. `search` leaves out the question mark of an empty query. */
function pathOf({ href, origin }: URL): string {
  return href.slice(origin.length).split("#")[0]!;
}

/** The body's length from Content-Range in a 206, else from Content-Length. null when the origin states neither. */
function lengthOf(status: number, headers: Record<string, string>, range: RangeRequest | undefined): number | null {
  if (status === 204 || status === 304) return 0;
  const announced = headers["content-length"] === undefined ? undefined : Number(headers["content-length"]);
  if (announced !== undefined && !Number.isSafeInteger(announced)) {
    throw egressError("badLength", "The origin's Content-Length is not a number.");
  }
  return status === 206 ? checkContentRange(headers["content-range"], range, announced) : (announced ?? null);
}

async function* readBody(
  message: http.IncomingMessage,
  totalBytes: number | null,
  times: EgressTimes,
  signal: AbortSignal,
  noteBytes: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  const endMs = performance.now() + times.totalMs;
  const pieces = message[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let receivedBytes = 0;
  try {
    for (;;) {
      const next = await within(pieces.next(), Math.min(times.stallMs, endMs - performance.now()));
      if (next.done) break;
      receivedBytes += next.value.length;
      noteBytes(next.value.length);
      if (totalBytes !== null && receivedBytes > totalBytes)
        throw wrongLength("bodyTooLong", "more", receivedBytes, totalBytes);
      yield next.value;
    }
    if (totalBytes !== null && receivedBytes < totalBytes)
      throw wrongLength("shortBody", "fewer", receivedBytes, totalBytes);
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (totalBytes !== null && !(error instanceof EgressError))
      throw wrongLength("shortBody", "fewer", receivedBytes, totalBytes);
    throw toEgressError(error, "shortBody", "The origin's body broke off");
  } finally {
    message.destroy();
  }
}

function wrongLength(kind: RejectionKind, word: string, got: number, limit: number): EgressError {
  return egressError(kind, `The origin sent ${word} bytes than it announced: got ${got}, announced ${limit}.`, {
    got,
    limit,
  });
}

/** Rejects with `originStalled` after `ms` and then ignores the promise. */
async function within<T>(promise: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(egressError("originStalled", "The origin stopped sending, or took too long in all.")),
      Math.max(0, ms),
    );
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
    promise.catch(() => undefined);
  }
}

function flatten(headers: http.IncomingHttpHeaders): Record<string, string> {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flat[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  return flat;
}

/** Uses only the code of Node's error, because its message can hold addresses. */
function toEgressError(error: unknown, kind: RejectionKind, text: string): EgressError {
  if (error instanceof EgressError) return error;
  const code = (error as NodeJS.ErrnoException).code;
  return egressError(kind, code === undefined ? `${text}.` : `${text} (${code}).`);
}
