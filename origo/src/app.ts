/**
 * App: Origo's HTTP API and its page, as an express application.
 * Bad input is answered with 4xx and {"error":{kind,message,field?,got?,limit?}}; a store that fails with 503, so that the
 * sender keeps its records and tries again. Proxies do not come in here: proxy-link.ts.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import express, { type ErrorRequestHandler, type Express, type RequestHandler, type Response } from "express";
import { z } from "zod";
import type { Registry } from "./registry";
import {
  ErrorsRequest, faultOf, RecordsRequest, SCHEMA_LIMITS,
  type ApiError, type ErrorsResponse, type FleetResponse, type ProxiesResponse, type RecordsResponse,
} from "./schema";
import type { Store } from "./store";

/** Largest body of a POST. */
export const BODY_BYTES_MAX = 1_000_000;

export interface AppOptions {
  registry: Registry;
  store: Store;
  /** Milliseconds since the epoch; must not jump. */
  nowMs: () => number;
  /** u32 a call. */
  rng: () => number;
  /** Folder with the built page. */
  dashboardDir: string;
  /** True once shutdown began. */
  closing: () => boolean;
}

const CSP = "default-src 'self'; base-uri 'none'; form-action 'none'; object-src 'none'; frame-ancestors 'none'";

const whole = (min: number, max: number, preset: number) => z.string().regex(/^\d{1,9}$/, "must be a whole number").transform(Number)
  .pipe(z.number().min(min).max(max)).optional().transform((value) => value ?? preset);

const ListQuery = z.object({
  count: whole(1, SCHEMA_LIMITS.proxiesPerList, SCHEMA_LIMITS.proxiesPerList),
  exclude: z.string().optional().transform((list) => (list ?? "").split(",").filter((id) => id !== ""))
    .pipe(z.array(z.string().max(SCHEMA_LIMITS.idChars)).max(SCHEMA_LIMITS.excludedPerList)),
}).strict();

const PageQuery = z.object({
  limit: whole(1, SCHEMA_LIMITS.recordsPerPage, SCHEMA_LIMITS.recordsPerPageDefault),
  before: z.string().uuid().toLowerCase().optional(),
}).strict();

export function makeApp(options: AppOptions): Express {
  const app = express();
  app.disable("x-powered-by");
  app.set("query parser", "simple");
  app.use(securityHeaders);
  route(app, "/healthz", { get: health(options) });
  route(app, "/v1/proxies", { get: listProxies(options) }, "cors");
  route(app, "/v1/records", { get: listRecords(options), post: takeRecords(options) }, "cors");
  route(app, "/v1/errors", { get: listErrors(options), post: takeErrors(options) }, "cors");
  route(app, "/v1/fleet", { get: listFleet(options) });
  app.use(dashboard(options.dashboardDir));
  app.use((request, response) => refuse(response, 404, { kind: "notFound", message: `there is no ${request.path} here` }));
  app.use(failure);
  return app;
}

/**
 * One path with its methods; any other method is 405. With "cors", what clients in browsers call is open to any origin:
 * the POSTs, and the GET where there is no POST. Reading the records stays with this origin.
 */
function route(app: Express, path: string, handlers: { get: RequestHandler; post?: RequestHandler }, cors?: "cors"): void {
  const open: RequestHandler = (_request, response, next) => {
    response.set("Access-Control-Allow-Origin", "*");
    next();
  };
  const allow = `GET, HEAD, ${handlers.post ? "POST, " : ""}OPTIONS`;
  app.get(path, ...(cors && !handlers.post ? [open] : []), handlers.get);
  if (handlers.post) app.post(path, ...(cors ? [open] : []), requireJson, express.json({ limit: BODY_BYTES_MAX }), handlers.post);
  app.options(path, (_request, response) => {
    if (cors) {
      response.set({
        "Access-Control-Allow-Origin": "*", "Access-Control-Allow-Methods": handlers.post ? "POST" : "GET",
        "Access-Control-Allow-Headers": "content-type", "Access-Control-Max-Age": "600",
      });
    }
    response.set("Allow", allow).status(204).end();
  });
  app.all(path, (request, response) => {
    response.set("Allow", allow);
    refuse(response, 405, { kind: "methodNotAllowed", message: `${request.method} is not allowed on ${path}; allowed: ${allow}` });
  });
}

const securityHeaders: RequestHandler = (_request, response, next) => {
  response.set({
    "Content-Security-Policy": CSP, "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-cache",
  });
  next();
};

const requireJson: RequestHandler = (request, response, next) => {
  if (request.is("application/json")) return next();
  const message = `the body must be application/json, got ${request.headers["content-type"] ?? "no content type"}`;
  return refuse(response, 415, { kind: "unsupportedMediaType", message });
};

const health = ({ registry, store, nowMs, closing }: AppOptions): RequestHandler => async (_request, response) => {
  if (closing()) return refuse(response, 503, { kind: "closing", message: "Origo is shutting down" });
  await store.check();
  response.json({ status: "ok", proxies: registry.fleet(nowMs()).length });
};

const listProxies = ({ registry, rng, nowMs }: AppOptions): RequestHandler => (request, response) => {
  const query = ListQuery.safeParse(request.query);
  if (!query.success) return refuse(response, 400, faultOf(query.error));
  const proxies = registry.pick(query.data.count, new Set(query.data.exclude), rng, nowMs());
  response.set("Cache-Control", "no-store").json({ proxies } satisfies ProxiesResponse);
};

const listFleet = ({ registry, nowMs }: AppOptions): RequestHandler => (_request, response) => {
  const now = nowMs();
  response.json({ nowMs: now, proxies: registry.fleet(now) } satisfies FleetResponse);
};

const takeRecords = ({ store, nowMs }: AppOptions): RequestHandler => async (request, response) => {
  const body = RecordsRequest.safeParse(request.body);
  if (!body.success) return refuse(response, 400, faultOf(body.error));
  response.status(202).json(await store.addRecords(body.data.records, nowMs()));
};

const takeErrors = ({ store, nowMs }: AppOptions): RequestHandler => async (request, response) => {
  const body = ErrorsRequest.safeParse(request.body);
  if (!body.success) return refuse(response, 400, faultOf(body.error));
  response.status(202).json(await store.addErrors(body.data.errors, nowMs()));
};

const listRecords = ({ store }: AppOptions): RequestHandler => async (request, response) => {
  const query = PageQuery.safeParse(request.query);
  if (!query.success) return refuse(response, 400, faultOf(query.error));
  const page = await store.records(query.data.limit, query.data.before);
  if (page === undefined) return refuse(response, 404, unknownBefore(query.data.before));
  response.json({ records: page.items, next: page.next } satisfies RecordsResponse);
};

const listErrors = ({ store }: AppOptions): RequestHandler => async (request, response) => {
  const query = PageQuery.safeParse(request.query);
  if (!query.success) return refuse(response, 400, faultOf(query.error));
  const page = await store.errors(query.data.limit, query.data.before);
  if (page === undefined) return refuse(response, 404, unknownBefore(query.data.before));
  response.json({ errors: page.items, next: page.next } satisfies ErrorsResponse);
};

const unknownBefore = (before: string | undefined): ApiError =>
  ({ kind: "unknownId", field: "before", message: `before: nothing with the id ${before ?? ""} is stored` });

function dashboard(folder: string): RequestHandler {
  if (existsSync(join(folder, "index.html"))) return express.static(folder, { cacheControl: false });
  return (request, response, next) => {
    if (request.path !== "/") return next();
    response.status(503).type("text/plain").send("Origo runs, but its page is not built: npx webpack --config origo/webpack.config.js\n");
  };
}

function refuse(response: Response, status: number, error: ApiError): void {
  response.status(status).json({ error });
}

/** What express and its body parser throw carries a status; anything else is our store or our bug. */
const failure: ErrorRequestHandler = (error: Error & { status?: number; type?: string; length?: number; limit?: number; received?: number }, _request, response, next) => {
  if (response.headersSent) return next(error);
  if (error.type === "entity.too.large") {
    const got = error.length ?? error.received;
    const message = `the body ${got === undefined ? "is" : `has ${got} bytes,`} over the limit of ${BODY_BYTES_MAX} bytes: send fewer records at a time`;
    return refuse(response, 413, { kind: "bodyTooLarge", message, ...(got === undefined ? {} : { got }), limit: BODY_BYTES_MAX });
  }
  if (error.type === "entity.parse.failed") return refuse(response, 400, { kind: "badJson", message: `the body is not JSON: ${error.message}` });
  if (error.status !== undefined && error.status < 500) return refuse(response, error.status, { kind: "badRequest", message: error.message });
  console.error(JSON.stringify({ level: "error", event: "requestFailed", message: error.message }));
  return refuse(response, 503, { kind: "unavailable", message: "Origo could not do this now; nothing was stored, try again" });
};
