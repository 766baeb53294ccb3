/**
 * The Worker that measures the WebAssembly modules in a browser: the first message brings the modules, each later one a
 * request; each is answered with one message.
 */
import { Contenders } from "./contenders";
import { wasmCodecs } from "./wasm-codecs";

interface WorkerScope {
  onmessage: ((event: { data: unknown }) => void) | null;
  postMessage(message: string): void;
}

const scope = globalThis as unknown as WorkerScope;
let contenders: Contenders | undefined;

scope.onmessage = ({ data }) => {
  if (typeof data === "string") {
    void contenders?.answer(data).then((answer) => scope.postMessage(answer));
    return;
  }
  contenders = new Contenders(wasmCodecs(data as Uint8Array[]));
  scope.postMessage("ready");
};
