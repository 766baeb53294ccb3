/**
 * Serves one request of a player: proxies bring segments and large files, the origin everything else. If the proxies
 * cannot, the origin does. A player that goes away ends the download at once, and a slow one holds it back.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { formatContentRange, strongValidator, type ResponseHead } from "@tributary/contract";
import type { Download, GetOptions } from "../api";
import type { ProxyClient } from "../client";
import { DownloadError, messageOf } from "../errors";
import { linkedAbort } from "../modes/http";
import { formatOfContent, formatOfType } from "../video/recognise";
import type { Activity, TransferLog } from "./activity";
import type { Catalogue } from "./catalogue";
import { rewriteDash } from "./dash";
import { headersByProxies } from "./headers";
import { rewriteHls } from "./hls";
import { askOrigin, type OriginAnswer } from "./origin";
import { carriableOf, routeOf, type Carriable, type Route } from "./route";

export interface ServeServices {
  client: ProxyClient;
  catalogue: Catalogue;
  activity: Activity;
  options: Pick<GetOptions, "mode" | "connections">;
  /** Those that are under way. */
  downloads: Set<Download>;
}

const PLAYER_CHARS_MAX = 64;
/** A download of a player that pauses holds some 30 MB. */
const DOWNLOADS_MAX = 32;

/** `gateway` is the address of the gateway as the player wrote it, without a slash at the end. */
export async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
  gateway: string,
  services: ServeServices,
): Promise<void> {
  const player = playerOf(request.headers["user-agent"]);
  const log = services.activity.begin(url, services.catalogue.rootsOf(url), player);
  const exchange = new Exchange(request, response, url, gateway, player, log, services);
  try {
    await exchange.execute();
  } catch (error) {
    if (response.headersSent || response.destroyed) response.destroy();
    else {
      const isRefused = error instanceof DownloadError && error.kind === "egressRefused";
      const text = isRefused ? error.message : sentence(url, error);
      response.writeHead(isRefused ? 403 : 502, { "content-type": "text/plain; charset=utf-8" }).end(`${text}\n`);
    }
  } finally {
    log.end(response.headersSent ? response.statusCode : undefined);
  }
}

/** The product at the start of a User-Agent, for example `VLC` or `mpv`. */
export function playerOf(userAgent: string | undefined): string {
  return /^[\w.+-]+/.exec(userAgent ?? "")?.[0].slice(0, PLAYER_CHARS_MAX) ?? "unknown player";
}

function sentence(url: URL, error: unknown): string {
  return `${url.host} did not answer through the gateway: ${messageOf(error)}`;
}

class Exchange {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #url: URL;
  readonly #gateway: string;
  readonly #player: string;
  readonly #log: TransferLog;
  readonly #services: ServeServices;
  readonly #gone = new AbortController();

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    url: URL,
    gateway: string,
    player: string,
    log: TransferLog,
    services: ServeServices,
  ) {
    this.#request = request;
    this.#response = response;
    this.#url = url;
    this.#gateway = gateway;
    this.#player = player;
    this.#log = log;
    this.#services = services;
    response.once("close", () => this.#gone.abort());
  }

  async execute(): Promise<void> {
    const { method = "GET", headers } = this.#request;
    const route = routeOf(method, this.#url, headers, this.#services.catalogue);
    if (route.way === "direct") return this.#direct(route.reason, route.mayChange);
    const refusal = await this.#throughProxies(route);
    if (refusal === undefined || this.#gone.signal.aborted) return;
    this.#services.catalogue.forgetFile(this.#url);
    await this.#direct(refusal, false);
  }

  /** Returns why the proxies' answer is of no use, before anything was sent to the player. */
  async #throughProxies(route: Extract<Route, { way: "proxies" }>): Promise<string | undefined> {
    const { range, cache, isFromStart, etag } = route;
    const download = this.#get({ cache, ...(range ? { range } : {}) });
    if (typeof download === "string") return download;
    const head = await download.head.catch((error: unknown) => messageOf(error));
    const refusal = typeof head === "string" ? head : refusalOf(head, etag);
    if (typeof head === "string" || refusal !== undefined) {
      download.abort("The origin is asked in place of the proxies.");
      return refusal;
    }
    const headers: Record<string, string> = headersByProxies(head.headers);
    let { status } = head;
    const { totalBytes } = head;
    if (isFromStart && status === 200 && totalBytes && /\bbytes\b/.test(headers["accept-ranges"] ?? "")) {
      status = 206;
      headers["content-range"] = formatContentRange({ start: 0, end: totalBytes - 1 }, totalBytes);
    }
    if (totalBytes !== null) headers["content-length"] = String(totalBytes);
    this.#note(download);
    await this.#send(status, headers, download.body);
    return undefined;
  }

  #get(options: GetOptions): Download | string {
    const { client, options: given, downloads } = this.#services;
    if (downloads.size >= DOWNLOADS_MAX) return `${DOWNLOADS_MAX} requests are with the proxies`;
    try {
      const wishes = { ...given, ...options, player: this.#player, signal: this.#gone.signal };
      const download = client.get(this.#url.href, wishes);
      downloads.add(download);
      void download.record.then(() => downloads.delete(download));
      return download;
    } catch (error) {
      return messageOf(error);
    }
  }

  /** From now on the bytes are the download's. */
  #note(download: Download): void {
    this.#log.by("proxies");
    void download.record.then(({ directBytes = 0, proxies, fallback }) => {
      const used = proxies.filter(({ bytes }) => bytes > 0).map(({ name = "unnamed" }) => name);
      this.#log.settle(directBytes, used, fallback?.message);
    });
  }

  async #direct(reason: string, mayChange: boolean): Promise<void> {
    this.#log.by("direct", reason);
    const { controller, unlink } = linkedAbort(this.#gone.signal);
    try {
      const { method = "GET", headers } = this.#request;
      const answer = await askOrigin({
        url: this.#url,
        method,
        headers,
        gateway: this.#gateway,
        signal: controller.signal,
      });
      if (answer.playlist !== undefined) return await this.#sendPlaylist(answer, answer.playlist);
      const carriable = mayChange ? carriableOf(answer.status, answer.origin) : undefined;
      const body = carriable ? this.#handedOver(answer, carriable) : answer.body;
      await this.#send(answer.status, answer.headers, method === "HEAD" ? [] : body);
    } finally {
      unlink();
      controller.abort();
    }
  }

  /** The origin's own bytes until the proxies' take over. They do only if their answer is of the same version. */
  #handedOver(answer: OriginAnswer, carriable: Carriable): AsyncIterable<Uint8Array> {
    const { catalogue } = this.#services;
    const { asked, leadBytes, file } = carriable;
    catalogue.noteFile(this.#url, file);
    const download = this.#get(asked ? { range: asked } : {});
    if (typeof download === "string") return answer.body;
    const head = download.head.catch(() => undefined);
    return handOver(answer.body, leadBytes, async () => {
      const known = await head;
      if (known && isSame(known, carriable, answer.origin)) {
        this.#note(download);
        return download.body;
      }
      download.abort("The origin's own answer is used.");
      catalogue.forgetFile(this.#url);
      return undefined;
    });
  }

  async #sendPlaylist({ status, headers }: OriginAnswer, text: string): Promise<void> {
    const { catalogue } = this.#services;
    const playlist = {
      base: this.#url,
      gateway: this.#gateway,
      onSegment: (url: URL) => catalogue.noteSegment(url, this.#url),
      onTemplate: (url: URL) => catalogue.noteTemplate(url, this.#url),
      onSmall: (url: URL) => catalogue.noteSmall(url, this.#url),
    };
    const bytes = Buffer.from(
      formatOfContent(text) === "hls" ? rewriteHls(text, playlist) : rewriteDash(text, playlist),
    );
    await this.#send(status, { ...headers, "content-length": String(bytes.length) }, [bytes]);
  }

  async #send(
    status: number,
    headers: OriginAnswer["headers"],
    body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  ): Promise<void> {
    this.#response.writeHead(status, headers);
    const counted = async function* (log: TransferLog): AsyncGenerator<Uint8Array> {
      for await (const piece of body) {
        log.count(piece.length);
        yield piece;
      }
    };
    await pipeline(counted(this.#log), this.#response);
  }
}

/** Why the origin should be asked itself. Proxies answer for it only with media. */
function refusalOf({ status, headers }: ResponseHead, etag: string | undefined): string | undefined {
  if (status !== 200 && status !== 206) return `the proxies got status ${status}`;
  if (etag !== undefined && headers.etag !== etag) return "the proxies got another version";
  const type = headers["content-type"] ?? null;
  return formatOfType(type) !== undefined || /^text\/html/i.test(type ?? "") ? `the proxies got ${type}` : undefined;
}

/**
 * Whether the proxies' answer is what they were asked for, of the version that the origin sends. Bytes of both are
 * joined only if something tells versions apart.
 */
function isSame(head: ResponseHead, { asked, leadBytes, file }: Carriable, origin: Headers): boolean {
  const [ours, theirs] = [strongValidator(head), strongValidator({ headers: Object.fromEntries(origin) })];
  const isEither = leadBytes === 0 && (ours === undefined || theirs === undefined);
  if (!isEither && (ours === undefined || ours !== theirs)) return false;
  if (!asked) return head.status === 200 && head.totalBytes === file.resourceBytes;
  return head.status === 206 && head.headers["content-range"] === formatContentRange(asked, file.resourceBytes);
}

/**
 * The first `leadBytes` of `own`, and then what `takeOver` gives. If it gives nothing, `own` goes on. `own` is closed
 * before the other begins.
 */
export async function* handOver(
  own: AsyncIterable<Uint8Array>,
  leadBytes: number,
  takeOver: () => Promise<AsyncIterable<Uint8Array> | undefined>,
): AsyncGenerator<Uint8Array> {
  let leftBytes = leadBytes;
  let rest: AsyncIterable<Uint8Array> | undefined;
  for await (const piece of own) {
    if (leftBytes > 0) yield piece.subarray(0, leftBytes);
    if (leftBytes > piece.length) leftBytes -= piece.length;
    else {
      rest = await takeOver();
      if (rest) break;
      yield piece.subarray(leftBytes);
      leftBytes = Infinity;
    }
  }
  if (rest) yield* rest;
}
