/**
 * The library in a browser. It uses RTCPeerConnection and a dedicated Worker, so it runs in a page or in a document of
 * an extension, but not in a worker.
 */
import { ProxyClient, type ProxyClientOptions } from "./client";
import type { FromEngine } from "./messages";
import { describeAgent } from "./agent";
import { collectGarbage } from "./collect-browser";
import { createDefer } from "./defer-browser";
import { createHasher } from "./hasher-browser";
import type { EngineWorker, Platform } from "./platform";
import { isPathShut } from "./transports/browser-proxy";
import { browserWebRtc } from "./transports/webrtc-browser";
import { randomUuid } from "./uuid";

export { ProxyClient } from "./client";
export { randomUuid } from "./uuid";

export interface BrowserClientOptions extends Omit<ProxyClientOptions, "platform" | "source"> {
  /** The URL of the bundle of `@tributary/client/worker`. */
  workerUrl: string | URL;
  /** The URL of the codec's WebAssembly module. */
  wasmUrl: string | URL;
  source?: ProxyClientOptions["source"];
}

export function createBrowserClient({
  workerUrl,
  wasmUrl,
  source = "extension",
  ...options
}: BrowserClientOptions): ProxyClient {
  return new ProxyClient({ ...options, source, platform: browserPlatform(workerUrl, wasmUrl) });
}

function browserPlatform(workerUrl: string | URL, wasmUrl: string | URL): Platform {
  return {
    describe: () => describeAgent(navigator.userAgent),
    now: () => performance.now(),
    epochMs: () => Date.now(),
    randomUUID: randomUuid,
    fetch: (input, init) => fetch(input, init),
    defer: createDefer(),
    transports: [browserWebRtc],
    isShut: isPathShut,
    engineTransports: typeof WebTransport === "function" ? ["webtransport"] : [],
    createHasher,
    collect: collectGarbage,
    spawnEngine: () => spawnEngine(workerUrl),
    loadCodec: async () => {
      const response = await fetch(wasmUrl);
      if (!response.ok) throw new Error(`${String(wasmUrl)} answered ${response.status}`);
      return response.arrayBuffer();
    },
  };
}

function spawnEngine(workerUrl: string | URL): EngineWorker {
  const worker = new Worker(workerUrl);
  return {
    post: (message, transfer) => worker.postMessage(message, transfer),
    onMessage: (handler) => void (worker.onmessage = ({ data }: MessageEvent<FromEngine>) => handler(data)),
    onFailure: (handler) => {
      worker.onerror = ({ message }) => handler(`The engine's worker failed: ${message || "it could not be loaded"}.`);
    },
    terminate: () => worker.terminate(),
  };
}
