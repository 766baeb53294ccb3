/**
 * Proxy link: the socket.io namespace "/proxies". Proxies register here and send heartbeats. A proxy must send the
 * secret in its handshake. Unknown namespaces are refused. The registry decides what a heartbeat means.
 */
import type { Server as HttpServer } from "node:http";
import { Server, type Socket } from "socket.io";
import { same } from "./compare";
import type { Configuration } from "./configuration";
import type { Registry } from "./registry";
import {
  faultOf,
  ProxyHello,
  ProxyStatus,
  type ApiError,
  type ProxyAck,
  type ProxyControl,
} from "@tributary/contract/schema";
import type { TokenSigner } from "./token";

/** A larger message closes the connection. A hello or a status is far smaller. */
const MESSAGE_BYTES_MAX = 16_384;

export interface ProxyLinkOptions {
  registry: Registry;
  configuration: Configuration;
  tokens: TokenSigner;
  secret: string;
  nowMs: () => number;
}

export interface ProxyLink {
  /** Closing it closes the HTTP server too. */
  readonly io: Server;
  /** Tells a proxy what was decided about it. */
  handleDecision(proxyId: string): void;
}

export function attachProxyLink(http: HttpServer, options: ProxyLinkOptions): ProxyLink {
  const io = new Server(http, {
    serveClient: false,
    maxHttpBufferSize: MESSAGE_BYTES_MAX,
    pingInterval: 5000,
    pingTimeout: 5000,
    connectTimeout: 10_000,
  });
  io.use((_socket, next) =>
    next(refusal({ kind: "unknownNamespace", message: "this namespace does not exist: proxies connect to /proxies" })),
  );
  const proxies = io.of("/proxies");
  proxies.use((socket, next) => next(admit(socket, options.secret)));
  proxies.on("connection", (socket) => serve(socket, options));
  const { registry, configuration } = options;
  const tell = (proxyId: string): void => {
    const socket = proxies.sockets.get(registry.connectionOf(proxyId) ?? "");
    socket?.emit("control", controlFor(proxyId, options));
  };
  configuration.on("change", () => registry.connectedIds().forEach(tell));
  return { io, handleDecision: tell };
}

function controlFor(proxyId: string, { registry, configuration, tokens, nowMs }: ProxyLinkOptions): ProxyControl {
  return {
    draining: registry.decisionOn(proxyId).state === "draining",
    version: configuration.version,
    values: configuration.valuesOf("proxy"),
    keys: { [tokens.keyId]: tokens.publicKey },
    nowMs: nowMs(),
  };
}

function admit(socket: Socket, secret: string): Error | undefined {
  const got: unknown = (socket.handshake.auth as Record<string, unknown>)["secret"];
  if (typeof got !== "string" || got === "") {
    return refusal({
      kind: "secretMissing",
      message: "the secret is missing: start the proxy with the ORIGO_SECRET of this Origo",
    });
  }
  if (!same(got, secret)) {
    return refusal({
      kind: "wrongSecret",
      message: "the secret is wrong: start the proxy with the ORIGO_SECRET of this Origo",
    });
  }
  return undefined;
}

/** The proxy gets this as `connect_error`, with the error in `data`. */
function refusal(error: ApiError): Error {
  return Object.assign(new Error(error.message), { data: error });
}

function serve(socket: Socket, options: ProxyLinkOptions): void {
  const { registry, nowMs } = options;
  socket.on("hello", (message: unknown, ack: unknown) => {
    const hello = ProxyHello.safeParse(message);
    const result: ProxyAck = hello.success
      ? registry.handleHello(socket.id, hello.data, nowMs())
      : { error: faultOf(hello.error) };
    answer(ack, result);
    if ("id" in result) socket.emit("control", controlFor(result.id, options));
  });
  socket.on("status", (message: unknown, ack: unknown) => {
    const status = ProxyStatus.safeParse(message);
    answer(
      ack,
      status.success ? registry.handleStatus(socket.id, status.data, nowMs()) : { error: faultOf(status.error) },
    );
  });
  socket.on("disconnect", () => registry.handleClosed(socket.id));
}

function answer(ack: unknown, result: ProxyAck): void {
  if (typeof ack === "function") ack(result);
}
