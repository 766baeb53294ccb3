/**
 * Downloads one chunk from one proxy, over one WebRTC session, without fallback: `node peer.mjs PROXY_URL URL MODE`.
 * Prints one JSON line, `PeerResult` of main.test.ts. The test runs it as a process because the WebRTC library cannot
 * be unloaded.
 */
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { performance } from "node:perf_hooks";

const require = createRequire(import.meta.url);
const { loadCodec } = require("@tributary/native-codec");
const { Receiver } = require("@tributary/protocol");
const { loadWasmCodec } = require("@tributary/wasm-codec/node");
const { PeerConnection } = require("node-datachannel");

const DOWNLOAD_MS_MAX = 30_000;

async function main([proxyUrl, url, mode]) {
  const { channel, answer } = await connect(proxyUrl);
  const result = await download(channel, url, mode);
  const candidates = answer.split("\r\n").filter((line) => line.startsWith("a=candidate:"));
  process.stdout.write(`${JSON.stringify({ ...result, candidates })}\n`, () => process.exit(0));
}

/** The library sometimes refuses a good answer. Then this tries again with a new connection. */
async function connect(proxyUrl, triesLeft = 5) {
  const connection = new PeerConnection("peer", { iceServers: [] });
  const gathered = new Promise((resolve) =>
    connection.onGatheringStateChange((state) => state === "complete" && resolve()),
  );
  const channel = connection.createDataChannel("mutp", { unordered: true, maxRetransmits: 0 });
  const opened = new Promise((resolve) => channel.onOpen(resolve));
  await gathered;
  const response = await fetch(`${proxyUrl}/v1/sessions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ sdp: connection.localDescription().sdp }),
  });
  if (response.status !== 201) throw new Error(`the proxy answered ${response.status} ${await response.text()}`);
  const { sdp } = await response.json();
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

async function download(channel, url, mode) {
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
  const result = { status: undefined, bytes: 0, failure: undefined, durationMs: 0 };
  const pump = () => {
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
    receiver.handleFrame(0, Buffer.from(message), performance.now());
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
