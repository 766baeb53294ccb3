/**
 * The library in Node. It uses a worker thread with the transports of the native part. Without the native part it uses
 * node-datachannel. A process that opened a session by node-datachannel must end by `process.exit()`, because that
 * library's threads outlive its connections, and its own cleanup is not safe to call.
 */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { Worker } from "node:worker_threads";
import { chooseWasmModule } from "@tributary/wasm-codec";
import { wasmModulePath } from "@tributary/wasm-codec/node";
import { loadNativeTransport } from "@tributary/native-transport";
import { ProxyClient, type ProxyClientOptions } from "./client";
import type { FromEngine } from "./messages";
import { askOrigin } from "./origin-node";
import type { EngineWorker, Hasher, Platform, Transport } from "./platform";
import { nodeUdp } from "./transports/udp-node";
import { libraryWebRtc } from "./transports/webrtc-library";
import { nodeWebRtc } from "./transports/webrtc-node";
import { nodeWebTransport } from "./transports/webtransport-node";

export { ProxyClient } from "./client";
export { libraryWebRtc } from "./transports/webrtc-library";

const isNative = loadNativeTransport().native !== undefined;

/** Every transport of this environment, on this thread. A caller that needs no engine uses them directly. */
export const nodeTransports: readonly Transport[] = [nodeWebTransport, nodeUdp, isNative ? nodeWebRtc : libraryWebRtc];

export interface NodeClientOptions extends Omit<ProxyClientOptions, "platform" | "source"> {
  source?: ProxyClientOptions["source"];
}

export function createNodeClient({ source = "library", ...options }: NodeClientOptions): ProxyClient {
  return new ProxyClient({ ...options, source, platform: nodePlatform() });
}

export function nodePlatform(): Platform {
  return {
    describe: () => ({
      agent: `node/${process.versions.node.split(".")[0]}`,
      os: { win32: "windows", darwin: "macos" }[process.platform as string] ?? process.platform,
    }),
    now: () => performance.now(),
    epochMs: () => Date.now(),
    randomUUID: () => crypto.randomUUID(),
    fetch: (input, init) => fetch(input, init),
    askOrigin,
    defer: (task) => void setImmediate(task),
    transports: isNative ? [] : [libraryWebRtc],
    engineTransports: isNative ? ["webtransport", "webrtc", "udp"] : ["udp"],
    spawnEngine,
    loadCodec,
    createHasher,
    hash: (bytes) => createHash("sha256").update(bytes).digest(),
  };
}

async function loadCodec(): Promise<ArrayBuffer> {
  return new Uint8Array(await readFile(wasmModulePath(chooseWasmModule()))).buffer;
}

function createHasher(): Hasher {
  const hash = createHash("sha256");
  return {
    update: (bytes) => void hash.update(bytes),
    digest: () => Promise.resolve(hash.copy().digest("hex")),
    discard: () => undefined,
  };
}

/**
 * Packets and pieces are freed when the worker collects its young objects. A small space for these makes that happen
 * often: at its usual size the worker holds tens of megabytes of dead packets.
 */
const YOUNG_MB_MAX = 8;

function spawnEngine(): EngineWorker {
  const worker = new Worker(path.join(__dirname, "worker-node.js"), {
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB_MAX },
  });
  return {
    post: (message, transfer) => worker.postMessage(message, transfer),
    onMessage: (handler) => {
      worker.on("message", (message: FromEngine) => handler(message));
      // Node holds a program for every worker that somebody listens to.
      worker.unref();
    },
    hold: (isBusy) => (isBusy ? worker.ref() : worker.unref()),
    onFailure: (handler) => {
      worker.on("error", (error) => handler(`The engine's worker failed: ${error.message}`));
      worker.on("exit", (code) => handler(`The engine's worker ended with code ${code}.`));
    },
    terminate: () => void worker.terminate(),
  };
}
