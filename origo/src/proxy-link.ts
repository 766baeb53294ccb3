/**
 * Proxy link: the socket.io namespace "/proxies". Proxies register here and send heartbeats. A proxy proves
 * its key with its hello (enrolment.ts). Unknown namespaces are refused. The registry decides what a heartbeat means.
 */
import type { Server as HttpServer } from "node:http";
import { Server, type Socket } from "socket.io";
import { randomBytes } from "node:crypto";
import type { Configuration } from "./configuration";
import type { Enrolment } from "./enrolment";
import { addressOf, limitPackets, type PacketLimit } from "./packet-limit";
import type { Holders } from "./holders";
import type { Publications } from "./publications";
import type { Registry } from "./registry";
import {
  ObjectsReport,
  PUBLICATION_LIMITS,
  ServedReport,
  type ObjectsAck,
  type ServedAck,
} from "@tributary/contract/publication-schema";
import {
  PeersRequest,
  ProxyHello,
  ProxyProof,
  ProxyStatus,
  type ApiError,
  type PeersAnswer,
  type ProxyAck,
  type ProxyControl,
} from "@tributary/contract/schema";
import { faultOf } from "@tributary/contract/fault";
import type { TokenSigner } from "./token";

/** A larger message closes the connection. The largest is a report of objects. */
const MESSAGE_BYTES_MAX = 24_576;
/** A connection that is not a proxy's after this time is closed. */
const HELLO_MS_MAX = 10_000;

export interface ProxyLinkOptions {
  registry: Registry;
  configuration: Configuration;
  tokens: TokenSigner;
  enrolment: Enrolment;
  holders: Holders;
  publications: Publications;
  trustedHops: number;
  nowMs: () => number;
}

export interface ProxyLink {
  /** Closing it closes the HTTP server too. */
  readonly io: Server;
  readonly packetLimit: PacketLimit;
  /** Tells a proxy what was decided about it. */
  handleDecision(proxyId: string): void;
  /** Disconnects the proxies that were revoked. */
  handleRevoked(): void;
  /** Tells a proxy of objects that no publication has. */
  forget(proxyId: string, objects: readonly string[]): void;
}

export function attachProxyLink(http: HttpServer, options: ProxyLinkOptions): ProxyLink {
  const io = new Server(http, {
    serveClient: false,
    transports: ["websocket"],
    maxHttpBufferSize: MESSAGE_BYTES_MAX,
    pingInterval: 5000,
    pingTimeout: 5000,
    connectTimeout: 10_000,
  });
  io.use((_socket, next) =>
    next(refusal({ kind: "unknownNamespace", message: "this namespace does not exist: proxies connect to /proxies" })),
  );
  const packetLimit = limitPackets(io, options.trustedHops, options.nowMs);
  const proxies = io.of("/proxies");
  proxies.on("connection", (socket) => serve(socket, packetLimit, options));
  const { registry, configuration } = options;
  const tell = (proxyId: string): void => {
    const socket = proxies.sockets.get(registry.connectionOf(proxyId) ?? "");
    socket?.emit("control", controlFor(proxyId, options));
  };
  configuration.on("change", () => registry.connectedIds().forEach(tell));
  const handleRevoked = (): void => {
    for (const id of options.enrolment.revokedIds)
      proxies.sockets.get(registry.connectionOf(id) ?? "")?.disconnect(true);
  };
  const forget: ProxyLink["forget"] = (proxyId, objects) => {
    const socket = proxies.sockets.get(registry.connectionOf(proxyId) ?? "");
    for (let at = 0; at < objects.length; at += PUBLICATION_LIMITS.objectsPerReport)
      socket?.emit("forget", { objects: objects.slice(at, at + PUBLICATION_LIMITS.objectsPerReport) });
  };
  return { io, packetLimit, handleDecision: tell, handleRevoked, forget };
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

/** The proxy gets this as `connect_error`, with the error in `data`. */
function refusal(error: ApiError): Error {
  return Object.assign(new Error(error.message), { data: error });
}

/** Sends the challenge. The proxy's hello brings the proof, also when it sends its hello again. */
function serve(socket: Socket, packetLimit: PacketLimit, options: ProxyLinkOptions): void {
  const { registry, enrolment, nowMs } = options;
  const challenge = randomBytes(24).toString("base64url");
  const address = addressOf(socket.handshake.headers, socket.handshake.address, options.trustedHops);
  const late = setTimeout(() => socket.disconnect(true), HELLO_MS_MAX);
  const register = async (message: unknown, proof: unknown): Promise<ProxyAck> => {
    const [hello, proven] = [ProxyHello.safeParse(message), ProxyProof.safeParse(proof)];
    if (!hello.success) return { error: faultOf(hello.error, message) };
    if (!proven.success) return { error: faultOf(proven.error) };
    const admitted = await enrolment.admit(proven.data, { name: hello.data.name, challenge, address });
    if ("error" in admitted) return admitted;
    if (!socket.connected) return { error: { kind: "helloMissing", message: "the connection closed meanwhile" } };
    clearTimeout(late);
    packetLimit.trust(socket);
    return registry.handleHello(socket.id, { ...hello.data, id: admitted.id }, nowMs());
  };
  socket.on("hello", (message: unknown, proof: unknown, ack: unknown) => {
    const answered = register(message, proof).catch((): ProxyAck => ({ error: UNAVAILABLE }));
    void answered.then((result) => {
      answer(ack, result);
      if ("id" in result) socket.emit("control", controlFor(result.id, options));
    });
  });
  socket.on("status", (message: unknown, ack: unknown) => {
    const status = ProxyStatus.safeParse(message);
    answer(
      ack,
      status.success
        ? registry.handleStatus(socket.id, status.data, nowMs())
        : { error: faultOf(status.error, message) },
    );
  });
  socket.on("objects", (message: unknown, ack: unknown) => {
    void takeReport(socket.id, message, options)
      .catch((): ObjectsAck => ({ error: UNAVAILABLE }))
      .then((result) => answer(ack, result));
  });
  socket.on("served", (message: unknown, ack: unknown) => {
    void takeServed(socket.id, message, options)
      .catch((): ServedAck => ({ error: UNAVAILABLE }))
      .then((result) => answer(ack, result));
  });
  socket.on("peers", (message: unknown, ack: unknown) => {
    const asked = PeersRequest.safeParse(message);
    const id = registry.idOf(socket.id);
    const urls = asked.success && id !== undefined ? registry.peersOf(id, asked.data, nowMs()) : {};
    answer(ack, { urls });
  });
  socket.on("disconnect", () => {
    clearTimeout(late);
    const id = registry.idOf(socket.id);
    registry.handleClosed(socket.id);
    if (id !== undefined) options.holders.handleGone(id);
  });
  socket.emit("challenge", challenge);
}

/** The objects of a proxy's library. */
async function takeReport(
  connectionId: string,
  message: unknown,
  { registry, holders, publications }: ProxyLinkOptions,
): Promise<ObjectsAck> {
  const report = ObjectsReport.safeParse(message);
  if (!report.success) return { error: faultOf(report.error, message) };
  const id = registry.idOf(connectionId);
  if (id === undefined) return { error: HELLO_MISSING };
  holders.handleReport(id, report.data);
  return { unwanted: await publications.unwantedAmong(report.data.added) };
}

/** What a proxy served of its library. */
async function takeServed(
  connectionId: string,
  message: unknown,
  { registry, publications }: ProxyLinkOptions,
): Promise<ServedAck> {
  const report = ServedReport.safeParse(message);
  if (!report.success) return { error: faultOf(report.error, message) };
  const id = registry.idOf(connectionId);
  if (id === undefined) return { error: HELLO_MISSING };
  await publications.countServed(id, report.data);
  return { id: report.data.id };
}

const HELLO_MISSING: ApiError = { kind: "helloMissing", message: "send hello first" };
const UNAVAILABLE: ApiError = { kind: "unavailable", message: "Origo cannot look up the key now: try again" };

function answer(ack: unknown, result: ProxyAck | ObjectsAck | ServedAck | PeersAnswer): void {
  if (typeof ack === "function") ack(result);
}
