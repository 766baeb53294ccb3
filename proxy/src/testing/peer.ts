/**
 * A client of one proxy as a process, for tests: `node peer.js PROXY_URL URL MODE`. One WebRTC session, one chunk, no
 * fallback; prints one JSON line and ends (a process of its own because the WebRTC library cannot be unloaded).
 */
import { createHash } from "node:crypto";
import { Receiver, type MutpMode, type ReceiverStats, type Rejection } from "@tributary/protocol";
import { loadCodec } from "@tributary/native-codec";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { PeerConnection, type DataChannel } from "node-datachannel";

export interface PeerResult {
  status: number | undefined;
  sha256: string;
  bytes: number;
  durationMs: number;
  failure: Rejection | undefined;
  stats: ReceiverStats;
  /** The candidates of the proxy's answer. */
  candidates: string[];
}

const DOWNLOAD_MS_MAX = 30_000;

async function main([proxyUrl, url, mode]: string[]): Promise<void> {
  const { channel, answer } = await connect(proxyUrl!);
  const result = await download(channel, url!, mode as MutpMode);
  const candidates = answer.split("\r\n").filter((line) => line.startsWith("a=candidate:"));
  process.stdout.write(`${JSON.stringify({ ...result, candidates } satisfies PeerResult)}\n`, () => process.exit(0));
}

/** The library refuses a good answer now and then: then again with a new connection. */
async function connect(proxyUrl: string, triesLeft = 5): Promise<{ channel: DataChannel; answer: string }> {
  const connection = new PeerConnection("peer", { iceServers: [] });
  const gathered = new Promise<void>((resolve) =>
    connection.onGatheringStateChange((state) => state === "complete" && resolve()),
  );
  const channel = connection.createDataChannel("mutp", { unordered: true, maxRetransmits: 0 });
  const opened = new Promise<void>((resolve) => channel.onOpen(resolve));
  await gathered;
  const response = await fetch(`${proxyUrl}/v1/sessions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ sdp: connection.localDescription()!.sdp }),
  });
  if (response.status !== 201) throw new Error(`the proxy answered ${response.status} ${await response.text()}`);
  const { sdp } = (await response.json()) as { sdp: string };
  try {
    connection.setRemoteDescription(sdp, "answer");
  } catch (error) {
    if (triesLeft === 0) throw error;
    connection.close();
    return await connect(proxyUrl, triesLeft - 1);
  }
  await opened;
  return { channel, answer: sdp };
}

async function download(channel: DataChannel, url: string, mode: MutpMode): Promise<Omit<PeerResult, "candidates">> {
  const startMs = performance.now();
  const receiver = new Receiver({
    requestId: 1,
    url,
    mode,
    proxyCount: 1,
    codec: loadCodec(loadWasmCodec),
    nowMs: startMs,
  });
  const hash = createHash("sha256");
  const result = {
    status: undefined as number | undefined,
    bytes: 0,
    failure: undefined as Rejection | undefined,
    durationMs: 0,
  };
  const pump = (): void => {
    const poll = () => receiver.pollTransmit(performance.now());
    for (let next = poll(); next; next = poll()) channel.sendMessageBinary(next.bytes);
    for (let event = receiver.pollEvent(); event; event = receiver.pollEvent()) {
      if (event.kind === "head") result.status = event.head.status;
      if (event.kind === "bytes") hash.update(event.bytes);
      if (event.kind === "bytes") result.bytes += event.bytes.length;
      if (event.kind === "complete") result.durationMs = performance.now() - startMs;
      if (event.kind === "failed") result.failure = event.rejection;
    }
  };
  channel.onMessage((message) => {
    receiver.handleFrame(0, Buffer.from(message as Buffer), performance.now());
    pump();
  });
  channel.onClosed(() => receiver.handleProxyLost(0, "channel closed", performance.now()));
  receiver.handleProxyReady(0, performance.now());
  while (!receiver.finished && performance.now() - startMs < DOWNLOAD_MS_MAX) {
    pump();
    await new Promise((resolve) => setTimeout(resolve, 2));
    if ((receiver.pollTimeout() ?? Infinity) <= performance.now()) receiver.handleTimeout(performance.now());
  }
  return { ...result, sha256: hash.digest("hex"), stats: receiver.stats() };
}

void main(process.argv.slice(2));
