/** Entry of the engine's worker in Node (worker_threads). Its browser twin is worker.ts. */
import { parentPort } from "node:worker_threads";
import type { ToEngine } from "./messages";
import { serveEngine } from "./worker-shell";

if (!parentPort) throw new Error("worker-node.js is the entry of a worker thread; start it with node:worker_threads.");
const port = parentPort;
const handle = serveEngine({ post: (message, transfer) => port.postMessage(message, transfer) });
port.on("message", (message: ToEngine) => handle(message));
