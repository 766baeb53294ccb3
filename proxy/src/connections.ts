/**
 * Connections: shares the HTTP connections of this proxy among clients. A connection without a running request counts
 * as idle. Rules: seats.ts.
 */
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { clientOf } from "./clients";
import { Seats, type Seat } from "./seats";

class Connection implements Seat {
  requests = 0;
  sinceMs = performance.now();

  readonly #socket: Socket;

  constructor(
    readonly client: string,
    socket: Socket,
  ) {
    this.#socket = socket;
  }
  idleSinceMs(): number | undefined {
    return this.requests > 0 ? undefined : this.sinceMs;
  }
  end(): void {
    this.#socket.destroy();
  }
}

/** `limit`: the most connections at once. */
export function shareConnections(server: Server, limit: () => number): void {
  const seats = new Seats<Connection>(limit);
  const connections = new WeakMap<Socket, Connection>();
  server.on("connection", (socket: Socket) => {
    const connection = new Connection(clientOf(socket.remoteAddress ?? ""), socket);
    if (!seats.take(connection)) return void socket.destroy();
    connections.set(socket, connection);
    socket.once("close", () => seats.leave(connection));
  });
  server.prependListener("request", (request, response) => {
    const connection = connections.get(request.socket);
    if (!connection) return;
    connection.requests++;
    response.once("close", () => {
      connection.requests--;
      connection.sinceMs = performance.now();
    });
  });
}
