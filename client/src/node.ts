/**
 * The library in Node: node-datachannel, a worker thread. A process that made a session ends by `process.exit()`:
 * the native library's threads outlive its connections, and its own cleanup is not safe to call.
 */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { Worker } from "node:worker_threads";
import { chooseWasmModule } from "@tributary/wasm-codec";
import { wasmModulePath } from "@tributary/wasm-codec/node";
import { PeerConnection, type DataChannel } from "node-datachannel";
import { ProxyClient, type ProxyClientOptions } from "./client";
import type { FromEngine } from "./messages";
import type { Channel, ChannelOptions, EngineWorker, Hasher, Platform } from "./platform";

export { ProxyClient } from "./client";

export interface NodeClientOptions extends Omit<ProxyClientOptions, "platform" | "source"> {
  source?: ProxyClientOptions["source"];
}

const GATHERING_MS_MAX = 500;

export function createNodeClient({ source = "library", ...options }: NodeClientOptions): ProxyClient {
  return new ProxyClient({ ...options, source, platform: nodePlatform() });
}

export function nodePlatform(): Platform {
  return {
    now: () => performance.now(),
    epochMs: () => Date.now(),
    randomUUID: () => crypto.randomUUID(),
    fetch: (input, init) => fetch(input, init),
    defer: (task) => void setImmediate(task),
    openChannel,
    spawnEngine,
    loadCodec,
    createHasher,
  };
}

async function loadCodec(): Promise<ArrayBuffer> {
  return new Uint8Array(await readFile(wasmModulePath(chooseWasmModule()))).buffer;
}

function createHasher(): Hasher {
  const hash = createHash("sha256");
  return {
    update: (bytes) => void hash.update(bytes),
    digest: () => Promise.resolve(hash.digest("hex")),
    discard: () => undefined,
  };
}

function spawnEngine(): EngineWorker {
  const worker = new Worker(path.join(__dirname, "worker-node.js"));
  worker.unref();
  return {
    post: (message, transfer) => worker.postMessage(message, transfer),
    onMessage: (handler) => void worker.on("message", (message: FromEngine) => handler(message)),
    onFailure: (handler) => {
      worker.on("error", (error) => handler(`The engine's worker failed: ${error.message}`));
      worker.on("exit", (code) => handler(`The engine's worker ended with code ${code}.`));
    },
    terminate: () => void worker.terminate(),
  };
}

function openChannel({ exchange, signal, onMessage, onClosed }: ChannelOptions): Promise<Channel> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    const peer = new PeerConnection("tributary", { iceServers: [] });
    let state: "opening" | "open" | "ended" = "opening";

    const end = (): void => {
      state = "ended";
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      channel.close();
      peer.close();
    };
    const fail = (reason: unknown): void => {
      if (state === "ended") return;
      const wasOpen = state === "open";
      end();
      if (wasOpen) onClosed(String(reason));
      else reject(reason instanceof Error ? reason : new Error(String(reason)));
    };
    const onAbort = (): void => {
      if (state === "opening") fail(signal.reason);
    };
    const offer = once(() => {
      const sdp = peer.localDescription()?.sdp;
      if (state !== "opening" || !sdp) return;
      exchange(sdp).then((answer) => {
        if (state === "opening") peer.setRemoteDescription(answer, "answer");
      }).catch(fail);
    });
    const timer = setTimeout(offer, GATHERING_MS_MAX);

    signal.addEventListener("abort", onAbort);
    peer.onGatheringStateChange((gathering) => gathering === "complete" && offer());
    peer.onStateChange((connection) => {
      if (connection === "failed" || connection === "closed") fail(`the connection is ${connection}`);
    });
    const channel = peer.createDataChannel("mutp", { unordered: true, maxRetransmits: 0 });
    channel.onMessage((message) => {
      if (typeof message === "string" || state === "ended") return;
      onMessage(message instanceof ArrayBuffer ? new Uint8Array(message) : message);
    });
    channel.onClosed(() => fail("the data channel was closed"));
    channel.onError((error) => fail(`the data channel failed: ${error}`));
    channel.onOpen(() => {
      if (state !== "opening") return;
      state = "open";
      signal.removeEventListener("abort", onAbort);
      resolve({ send: (bytes) => trySend(channel, bytes), close: () => state === "open" && end() });
    });
  });
}

function trySend(channel: DataChannel, bytes: Uint8Array): boolean {
  try {
    return channel.isOpen() && channel.sendMessageBinary(bytes);
  } catch {
    return false;
  }
}

function once(task: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    task();
  };
}
