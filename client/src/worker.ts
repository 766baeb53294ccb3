/** Entry of the engine's worker in a browser. Its Node twin is worker-node.ts. */
import { instantiateCodec } from "@tributary/wasm-codec";
import { collectGarbage, collectWhileBusy } from "./collect-browser";
import { createDefer } from "./defer-browser";
import type { ToEngine } from "./messages";
import { browserWebTransport } from "./transports/webtransport-browser";
import { serveEngine } from "./worker-shell";

const scope = self as unknown as {
  postMessage(message: unknown, transfer: Transferable[]): void;
  onmessage: ((event: MessageEvent<ToEngine>) => void) | null;
};

const environment = {
  transports: [browserWebTransport],
  makeCodec: (wasm: ArrayBuffer) => instantiateCodec(wasm),
  defer: createDefer(),
  collect: collectGarbage,
};
const handle = serveEngine({ post: (message, transfer) => scope.postMessage(message, transfer) }, environment);
scope.onmessage = (event) => {
  handle(event.data);
  collectWhileBusy();
};
