/** App: the express application with Origo's HTTP API and the dashboard. The endpoints are in routes-*.ts. */
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import express, { type Express, type RequestHandler } from "express";
import { z } from "zod";
import { endpoint, failure, mount, PAGE_ORIGINS, refuse, securityHeaders, type Endpoint } from "./http";
import { openApiOf } from "./openapi";
import { adminEndpoints, type AdminOptions } from "./routes-admin";
import { convictionEndpoints, type ConvictionOptions } from "./routes-convictions";
import { configEndpoints, type ConfigOptions } from "./routes-config";
import { enrolmentEndpoints, type EnrolmentRouteOptions } from "./routes-enrolment";
import { fleetEndpoints, type FleetOptions } from "./routes-fleet";
import { intakeEndpoints, type IntakeOptions } from "./routes-intake";
import { operationsEndpoints, type OperationsOptions } from "./routes-operations";
import { libraryEndpoints, type LibraryOptions } from "./routes-library";
import { publishedEndpoints, type PublishedOptions } from "./routes-published";
import { publishingEndpoints, type PublishingOptions } from "./routes-publishing";
import { queryEndpoints } from "./routes-query";
import type { Store } from "./store/index";
import type { Log } from "./telemetry";

export const ORIGO_VERSION = "0.1.0";

export interface AppOptions
  extends
    AdminOptions,
    ConfigOptions,
    ConvictionOptions,
    EnrolmentRouteOptions,
    FleetOptions,
    IntakeOptions,
    LibraryOptions,
    OperationsOptions,
    PublishedOptions,
    PublishingOptions {
  store: Store;
  log: Log;
  /** The number of load balancers in front of this process. Their X-Forwarded-For headers are believed. */
  trustedHops: number;
  /** Origins of the pages that may read open endpoints, besides extensions. */
  pageOrigins: readonly string[];
  /** The folder with the built dashboard. */
  dashboardDir: string;
}

function endpointsOf(options: AppOptions): Endpoint[] {
  const endpoints = [
    ...operationsEndpoints(options),
    ...fleetEndpoints(options),
    ...convictionEndpoints(options),
    ...enrolmentEndpoints(options),
    ...intakeEndpoints(options),
    ...publishingEndpoints(options),
    ...publishedEndpoints(options),
    ...libraryEndpoints(options),
    ...queryEndpoints(options),
    ...configEndpoints(options),
    ...adminEndpoints(options),
  ];
  endpoints.push(
    endpoint({
      method: "get",
      path: "/openapi.json",
      access: "public",
      summary: "This description of the API",
      answer: z.object({ openapi: z.string() }).passthrough(),
      handle: () => document,
    }),
  );
  const document = openApiOf(endpoints, ORIGO_VERSION);
  return endpoints;
}

export function makeApp(options: AppOptions): Express {
  const app = express();
  app.disable("x-powered-by");
  app.set("query parser", "simple");
  app.set("trust proxy", options.trustedHops);
  app.set(PAGE_ORIGINS, options.pageOrigins);
  app.use(options.telemetry.timing);
  app.use(securityHeaders);
  // Publishers set their clocks by this, so it must be the clock that their requests are held against.
  app.use((_request, response, next) => {
    response.set("Date", new Date(options.nowMs()).toUTCString());
    next();
  });
  mount(app, endpointsOf(options), options.access);
  app.use(dashboard(options.dashboardDir));
  app.use((request, response) =>
    refuse(response, 404, { kind: "notFound", message: `there is nothing at ${request.path}` }),
  );
  app.use(
    failure((error) => options.log.error({ event: "requestFailed", reason: options.store.explain(error).message })),
  );
  return app;
}

/** The dashboard's worker that sends files to proxies. A worker has the policy of its own script. */
const WORKER_CSP = "default-src 'none'; script-src 'self'; connect-src 'self' http: https:";

function dashboard(folder: string): RequestHandler {
  if (existsSync(join(folder, "index.html")))
    return express.static(folder, {
      cacheControl: false,
      setHeaders: (response, path) => {
        if (basename(path).startsWith("publish-worker.")) response.setHeader("Content-Security-Policy", WORKER_CSP);
      },
    });
  return (request, response, next) => {
    if (request.path !== "/") return next();
    response
      .status(503)
      .type("text/plain")
      .send(
        "Origo runs, but its dashboard is not built. Build it with: npx webpack --config origo/webpack.config.js\n",
      );
  };
}
