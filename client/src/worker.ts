/** Entry of the engine's worker in a browser. Its Node twin is worker-node.ts. */
import type { ToEngine } from "./messages";
import { serveEngine } from "./worker-shell";

const scope = self as unknown as {
  postMessage(message: unknown, transfer: Transferable[]): void;
  onmessage: ((event: MessageEvent<ToEngine>) => void) | null;
};

const handle = serveEngine({ post: (message, transfer) => scope.postMessage(message, transfer) });
scope.onmessage = (event) => handle(event.data);
