/**
 * Packet limit: how many packets and pings the connections of socket.io may send: each connection, and all connections
 * of one address together. A connection over a limit is cut. Connections that someone has proven to own (a proxy by its
 * key, a page by its login) do not count for their address, so a stranger behind the same address cannot cut them.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { Server, Socket } from "socket.io";
import { limitKeyOf } from "./network";
import { RateLimit } from "./rate-limit";

const WINDOW_MS = 10_000;
/** A proxy sends at most two heartbeats a second. A page sends fewer packets. */
const PACKETS_MAX = 100;
/** A proxy reports its library in many packets. */
const PACKETS_TRUSTED_MAX = 2000;
const PACKETS_PER_ADDRESS_MAX = 1000;
/** This many addresses are counted. */
const ADDRESSES_MAX = 10_000;

/** The part of a WebSocket's connection that is used here. Its own frames, pings and pongs, are no packets. */
interface WebSocket {
  on(type: "ping" | "pong", listener: (data: Buffer) => void): this;
  pong(data: Buffer): void;
}

export interface PacketLimit {
  /** The connection of this socket belongs to someone who is known. */
  trust(socket: Socket): void;
}

export function limitPackets(io: Server, trustedHops: number, nowMs: () => number): PacketLimit {
  const trusted = new WeakSet<object>();
  const byAddress = new RateLimit({
    limit: () => PACKETS_PER_ADDRESS_MAX,
    windowMs: () => WINDOW_MS,
    keysMax: ADDRESSES_MAX,
  });
  // WebSocket answers each ping otherwise, also beyond the limit. The answers wait in memory if nobody reads them.
  (io.engine as unknown as { ws: { options: { autoPong: boolean } } }).ws.options.autoPong = false;
  io.engine.on("connection", (connection: Socket["conn"]) => {
    const address = limitKeyOf(
      addressOf(connection.request.headers, connection.remoteAddress as string | undefined, trustedHops),
    );
    const packetsMax = (): number => (trusted.has(connection) ? PACKETS_TRUSTED_MAX : PACKETS_MAX);
    const own = new RateLimit({ limit: packetsMax, windowMs: () => WINDOW_MS, keysMax: 1 });
    // socket.io waits for the client's closing handshake, and reads on meanwhile.
    connection.once("close", () => connection.request.socket.destroySoon());
    let isCut = false;
    /** Counts a packet, and tells whether the connection stays. */
    const count = (): boolean => {
      if (isCut) return false;
      const now = nowMs();
      isCut = own.waitMs("", now) > 0 || (!trusted.has(connection) && byAddress.waitMs(address, now) > 0);
      if (isCut) connection.close(true);
      own.add("", now);
      if (!trusted.has(connection)) byAddress.add(address, now);
      return !isCut;
    };
    connection.on("packet", count);
    const { socket } = connection.transport as unknown as { socket: WebSocket };
    socket.on("ping", (data) => count() && socket.pong(data)).on("pong", count);
  });
  return { trust: ({ conn }) => void trusted.add(conn) };
}

/**
 * The address that the balancers in front of Origo name, if there are any. A connection that is gone already has no
 * address, so it gives an empty one.
 */
export function addressOf(
  headers: IncomingHttpHeaders,
  remoteAddress: string | undefined,
  trustedHops: number,
): string {
  const named = String(headers["x-forwarded-for"] ?? "").split(",");
  const hops = [...named.map((hop) => hop.trim()).filter((hop) => hop !== ""), remoteAddress ?? ""];
  return hops[Math.max(0, hops.length - 1 - trustedHops)] ?? "";
}
