/**
 * Asks origins in Node, where `fetch` would change the answer: it decodes content codings, limits the headers to 16 KB,
 * drops the question mark of an empty query, and refuses some ports. This module decides nothing about downloads.
 */
import { domainToASCII } from "node:url";
import { pipeline, type Duplex, type Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from "node:zlib";
import type { RangeRequest } from "@tributary/contract";
import {
  Agent,
  EnvHttpProxyAgent,
  fetch as undiciFetch,
  type Dispatcher,
  type RequestInit as UndiciInit,
} from "undici";
import { DownloadError, withoutPasswords } from "./errors";
import { onAbort } from "./listen";
import { headersFor } from "./modes/http";
import { connectOrigin, explained, tlsOptions } from "./origin-connect";
import { headersForOthers, type AskOrigin, type OriginAnswer, type OriginRequest } from "./origin";

const REDIRECT_STATUSES = [301, 302, 303, 307, 308];
/** As in the Fetch standard. */
const REDIRECTS_MAX = 20;
/** As in curl. */
const HEADER_BYTES_MAX = 300 * 1024;
/** Whoever reads the body limits these times. */
const LIMITS = { headersTimeout: 0, bodyTimeout: 0, maxHeaderSize: HEADER_BYTES_MAX, connect: connectOrigin } as const;
const USER_AGENT = "tributary/0.1";

/** Each makes a decoder for a body that begins with this byte. */
const DECODERS: Record<string, (firstByte: number) => Duplex> = {
  gzip: () => createGunzip(),
  "x-gzip": () => createGunzip(),
  // Some servers leave out the zlib format around the data, which all begins with the same four bits (RFC 1950 §2.2).
  deflate: (firstByte) => ((firstByte & 15) === 8 ? createInflate() : createInflateRaw()),
  br: () => createBrotliDecompress(),
};
const CODINGS_ASKED = "gzip, deflate, br";

let shared: Dispatcher | undefined;

/** One for the process. It goes through the proxy that the environment names (http_proxy, no_proxy). */
function dispatcher(): Dispatcher {
  if (shared) return shared;
  const [httpProxy, httpsProxy] = [proxyOf("http"), proxyOf("https")];
  const proxies = { ...(httpProxy && { httpProxy }), ...(httpsProxy && { httpsProxy }) };
  const isProxied = Object.keys(proxies).length > 0;
  return (shared = isProxied
    ? new EnvHttpProxyAgent({
        ...LIMITS,
        ...proxies,
        noProxy: hostsPastProxy(),
        proxyTunnel: false,
        requestTls: tlsOptions(),
      })
    : new Agent(LIMITS));
}

/** As in curl: the variable of the scheme comes first, and an address without a scheme is an HTTP proxy. */
function proxyOf(scheme: "http" | "https"): string | undefined {
  const names = [`${scheme}_proxy`, `${scheme}_proxy`.toUpperCase(), "all_proxy", "ALL_PROXY"];
  const name = names.find((each) => process.env[each]);
  if (name === undefined) return undefined;
  const text = process.env[name]!;
  const url = text.includes("://") ? text : `http://${text}`;
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url;
  const rule = `The variable ${name} must name an http or https proxy, and no other kind works`;
  throw new DownloadError("requestInvalid", `${rule}: got ${withoutPasswords(url)}.`);
}

/** The variable no_proxy with its names as addresses have them: `bücher.example` is `xn--bcher-kva.example`. */
function hostsPastProxy(): string {
  const text = process.env["no_proxy"] ?? process.env["NO_PROXY"] ?? "";
  return text.replace(/[^\s,:*.[\]][^\s,:[\]]*/g, (name) => domainToASCII(name) || name);
}

/** `fetch` by the same way as all direct requests. */
export const fetchOrigin = ((input: string, init?: UndiciInit) =>
  undiciFetch(input, { ...init, dispatcher: dispatcher() })) as unknown as typeof fetch;

export const askOrigin: AskOrigin = async (request) => {
  const { range, signal, decode } = request;
  let headers = lowerCased(request.headers);
  let url = request.url;
  for (let redirects = 0; ; redirects++) {
    const answer = await ask(url, range, decode ? { "accept-encoding": CODINGS_ASKED, ...headers } : headers, signal);
    const location = answer.headers["location"];
    if (!REDIRECT_STATUSES.includes(answer.statusCode) || location === undefined) return describe(answer, decode);
    answer.body.on("error", () => undefined).destroy();
    if (request.redirect === "error")
      throw new DownloadError("badRedirect", `The origin redirects ${url}, and no other address counts.`);
    if (redirects === REDIRECTS_MAX)
      throw new DownloadError("tooManyRedirects", `The origin redirects too often: limit ${REDIRECTS_MAX}.`);
    const next = targetOf(String(location), url);
    if (new URL(next).origin !== new URL(url).origin) headers = headersForOthers(headers);
    url = next;
  }
};

async function ask(
  url: string,
  range: RangeRequest | undefined,
  headers: OriginRequest["headers"],
  signal: AbortSignal,
): Promise<Dispatcher.ResponseData> {
  const { origin } = new URL(url);
  const answer = requestOrigin({
    origin,
    path: pathOf(url),
    method: "GET",
    headers: { "user-agent": USER_AGENT, accept: "*/*", ...headersFor(range), ...headers },
    signal,
  });
  return answer.catch((error: unknown) => {
    throw explained(error, url);
  });
}

/** undici heeds the signal of a request only once there is a connection, so it is heeded here, too. */
export async function requestOrigin(
  options: Dispatcher.RequestOptions & { signal: AbortSignal },
): Promise<Dispatcher.ResponseData> {
  const { signal } = options;
  signal.throwIfAborted();
  const answer = dispatcher().request(options);
  answer.catch(() => undefined);
  let unlink = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    unlink = onAbort(signal, () => reject(signal.reason as Error));
  });
  return Promise.race([answer, aborted]).finally(unlink);
}

/** The path and query as they are written. `URL.search` leaves out the question mark of an empty query. */
export function pathOf(url: string): string {
  return url.slice(new URL(url).origin.length).split("#")[0]!;
}

function targetOf(location: string, base: string): string {
  if (!URL.canParse(location, base))
    throw new DownloadError("badRedirect", "The origin redirects to a location that is not a URL.");
  const { href, protocol, username, password } = new URL(location, base);
  if (!/^https?:$/.test(protocol) || username || password)
    throw new DownloadError(
      "badRedirect",
      "The origin redirects to an address that is not http or https without user name and password.",
    );
  return href;
}

function describe(answer: Dispatcher.ResponseData, decode: boolean): OriginAnswer {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(answer.headers))
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(", ") : value;
  const length = headers["content-length"];
  const codings = codingsOf(headers["content-encoding"]);
  const totalBytes = length !== undefined && /^\d{1,15}$/.test(length) ? Number(length) : null;
  const status = answer.statusCode;
  if (!decode || codings.length === 0) return { head: { status, headers, totalBytes }, body: piecesOf(answer.body) };
  return { head: { status, headers, totalBytes: null }, body: piecesOf(decoded(answer.body, codings)) };
}

/** Plain arrays, because `slice` of a Buffer copies nothing. Leaving early ends the request. */
async function* piecesOf(body: AsyncIterable<Buffer>): AsyncGenerator<Uint8Array> {
  for await (const { buffer, byteOffset, byteLength } of body) yield new Uint8Array(buffer, byteOffset, byteLength);
}

/** The content codings of a body, in the order in which they were applied (RFC 9110 §8.4). */
export function codingsOf(contentEncoding: string | undefined): string[] {
  const names = (contentEncoding ?? "").split(",").map((name) => name.trim().toLowerCase());
  return names.filter((name) => name !== "" && name !== "identity");
}

/** The body without these codings. Throws if one is not known. */
export function decoded(body: Readable, codings: readonly string[]): AsyncIterable<Buffer> {
  return codings.reduceRight<AsyncIterable<Buffer>>((source, name) => {
    const make = DECODERS[name];
    if (make) return decoderOf(make)(source);
    body.on("error", () => undefined).destroy();
    const known = Object.keys(DECODERS).join(", ");
    throw new DownloadError("contentEncoded", `The content coding is not known: got ${name}, known ${known}.`);
  }, body);
}

/** An empty body is empty in every coding. */
function decoderOf(make: (firstByte: number) => Duplex) {
  return async function* (source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    const pieces = source[Symbol.asyncIterator]();
    const first = await pieces.next();
    if (first.done) return;
    const all = async function* (): AsyncGenerator<Buffer> {
      yield first.value;
      yield* { [Symbol.asyncIterator]: () => pieces };
    };
    const decoder = make(first.value[0]!);
    pipeline(all(), decoder, () => undefined);
    yield* decoder as AsyncIterable<Buffer>;
  };
}

function lowerCased(headers: OriginRequest["headers"]): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
