/** The library in a browser: RTCPeerConnection, a dedicated Worker. For a page or an extension's document, not a worker. */
import { ProxyClient, type ProxyClientOptions } from "./client";
import type { FromEngine } from "./messages";
import { describeAgent } from "./agent";
import { createDefer } from "./defer-browser";
import type { Channel, ChannelOptions, DeliverySignals, EngineWorker, Platform, Transport } from "./platform";

export { ProxyClient } from "./client";

export interface BrowserClientOptions extends Omit<ProxyClientOptions, "platform" | "source"> {
  /** Where the bundle of `@tributary/client/worker` is. */
  workerUrl: string | URL;
  /** Where the codec's WebAssembly module is. */
  wasmUrl: string | URL;
  source?: ProxyClientOptions["source"];
}

/** Candidates of this machine are there within milliseconds; the proxy needs none of them to answer. */
const GATHERING_MS_MAX = 500;

export function createBrowserClient({ workerUrl, wasmUrl, source = "extension", ...options }: BrowserClientOptions): ProxyClient {
  return new ProxyClient({ ...options, source, platform: browserPlatform(workerUrl, wasmUrl) });
}

function browserPlatform(workerUrl: string | URL, wasmUrl: string | URL): Platform {
  return {
    describe: () => describeAgent(navigator.userAgent),
    now: () => performance.now(),
    epochMs: () => Date.now(),
    randomUUID: () => crypto.randomUUID(),
    fetch: (input, init) => fetch(input, init),
    defer: createDefer(),
    transports: [webRtc],
    engineTransports: typeof WebTransport === "function" ? ["webtransport"] : [],
    spawnEngine: () => spawnEngine(workerUrl),
    loadCodec: async () => {
      const response = await fetch(wasmUrl);
      if (!response.ok) throw new Error(`${String(wasmUrl)} answered ${response.status}`);
      return response.arrayBuffer();
    },
  };
}

const webRtc: Transport = { name: "webrtc", reaches: () => true, open: openChannel };

async function openChannel(options: ChannelOptions): Promise<Channel> {
  const peer = new RTCPeerConnection();
  const channel = peer.createDataChannel("mutp", { ordered: false, maxRetransmits: 0 });
  channel.binaryType = "arraybuffer";
  channel.onmessage = ({ data }) => {
    if (data instanceof ArrayBuffer) options.onMessage(new Uint8Array(data));
  };
  const close = (): void => {
    channel.onclose = null;
    channel.onmessage = null;
    peer.onconnectionstatechange = null;
    peer.close();
  };
  try {
    await negotiate(peer, channel, options);
  } catch (error) {
    close();
    throw error;
  }
  const lost = (reason: string): void => {
    close();
    options.onClosed(reason);
  };
  channel.onclose = () => lost("the data channel was closed");
  peer.onconnectionstatechange = () => {
    if (peer.connectionState === "failed") lost("the connection failed");
  };
  return { send: (bytes) => trySend(channel, bytes), signals: () => signalsOf(peer), close };
}

async function negotiate(peer: RTCPeerConnection, channel: RTCDataChannel, { exchange, signal }: ChannelOptions): Promise<void> {
  const opened = new Promise<void>((resolve, reject) => {
    channel.onopen = () => resolve();
    channel.onclose = () => reject(new Error("the data channel was closed before it was open"));
    peer.onconnectionstatechange = () => {
      if (peer.connectionState === "failed") reject(new Error("no connection could be made"));
    };
    if (signal.aborted) reject(signal.reason as Error);
    signal.addEventListener("abort", () => reject(signal.reason as Error));
  });
  opened.catch(() => undefined);
  const steps = async (): Promise<void> => {
    await peer.setLocalDescription(await peer.createOffer());
    await gathered(peer);
    const sdp = await exchange(peer.localDescription!.sdp);
    await peer.setRemoteDescription({ type: "answer", sdp });
  };
  await Promise.race([steps(), opened]);
  await opened;
}

function gathered(peer: RTCPeerConnection): Promise<void> {
  return new Promise((resolve) => {
    if (peer.iceGatheringState === "complete") return resolve();
    const timer = setTimeout(resolve, GATHERING_MS_MAX);
    peer.addEventListener("icegatheringstatechange", () => {
      if (peer.iceGatheringState !== "complete") return;
      clearTimeout(timer);
      resolve();
    });
  });
}

/** Of the candidate pair in use; SCTP's losses are not told. */
async function signalsOf(peer: RTCPeerConnection): Promise<DeliverySignals | undefined> {
  for (const report of (await peer.getStats()).values() as Iterable<RTCIceCandidatePairStats & { packetsSent?: number }>) {
    if (report.type !== "candidate-pair" || !report.nominated) continue;
    return { rttMs: 1000 * (report.currentRoundTripTime ?? 0), sentPackets: report.packetsSent ?? 0, lostPackets: 0 };
  }
  return undefined;
}

function trySend(channel: RTCDataChannel, bytes: Uint8Array): boolean {
  if (channel.readyState !== "open") return false;
  try {
    channel.send(bytes as Uint8Array<ArrayBuffer>);
    return true;
  } catch {
    return false;
  }
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
