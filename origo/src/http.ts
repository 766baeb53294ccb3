/**
 * HTTP: turns descriptions of endpoints into express routes. A description says who may call, what the endpoint takes
 * and what it answers; openapi.ts documents the same descriptions. Bad input is answered with 4xx and
 * {"error":{kind,message,field?,got?,limit?}}. A failure behind an endpoint is answered with 503, so the sender tries
 * again. What the endpoints do is in routes-*.ts; who is signed in is in access.ts.
 */
import type { IncomingMessage } from "node:http";
import express, {
  type ErrorRequestHandler,
  type Express,
  type Request,
  type RequestHandler,
  type Response,
} from "express";
import { z } from "zod";
import { mayRead } from "@tributary/contract";
import { faultOf } from "@tributary/contract/fault";
import type { ApiError } from "@tributary/contract/schema";
import type { RateLimit } from "./rate-limit";
import { isDiskFull } from "./store/index";

/** The largest body of a request, unless the endpoint sets its own limit. */
export const BODY_BYTES_MAX = 1_000_000;
/** The largest body that anyone may send to an endpoint without a reader of its own. It must not be compressed. */
const STRANGERS_BODY_BYTES_MAX = 16_384;
/** A whole request must arrive within this time, unless the endpoint sets its own limit. */
export const REQUEST_MS_MAX = 30_000;

/**
 * Who may call an endpoint. `open`: anyone, and of web pages extensions and the origins that the operator has allowed.
 * `web`: anyone, and all web pages.
 * `public`: anyone, but web pages of this origin only. `viewer`: everyone who is signed in. `admin`: admins; a change
 * needs the CSRF token of the login.
 */
export type Access = "open" | "web" | "public" | "viewer" | "admin";
export type Method = "get" | "post" | "put" | "patch" | "delete";

type Shape = z.ZodTypeAny;
type Read<S extends Shape | undefined> = S extends Shape ? z.output<S> : undefined;

export interface Call<Query = unknown, Body = unknown> {
  query: Query;
  body: Body;
  /** Named parts of the path. */
  params: Record<string, string>;
  /** The name of the person who is signed in, or `local` when no login is required. */
  author: string;
  request: Request;
  response: Response;
}

interface Description<Q extends Shape | undefined, B extends Shape | undefined, A extends Shape | undefined> {
  method: Method;
  /** In the notation of express: `/v1/users/:name`. */
  path: string;
  access: Access;
  summary: string;
  query?: Q;
  /** The body is JSON. */
  body?: B;
  /** The content type of a body that `handle` reads itself. */
  rawBody?: string;
  /** A faster check. When it returns true, `body` would accept the value unchanged, so `body` is not asked. */
  isPlain?: (value: unknown) => boolean;
  bodyBytesMax?: number;
  /** Reads the body in place of express.json. */
  reader?: RequestHandler;
  requestMsMax?: number;
  /** The answer of a success: JSON of this shape, or a content type. Without it the answer has no body. */
  answer?: A | string;
  /** The status of a success. Default: 200, or 204 without an answer. */
  status?: number;
  /** Returns the answer, or nothing when it has written the response itself. May throw a Refusal. */
  handle: (call: Call<Read<Q>, Read<B>>) => unknown;
}

export type Endpoint = Omit<Description<Shape | undefined, Shape | undefined, Shape | undefined>, "handle"> & {
  handle: (call: Call) => unknown;
};

/** Checks the types of a description and returns it with general types. */
export function endpoint<
  Q extends Shape | undefined = undefined,
  B extends Shape | undefined = undefined,
  A extends Shape | undefined = undefined,
>(description: Description<Q, B, A>): Endpoint {
  return description as unknown as Endpoint;
}

/** An error that becomes the answer to a request. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly error: ApiError,
    readonly headers: Record<string, string> = {},
  ) {
    super(error.message);
  }
}

export const notFound = (message: string, field?: string): Refusal =>
  new Refusal(404, { kind: "notFound", message, ...(field === undefined ? {} : { field }) });

/** Counts a request of `key`. Throws a Refusal if it is one too many; `messageOf` gets the seconds to wait. */
export function countOrRefuse(
  limit: RateLimit,
  key: string,
  nowMs: number,
  messageOf: (seconds: number) => string,
): void {
  const seconds = Math.ceil(limit.waitMs(key, nowMs) / 1000);
  if (seconds > 0) {
    const error: ApiError = { kind: "tooManyAttempts", message: messageOf(seconds) };
    throw new Refusal(429, error, { "Retry-After": String(seconds) });
  }
  limit.add(key, nowMs);
}

/** A whole number in a query string. */
export const whole = (min: number, max: number, preset: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, "must be a whole number")
    .transform(Number)
    .pipe(z.number().min(min).max(max))
    .optional()
    .transform((value) => value ?? preset);

export interface Gate {
  /** Returns the caller's name. Throws a Refusal when the caller may not do this. */
  admit(request: Request, access: "viewer" | "admin"): Promise<string>;
}

/** Adds the endpoints. Other methods on their paths are answered with 405. */
export function mount(app: Express, endpoints: readonly Endpoint[], gate: Gate): void {
  for (const path of new Set(endpoints.map((each) => each.path)))
    mountPath(
      app,
      path,
      endpoints.filter((each) => each.path === path),
      gate,
    );
}

function mountPath(app: Express, path: string, endpoints: readonly Endpoint[], gate: Gate): void {
  for (const each of endpoints) app[each.method](path, ...layers(each, gate));
  const methods = endpoints.map(({ method }) => method.toUpperCase());
  const allow = [...methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])), "OPTIONS"].join(", ");
  const shared = endpoints.filter(({ access }) => access === "open" || access === "web");
  app.options(path, (request, response) => {
    if (shared[0] !== undefined && share(shared[0], request, response)) {
      response.set({
        "Access-Control-Allow-Methods": shared.map(({ method }) => method.toUpperCase()).join(", "),
        "Access-Control-Allow-Headers": "content-type, content-encoding, range",
        "Access-Control-Max-Age": "600",
      });
    }
    response.set("Allow", allow).status(204).end();
  });
  app.all(path, (request, response) => {
    response.set("Allow", allow);
    refuse(response, 405, {
      kind: "methodNotAllowed",
      message: `${request.method} is not allowed on ${path}; allowed: ${allow}`,
    });
  });
}

/** The setting of the application with the origins of the pages that may read open endpoints. */
export const PAGE_ORIGINS = "page origins";

/** Lets an extension and the pages that the operator has allowed read the answer, or all pages. False for others. */
function share({ access }: Endpoint, request: Request, response: Response): boolean {
  const { origin } = request.headers;
  if (access === "web") {
    response.set({ "Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "Retry-After, Date" });
    return true;
  }
  response.vary("Origin");
  if (origin === undefined || !mayRead(origin, request.app.get(PAGE_ORIGINS) as string[])) return false;
  response.set({ "Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": "Retry-After" });
  return true;
}

function layers(each: Endpoint, gate: Gate): RequestHandler[] {
  const { access, requestMsMax } = each;
  const enter: RequestHandler = async (request, response, next) => {
    if (access === "open" || access === "web") share(each, request, response);
    response.locals["author"] = access === "viewer" || access === "admin" ? await gate.admit(request, access) : "";
    if (requestMsMax !== undefined) limitTime(request, requestMsMax);
    next();
  };
  const isForStrangers = access === "open" || access === "web" || access === "public";
  const limit = isForStrangers ? STRANGERS_BODY_BYTES_MAX : BODY_BYTES_MAX;
  const reader = each.reader ?? express.json({ limit: each.bodyBytesMax ?? limit, inflate: !isForStrangers });
  const parse = each.body ? [requireJson, reader] : [];
  return [enter, ...parse, run(each)];
}

const run =
  ({ path, query, body, isPlain, answer, status, handle }: Endpoint): RequestHandler =>
  async (request, response) => {
    const given = await handle({
      query: queryOf(path, query, request.query),
      body: body && (isPlain?.(request.body) ? (request.body as unknown) : parsed(body, request.body)),
      params: request.params as Record<string, string>,
      author: String(response.locals["author"]),
      request,
      response,
    });
    if (response.headersSent) return;
    if (answer === undefined) response.status(status ?? 204).end();
    else if (typeof answer !== "string") response.status(status ?? 200).json(given);
    else if (given !== undefined)
      response
        .status(status ?? 200)
        .type(answer)
        .send(given);
  };

function parsed(shape: Shape, value: unknown): unknown {
  const result = shape.safeParse(value);
  if (!result.success) throw new Refusal(400, faultOf(result.error, value));
  return result.data;
}

/** Health checks and metrics take any query, since monitors add their own. */
function queryOf(path: string, query: Shape | undefined, value: Record<string, unknown>): unknown {
  if (query === undefined && !path.startsWith("/v1/")) return undefined;
  const known = query instanceof z.ZodObject ? Object.keys(query.shape as object) : [];
  const unknown = Object.keys(value).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    const allowed = known.length > 0 ? `it takes ${known.join(", ")}` : "it takes none";
    const message = `${unknown}: ${path} has no such parameter: ${allowed}`;
    throw new Refusal(400, { kind: "badField", field: unknown, message });
  }
  const [repeated] = Object.entries(value).filter(([, given]) => Array.isArray(given));
  if (repeated) {
    const message = `${repeated[0]}: ${path} takes it once, got it ${(repeated[1] as unknown[]).length} times`;
    throw new Refusal(400, { kind: "badField", field: repeated[0], message });
  }
  return query && parsed(query, value);
}

const limits = new WeakMap<IncomingMessage, NodeJS.Timeout>();

/**
 * Closes the connection of a request that has not fully arrived within `msMax`. A later call starts the time again.
 * Node itself has only one limit for all requests.
 */
export function limitTime(request: IncomingMessage, msMax: number): void {
  clearTimeout(limits.get(request));
  const limit = setTimeout(() => request.complete || request.destroy(), msMax).unref();
  limits.set(request, limit);
  request.once("close", () => clearTimeout(limit));
}

const CSP = "default-src 'self'; base-uri 'none'; form-action 'none'; object-src 'none'; frame-ancestors 'none'";

export const securityHeaders: RequestHandler = (_request, response, next) => {
  response.set({
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
  });
  next();
};

const requireJson: RequestHandler = (request, response, next) => {
  if (request.is("application/json")) return next();
  const message = `the body must be application/json, got ${request.headers["content-type"] ?? "no content type"}`;
  return refuse(response, 415, { kind: "unsupportedMediaType", message });
};

export function refuse(response: Response, status: number, error: ApiError): void {
  response.status(status).json({ error });
}

/** Errors of express and its body parser have a status. Any other error comes from the store or is a bug. */
export const failure =
  (report: (error: Error) => void): ErrorRequestHandler =>
  (
    error: Error & { status?: number; type?: string; length?: number; limit?: number; received?: number },
    _request,
    response,
    next,
  ) => {
    if (response.headersSent) return next(error);
    if (error instanceof Refusal) return refuse(response.set(error.headers), error.status, error.error);
    if (error.type === "entity.too.large") {
      const [got, limit] = [error.length ?? error.received, error.limit ?? BODY_BYTES_MAX];
      const size = got === undefined ? "is larger than" : `has ${got} bytes, more than`;
      const message = `the body ${size} the limit of ${limit} bytes: send less at a time`;
      return refuse(response, 413, { kind: "bodyTooLarge", message, ...(got === undefined ? {} : { got }), limit });
    }
    if (error.type === "entity.parse.failed")
      return refuse(response, 400, { kind: "badJson", message: `the body is not JSON: ${error.message}` });
    if (error.status !== undefined && error.status < 500)
      return refuse(response, error.status, { kind: "badRequest", message: error.message });
    report(error);
    if (isDiskFull(error)) {
      const message = "the disk of Origo's database is full. Nothing was stored; try again when it has space";
      return refuse(response.set("Retry-After", "30"), 503, { kind: "diskFull", message });
    }
    return refuse(response.set("Retry-After", "5"), 503, {
      kind: "unavailable",
      message: "Origo cannot do this now. Nothing was stored; try again",
    });
  };
