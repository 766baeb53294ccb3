/** App: Origo's HTTP API and its page, as an express application. The endpoints are in routes-*.ts. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import express, { type Express, type RequestHandler } from "express";
import { failure, mount, refuse, securityHeaders, type Endpoint, type Gate } from "./http";
import { fleetEndpoints, type FleetOptions } from "./routes-fleet";
import { intakeEndpoints, type IntakeOptions } from "./routes-intake";
import { operationsEndpoints, type OperationsOptions } from "./routes-operations";
import { queryEndpoints } from "./routes-query";

export interface AppOptions extends FleetOptions, IntakeOptions, OperationsOptions {
  gate: Gate;
  /** Folder with the built page. */
  dashboardDir: string;
}

export const endpointsOf = (options: AppOptions): Endpoint[] => [
  ...operationsEndpoints(options), ...fleetEndpoints(options), ...intakeEndpoints(options), ...queryEndpoints(options),
];

export function makeApp(options: AppOptions): Express {
  const app = express();
  app.disable("x-powered-by");
  app.set("query parser", "simple");
  app.use(securityHeaders);
  mount(app, endpointsOf(options), options.gate);
  app.use(dashboard(options.dashboardDir));
  app.use((request, response) => refuse(response, 404, { kind: "notFound", message: `there is no ${request.path} here` }));
  app.use(failure((error) => console.error(JSON.stringify({ level: "error", event: "requestFailed", message: error.message }))));
  return app;
}

function dashboard(folder: string): RequestHandler {
  if (existsSync(join(folder, "index.html"))) return express.static(folder, { cacheControl: false });
  return (request, response, next) => {
    if (request.path !== "/") return next();
    response.status(503).type("text/plain").send("Origo runs, but its page is not built: npx webpack --config origo/webpack.config.js\n");
  };
}
