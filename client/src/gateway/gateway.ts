/**
 * The gateway: an HTTP server on loopback through which any player plays over the proxies. The path of a request
 * mirrors the address at the origin. What a request gets: serve.ts. Whom it refuses: guard.ts.
 */
import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { isIP, type AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { oneByOne } from "@tributary/contract/one-by-one";
import express, { type NextFunction, type Request, type Response } from "express";
import type { GetOptions, TransportOption } from "../api";
import { CONNECTIONS_DEFAULT } from "../settings";
import { createNodeClient } from "../node";
import type { SeenRevisions } from "../published/revisions";
import { guardOrigins } from "../origin-guard";
import { Activity } from "./activity";
import { parseMirrored } from "./addresses";
import { Catalogue } from "./catalogue";
import { safety } from "./headers";
import { refusalOf, splitHost } from "./guard";
import { addPage } from "./page";
import { serve, type ServeServices } from "./serve";

export const GATEWAY_PORT_DEFAULT = 7690;
const LOOPBACK = "127.0.0.1";
/** Players keep a connection between segments. */
const KEEP_ALIVE_MS = 75_000;
const CONNECTIONS_MAX = 512;
/** A slow head or body ends its connection, so that nobody keeps all of them. */
const REQUEST_TIMES = { headersTimeout: 10_000, requestTimeout: 30_000, connectionsCheckingInterval: 2000 };
const TOKEN_BYTES = 16;
const ANY_ADDRESS = /^(?:0\.0\.0\.0|\[::\])$/;

export interface GatewayOptions {
  origoUrl: string;
  /** Default 7690. 0: any free port. */
  port?: number;
  /** Default 127.0.0.1. Another address lets other machines in, and addresses then begin with a token. */
  host?: string;
  /** Hosts of private networks that it may ask although other machines can reach it. */
  privateHosts?: readonly string[];
  transport?: TransportOption;
  mode?: GetOptions["mode"];
  connections?: number;
  /** Send a record of each download to Origo; default true. */
  reportRecords?: boolean;
  /** Which revisions of publications were seen; default: by this gateway. */
  seenRevisions?: SeenRevisions;
}

export interface Gateway {
  /** Its address without a slash at the end, with the token if there is one. */
  url: string;
  /** Other machines can reach it. */
  isPublic: boolean;
  close(): Promise<void>;
}

/** The gateway could not start. The message is for a person. */
export class GatewayError extends Error {
  override readonly name = "GatewayError";
}

export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { origoUrl, transport, reportRecords, seenRevisions, mode, connections, host = LOOPBACK } = options;
  const isPublic = !isLoopback(host);
  if (isPublic) guardOrigins(options.privateHosts ?? []);
  const client = createNodeClient({
    origoUrl,
    source: "cli",
    ...(transport === undefined ? {} : { transport }),
    ...(reportRecords === undefined ? {} : { reportRecords }),
    ...(seenRevisions === undefined ? {} : { seenRevisions }),
  });
  const services: ServeServices = {
    client,
    catalogue: new Catalogue(),
    activity: new Activity(() => performance.now()),
    downloads: new Set(),
    options: { ...(mode === undefined ? {} : { mode }), ...(connections === undefined ? {} : { connections }) },
  };
  const prefix = isPublic ? `/${randomBytes(TOKEN_BYTES).toString("base64url")}` : "";
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS, ...REQUEST_TIMES });
  server.maxConnections = CONNECTIONS_MAX;
  try {
    const port = await listen(server, host, options.port ?? GATEWAY_PORT_DEFAULT);
    const app = createApp(services, { port, publicHost: isPublic ? host : undefined, prefix });
    server.on("request", oneByOne<IncomingMessage, ServerResponse>(app));
    void client.warm(connections ?? CONNECTIONS_DEFAULT);
    return { url: `http://${reachableHost(host)}:${port}${prefix}`, isPublic, close: () => close(server, services) };
  } catch (error) {
    await client.close();
    throw error;
  }
}

export interface Place {
  port: number;
  publicHost: string | undefined;
  /** The token with a slash before it, or nothing. */
  prefix: string;
}

function createApp(services: ServeServices, place: Place): express.Express {
  const app = express();
  app.disable("x-powered-by").disable("etag");
  app.use((request: Request, response: Response, next: NextFunction) => {
    const refusal = refusalOf(
      {
        method: request.method,
        target: request.url,
        host: request.headers.host,
        origin: request.headers.origin,
        fetchSite: request.headers["sec-fetch-site"] as string | undefined,
      },
      place,
    );
    if (refusal) return say(response, refusal.status, refusal.message);
    next();
  });
  if (place.prefix !== "")
    app.use((request: Request, response: Response, next: NextFunction) => {
      if (!request.url.startsWith(`${place.prefix}/`))
        return say(response, 403, "The address lacks the gateway's token.");
      request.url = request.url.slice(place.prefix.length);
      next();
    });
  addPage(app, services, place.prefix);
  app.use((request: Request, response: Response) => {
    const gateway = `http://${request.headers.host}${place.prefix}`;
    const parsed = parseMirrored(request.url);
    if ("path" in parsed) return response.redirect(302, `${gateway}${parsed.path}`);
    if (!(parsed instanceof URL)) return say(response, request.url === "/favicon.ico" ? 404 : 400, parsed.message);
    if (isOwn(parsed, place)) return say(response, 508, `The address is the gateway's own: got ${parsed.host}.`);
    return serve(request, response, parsed, gateway, services);
  });
  return app;
}

function say(response: Response, status: number, message: string): void {
  response
    .status(status)
    .set({ ...safety("text/plain"), "cache-control": "no-store" })
    .type("text/plain")
    .send(`${message}\n`);
}

function isOwn(url: URL, { port, publicHost }: Place): boolean {
  const split = splitHost(url.host);
  if (split?.port !== port) return false;
  return isLoopback(split.name) || ANY_ADDRESS.test(split.name) || split.name === publicHost?.toLowerCase();
}

export function isLoopback(host: string): boolean {
  return /^(?:localhost|127\.\d+\.\d+\.\d+|\[?::1\]?|\[::ffff:7f[0-9a-f:]+\])$/i.test(host);
}

/** The host as players write it. A gateway on all addresses of the machine is reachable under each of them. */
function reachableHost(host: string): string {
  const isAny = host === "0.0.0.0" || host === "::";
  const outer = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const found = isAny ? outer.find(({ internal, family }) => !internal && family === "IPv4")?.address : undefined;
  const shown = found ?? (isAny ? LOOPBACK : host);
  return isIP(shown) === 6 ? `[${shown}]` : shown;
}

async function listen(server: Server, host: string, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(new GatewayError(listenFault(error, host, port))));
    server.listen(port, host, resolve);
  });
  return (server.address() as AddressInfo).port;
}

function listenFault(error: NodeJS.ErrnoException, host: string, port: number): string {
  if (error.code === "EADDRINUSE")
    return `Port ${port} of ${host} is in use: stop the program that uses it, or choose another with --port.`;
  if (error.code === "EACCES") return `Port ${port} is not allowed for this user: choose one above 1023 with --port.`;
  if (error.code === "EADDRNOTAVAIL") return `This machine does not have the address ${host}.`;
  return `The gateway cannot listen on ${host}:${port}: ${error.message}`;
}

async function close(server: Server, { client }: ServeServices): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  await Promise.all([closed, client.close()]);
}
