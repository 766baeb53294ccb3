/**
 * The HTTP endpoint: health, signalling for WebRTC, and downloads over HTTP. It translates between HTTP and the parts
 * behind it, and decides nothing but status codes. Errors are JSON `{"error": {"kind", "message", "got"?, "limit"?}}`.
 */
import express, {
  type ErrorRequestHandler,
  type Express,
  type Request,
  type RequestHandler,
  type Response,
} from "express";
import {
  CACHE_MODES,
  type CacheMode,
  CLIENT_HEADER,
  mayRead,
  parseRange,
  type RangeRequest,
  type Rejection,
} from "@tributary/contract";
import { LIMITS } from "@tributary/protocol";
import { z } from "zod";
import type { Client } from "./clients";
import { HttpDelivery } from "./http-delivery";
import { objectRoutes, type ObjectRoutesOptions } from "./library/objects-http";
import { hostForLog, type Log } from "./log";
import type { Yield } from "./outlet";
import { limitBody, refuse, SANDBOX } from "./refusal";
import { serveHeld, type HeldOptions } from "./sharing/held-http";

export interface HttpOptions extends ObjectRoutesOptions, HeldOptions {
  health: () => { status: "starting" | "ok" | "draining"; name: string; engine: string; sessions: number };
  metrics: { readonly contentType: string; text: () => Promise<string> };
  /** The answer to GET /v1/whoami. By it a proxy recognises itself behind published ports. */
  nonce: string;
  /** Makes a session of `client` from an SDP offer. */
  openSession: (offer: string, client: Client) => Promise<{ sessionId: string; sdp: string } | Rejection>;
  /** Reverse proxies in front whose X-Forwarded-For is believed. */
  trustedHops: number;
  /** Origins of the pages that may read answers, besides extensions. */
  pageOrigins: readonly string[];
}

const OFFER_BYTES_MAX = 32 * 1024;
const SessionRequest = z
  .object({ sdp: z.string().min(1).max(OFFER_BYTES_MAX), token: z.string().max(LIMITS.tokenBytesMax).optional() })
  .strict();

const DOWNLOAD_NAME = /^[\w-]{1,64}$/;

export function makeApp(options: HttpOptions): Express {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.set("query parser", "simple");
  app.set("trust proxy", options.trustedHops);
  app.use(endSlowBodies);
  app.use("/v1/objects", objectRoutes(options));
  app.use(shareWithExtensions(options.pageOrigins));
  app.options("/{*path}", (_request, response) => response.status(204).end());
  app.head("/{*path}", (_request, response) => refuse(response, { kind: "methodNotAllowed", message: "Use GET." }));
  app.get("/healthz", (_request, response) => {
    const health = options.health();
    response.status(health.status === "ok" ? 200 : 503).json(health);
  });
  app.get("/metrics", async (_request, response) => {
    const { contentType } = options.metrics;
    response.set("Content-Type", contentType).send(await options.metrics.text());
  });
  app.get("/v1/whoami", (_request, response) => {
    response.type("text/plain").send(options.nonce);
  });
  app.get("/v1/fetch", (request, response) => fetchThrough(options, request, response, yieldOf(request)));
  app.get("/v1/digests", (request, response) => fetchThrough(options, request, response, { kind: "digests" }));
  app.get("/v1/held", (request, response) => serveHeld(options, request, response));
  app.post(
    "/v1/sessions",
    express.json({ limit: OFFER_BYTES_MAX + LIMITS.tokenBytesMax + 1024 }),
    async (request, response) => {
      await openSession(options, request, response);
    },
  );
  app.use((request, response) =>
    refuse(response, { kind: "notFound", message: `This proxy has no ${request.method} ${request.path}.` }),
  );
  app.use(failed(options.log));
  return app;
}

const endSlowBodies: RequestHandler = (request, _response, next) => {
  const { headers, method, path } = request;
  const hasBody = headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0";
  // Uploads have limits of their own, because objects are long.
  if (hasBody && !(method === "PATCH" && path.startsWith("/v1/objects/"))) limitBody(request);
  next();
};

/**
 * Answers can be read by extensions and by the pages that the operator has allowed. Requests of other pages are
 * refused. A page cannot send `CLIENT_HEADER` without a preflight, whose answer permits nothing.
 */
function shareWithExtensions(pageOrigins: readonly string[]): RequestHandler {
  return (request, response, next) => {
    response.set({ "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", Vary: "Origin" });
    const { origin } = request.headers;
    if (origin === undefined) return next();
    if (!mayRead(origin, pageOrigins))
      return refuse(response, { kind: "clientRefused", message: `Pages of ${origin} may not use this proxy.` });
    response.set("Access-Control-Allow-Origin", origin);
    if (request.method === "OPTIONS")
      response.set({
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Allow-Headers": `Content-Type, Range, ${CLIENT_HEADER}`,
        "Access-Control-Max-Age": "86400",
      });
    next();
  };
}

/** Undefined if the part is not one range of bytes. */
function yieldOf({ query: { part } }: Request): Yield | undefined {
  if (part === undefined) return { kind: "whole" };
  const range = parseRange(`bytes=${typeof part === "string" ? part : ""}`);
  if (!range || !("start" in range) || range.end === undefined) return undefined;
  return { kind: "part", part: { start: range.start, end: range.end } };
}

function fetchThrough(options: HttpOptions, request: Request, response: Response, gives: Yield | undefined): void {
  const { url, token, cache = "default", download, pageOrigin } = request.query;
  const rangeText = request.headers.range;
  if (request.headers[CLIENT_HEADER] === undefined)
    return refuse(response, { kind: "clientRefused", message: `Send the header ${CLIENT_HEADER}, with any value.` });
  const client = options.clientAt(request.ip ?? "");
  const { status } = options.health();
  if (status !== "ok") return refuse(response, { kind: status, message: `This proxy is ${status}.` });
  if (typeof url !== "string" || url === "") {
    return refuse(response, { kind: "badUrl", message: "Give one url parameter: /v1/fetch?url=URL." });
  }
  if (!CACHE_MODES.includes(cache as CacheMode)) {
    const message = `cache must be one of ${CACHE_MODES.join(", ")}; got ${JSON.stringify(cache)}.`;
    return refuse(response, { kind: "badRequest", message });
  }
  if (!gives) {
    const message = `part must be FIRST-LAST, in bytes; got ${JSON.stringify(request.query["part"])}.`;
    return refuse(response, { kind: "badRequest", message });
  }
  if (download !== undefined && (typeof download !== "string" || !DOWNLOAD_NAME.test(download))) {
    const message = `download must have 1 to 64 letters, digits or hyphens; got ${JSON.stringify(download)}.`;
    return refuse(response, { kind: "badRequest", message });
  }
  if (pageOrigin !== undefined && typeof pageOrigin !== "string") {
    const message = `pageOrigin must be given once; got ${JSON.stringify(pageOrigin)}.`;
    return refuse(response, { kind: "badRequest", message });
  }
  let range: RangeRequest | undefined;
  if (rangeText !== undefined) {
    range = parseRange(rangeText);
    if (!range)
      return refuse(response, {
        kind: "badRange",
        message: "The Range header must hold one byte range: bytes=FIRST-LAST.",
      });
  }
  const allowance = client.bytesRefusal() ?? options.admit(typeof token === "string" ? token : undefined);
  if (allowance && "kind" in allowance) return refuse(response, allowance);
  response.set({
    "Access-Control-Expose-Headers": "*",
    "Timing-Allow-Origin": "*",
    "Content-Security-Policy": SANDBOX,
  });
  options.onDelivery(1);
  const onEnded = (failure: Rejection | undefined): void => {
    if (failure) options.log(failure.kind, { host: hostForLog(url) });
    options.onDelivery(-1, failure);
  };
  const { chunks, shaper, log } = options;
  new HttpDelivery({
    response,
    wanted: { url, range, cache: cache as CacheMode, pageOrigin, client, download },
    gives,
    chunks,
    shaper,
    log,
    allowance,
    onEnded,
    refuse: (rejection) => refuse(response, rejection),
  });
}

async function openSession(options: HttpOptions, request: Request, response: Response): Promise<void> {
  const { status } = options.health();
  if (status !== "ok") return refuse(response, { kind: status, message: `This proxy is ${status}.` });
  const parsed = SessionRequest.safeParse(request.body);
  if (!parsed.success) {
    const message = `The body must be JSON {"sdp": OFFER}. The offer must have 1 to ${OFFER_BYTES_MAX} characters.`;
    return refuse(response, { kind: "badRequest", message });
  }
  const allowance = options.admit(parsed.data.token);
  if (allowance && "kind" in allowance) return refuse(response, allowance);
  const answer = await options.openSession(parsed.data.sdp, options.clientAt(request.ip ?? ""));
  if ("kind" in answer) refuse(response, answer);
  else response.status(201).json(answer);
}

/** Answers the errors that express finds in a request, and unexpected errors. */
function failed(log: Log): ErrorRequestHandler {
  return (
    error: { status?: number; type?: string; message?: string; limit?: number; length?: number },
    _request,
    response,
    _next,
  ) => {
    if (response.headersSent) return void response.destroy();
    if (error.type === "entity.too.large") {
      const [got, limit] = [error.length ?? 0, error.limit ?? 0];
      return refuse(response, {
        kind: "requestTooLarge",
        message: `The body is too large: got ${got}, limit ${limit}.`,
        got,
        limit,
      });
    }
    if (error.status !== undefined && error.status >= 400 && error.status < 500) {
      return refuse(response, { kind: "badRequest", message: "The request could not be read." });
    }
    log("internalError", { message: error.message });
    response.status(500).json({ error: { kind: "internalError", message: "The proxy failed. Its log says why." } });
  };
}
