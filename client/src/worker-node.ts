/** Entry of the engine's worker in Node (worker_threads). Its browser twin is worker.ts. */
import { createHash } from "node:crypto";
import { parentPort } from "node:worker_threads";
import { loadCodec } from "@tributary/native-codec";
import { instantiateCodec } from "@tributary/wasm-codec";
import type { ToEngine } from "./messages";
import { nodeUdp } from "./transports/udp-node";
import { nodeWebRtc } from "./transports/webrtc-node";
import { nodeWebTransport } from "./transports/webtransport-node";
import { serveEngine } from "./worker-shell";

if (!parentPort) throw new Error("worker-node.js is the entry of a worker thread; start it with node:worker_threads.");
const port = parentPort;
const environment = {
  transports: [nodeWebTransport, nodeUdp, nodeWebRtc],
  /** A client is fast enough with WebAssembly, so it does not warn about the fallback. */
  makeCodec: (wasm: ArrayBuffer) =>
    loadCodec(
      () => instantiateCodec(wasm),
      () => undefined,
    ),
  hash: (bytes: Uint8Array) => createHash("sha256").update(bytes).digest(),
  defer: (task: () => void) => void setImmediate(task),
};
const handle = serveEngine({ post: (message, transfer) => port.postMessage(message, transfer) }, environment);
port.on("message", (message: ToEngine) => handle(message));
