/**
 * One by one: serves the requests of one HTTP connection one after another. Node begins pipelined requests all at once
 * (RFC 9112 §9.3.2), so one connection could begin thousands. It also does not tell the ones that wait for their turn
 * when the connection ends, so what they hold would never be freed.
 */
interface Connection {
  readonly destroyed: boolean;
  destroy(): unknown;
}
interface Asked {
  readonly socket: Connection;
}
interface Answer {
  once(event: "close", listener: () => void): unknown;
}

/** A connection with more waiting requests is closed. Browsers and players send none before they have the answer. */
const WAITING_MAX = 16;

/** Wraps the listener of an `http.Server`. */
export function oneByOne<Q extends Asked, A extends Answer>(
  listener: (request: Q, response: A) => void,
): (request: Q, response: A) => void {
  /** The requests that wait at each connection whose request is being served. */
  const waiting = new WeakMap<Connection, [Q, A][]>();
  const serve = (request: Q, response: A): void => {
    const { socket } = request;
    response.once("close", () => {
      const next = socket.destroyed ? undefined : waiting.get(socket)?.shift();
      if (next) serve(...next);
      else waiting.delete(socket);
    });
    listener(request, response);
  };
  return (request, response) => {
    const queue = waiting.get(request.socket);
    if (!queue) {
      waiting.set(request.socket, []);
      serve(request, response);
    } else if (queue.push([request, response]) > WAITING_MAX) request.socket.destroy();
  };
}
