/**
 * What the cases of the fidelity suite share: bodies made by arithmetic, an origin's answers, and the words of a case.
 * A case has an origin of a certain shape and asks it from a page. The page must see the same with the extension as
 * without it.
 */
import { createHash } from "node:crypto";
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Page } from "puppeteer-core";

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly url: URL;
  readonly path: string;
  /** 0: the page's own host; 1 and 2: others. */
  readonly host: number;
  readonly by: Asker;
  /** What the origin of this case remembers. Each side has its own. */
  readonly memory: Record<string, number>;
  readonly hosts: Hosts;
}

export type Asker = "browser" | "proxy";

/** Base addresses without a slash at the end. */
export interface Hosts {
  readonly home: string;
  readonly away: string;
  readonly third: string;
}

export interface Asked {
  readonly by: Asker;
  readonly host: number;
  readonly method: string;
  readonly path: string;
  readonly range: string | undefined;
  readonly atMs: number;
}

export interface Tab extends Hosts {
  readonly page: Page;
  readonly memory: Record<string, number>;
  readonly log: readonly Asked[];
  fetch(url: string, init?: object, read?: "digest" | "blob" | "text" | "none"): Promise<Seen>;
  xhr(url: string, options?: object): Promise<Seen>;
  video(url: string, options?: object): Promise<Seen>;
  /** Runs a script in the page, where `see` is known. */
  run(script: string): Promise<unknown>;
  /** Fetches five unmarked segments of a host, one after another, as the start of a stream. */
  leadIn(base: string): Promise<void>;
  /**
   * Fetches files of `folder`, whose names are numbers from LEAD_NUMBER_MIN on, until one of them comes through the
   * proxies. The case itself answers them. Then another file whose name is a number is carried, asked in the same way.
   */
  leadInto(folder: string, init?: object): Promise<void>;
}

export type Seen = Record<string, unknown> & { body?: string; error?: string; status?: number };

export interface FidelityCase {
  name: string;
  /** Every request that is not for the page, a lead-in or a warm-up. */
  answer: (exchange: Exchange) => void | Promise<void>;
  run: (tab: Tab) => Promise<unknown>;
  /** Headers of the page itself. */
  pageHeaders?: (hosts: Hosts) => OutgoingHttpHeaders;
  pageHtml?: (hosts: Hosts) => string;
  /** What the origins must have been asked for, so that the case shows more than the browser beside itself. */
  proof?: Proof;
  /** Left out of `npm test`, because it takes some seconds or others are much like it. */
  long?: boolean;
}

/**
 * `carried`: the page got a file of the case through the proxies. `led`: it got a file of the same folder through them.
 * `compared`: the proxies were asked for a file of the case. Cases without a proof are of pages that may not read the
 * files, or of requests that only the browser can make.
 */
export type Proof = "carried" | "led" | "compared";

export const LEAD_NUMBER_MIN = 900;

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const names = new Map<string, string>();

/** `bytes` bytes that look random, the same for the same name. What a page sees of them is called by that name. */
export function bodyOf(name: string, bytes = 80_000): Buffer {
  const body = Buffer.alloc(bytes);
  let state = createHash("sha256").update(name).digest().readUInt32LE();
  for (let at = 0; at < bytes; at++) {
    state = (Math.imul(state, 0x5bd1e995) + 0x3c6ef372) >>> 0;
    body[at] = state >>> 23;
  }
  return named(name, body);
}

/** Gives the body a name in what a page sees. */
export function named(name: string, body: Buffer): Buffer {
  names.set(digestOf(body), name);
  return body;
}

/** As page.js computes it. */
export const digestOf = (body: Buffer): string =>
  `${body.length}:${createHash("sha256").update(body).digest("hex").slice(0, 12)}`;

/** What a page saw, with the names of bodies and hosts. */
export function readable(seen: unknown, hosts: Hosts): unknown {
  let text = JSON.stringify(seen ?? null);
  for (const [name, base] of Object.entries(hosts) as [keyof Hosts, string][])
    text = text.replaceAll(new URL(base).host, name);
  return JSON.parse(text.replaceAll(/\b\d+:[0-9a-f]{12}\b/g, (digest) => names.get(digest) ?? `other ${digest}`));
}

export const OPEN_CORS = { "access-control-allow-origin": "*" };
export const SEGMENT = { "content-type": "video/mp2t", ...OPEN_CORS };

/** Answers with `body`, or with the part of it that the request asks for. */
export function give(
  { request, response }: Pick<Exchange, "request" | "response">,
  body: Buffer,
  headers: OutgoingHttpHeaders = SEGMENT,
  status = 200,
): void {
  const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "");
  if (range === null || status !== 200) {
    response.writeHead(status, { "content-length": body.length, ...headers });
    response.end(request.method === "HEAD" ? undefined : body);
    return;
  }
  const first = Number(range[1]);
  const last = Math.min(range[2] ? Number(range[2]) : Infinity, body.length - 1);
  if (first > last) {
    response.writeHead(416, { ...headers, "content-range": `bytes */${body.length}`, "content-length": 0 }).end();
    return;
  }
  const contentRange = `bytes ${first}-${last}/${body.length}`;
  response.writeHead(206, { ...headers, "content-range": contentRange, "content-length": last - first + 1 });
  response.end(body.subarray(first, last + 1));
}

/** Answers the files of `leadInto` with bytes, and all others as `answer` does. */
export const orLead =
  (answer: FidelityCase["answer"]): FidelityCase["answer"] =>
  (exchange) =>
    /\/9\d\d\.ts$/.test(exchange.path) ? give(exchange, bodyOf(exchange.path)) : answer(exchange);

export function refuse({ response }: Pick<Exchange, "response">, status: number, headers: OutgoingHttpHeaders = {}) {
  response.writeHead(status, { "content-type": "text/plain", ...OPEN_CORS, ...headers }).end(`refused: ${status}`);
}

/** The bodies or errors alone. */
export const bodies = (seen: readonly Seen[]): unknown[] =>
  seen.map(({ body, error, bodyError, status }) => body ?? error ?? bodyError ?? status);
