/**
 * How fast the proxy's endpoints feed Chromium over loopback: WebTransport into a Worker, a data channel into a page,
 * and plain HTTP into a Worker for comparison.
 */
import { createServer } from "node:http";
import type { ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import { pipeline, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { pickUdpPort, startRtc, WebTransportEdge } from "@tributary/proxy";
import type { OpenSession } from "@tributary/proxy";
import { loadNativeTransport } from "@tributary/native-transport";
import { openBrowser } from "@tributary/lab-stack";
import { watchIdleShare } from "../kit/machine";
import { LOOPBACK_MESSAGE_BYTES } from "./report";
import type { Loopback } from "./rows";

const TURN_MESSAGES = 400;

const onSession: OpenSession = (channel) => {
  let [isWanted, sequence] = [false, 0];
  const message = Buffer.alloc(LOOPBACK_MESSAGE_BYTES);
  const feed = (): void => {
    for (let count = 0; isWanted && count < TURN_MESSAGES && channel.room > 0; count++) {
      message.writeUInt32BE(sequence++);
      channel.send(message);
    }
    if (isWanted && channel.room > 0) setImmediate(feed);
  };
  return {
    handleMessage: ([word]) => {
      isWanted = word === 1;
      feed();
    },
    handleWritable: feed,
    handleClosed: () => void (isWanted = false),
  };
};

/** One second to settle, three to count. */
const COUNTING = `
  const counting = () => {
    const startMs = performance.now();
    let bytes = 0, fromMs = 0, lastMs = 0;
    return {
      add: (count) => {
        const now = performance.now();
        if (now - startMs < 1000) return;
        fromMs ||= now;
        lastMs = now;
        bytes += count;
      },
      isOver: () => performance.now() - startMs > 4000,
      mbPerSec: () => bytes / (lastMs - fromMs) / 1000,
    };
  };`;

const WEBTRANSPORT_IN_WORKER = `${COUNTING}
const run = async ({ url, certificateHashes }) => {
  const startMs = performance.now();
  const bytesOf = (hex) => Uint8Array.from(hex.match(/../g), (pair) => parseInt(pair, 16));
  const serverCertificateHashes = certificateHashes.map((hash) => ({ algorithm: "sha-256", value: bytesOf(hash) }));
  const session = new WebTransport(url, { serverCertificateHashes });
  await session.ready;
  const setUpMs = performance.now() - startMs;
  session.datagrams.incomingHighWaterMark = 4096;
  const writer = (session.datagrams.createWritable?.() ?? session.datagrams.writable).getWriter();
  const reader = session.datagrams.readable.getReader();
  writer.write(Uint8Array.of(1));
  const count = counting();
  while (!count.isOver()) count.add((await reader.read()).value.length);
  session.close();
  return { mbPerSec: count.mbPerSec(), setUpMs };
};`;

const HTTP_IN_WORKER = `${COUNTING}
const run = async ({ url }) => {
  const startMs = performance.now();
  const reader = (await fetch(url)).body.getReader();
  const setUpMs = performance.now() - startMs;
  const count = counting();
  while (!count.isOver()) count.add((await reader.read()).value.length);
  await reader.cancel();
  return { mbPerSec: count.mbPerSec(), setUpMs };
};`;

/** The script's `run`, in a Worker. */
const workerRun = (script: string, address: object): string => `new Promise((resolve, reject) => {
  const text = ${JSON.stringify(`${script}
onmessage = ({ data }) =>
  run(data).then((result) => postMessage({ result }), (error) => postMessage({ problem: String(error) }));`)};
  const worker = new Worker(URL.createObjectURL(new Blob([text])));
  worker.onmessage = ({ data: { result, problem } }) => {
    worker.terminate();
    if (result) resolve(result);
    else reject(new Error(problem));
  };
  worker.postMessage(${JSON.stringify(address)});
})`;

const WEBRTC_RUN = `(async () => {${COUNTING}
  const startMs = performance.now();
  const peer = new RTCPeerConnection();
  const channel = peer.createDataChannel("mutp", { ordered: false, maxRetransmits: 0 });
  channel.binaryType = "arraybuffer";
  const opened = new Promise((resolve) => (channel.onopen = resolve));
  await peer.setLocalDescription(await peer.createOffer());
  const isGathered = () => peer.iceGatheringState === "complete";
  if (!isGathered())
    await new Promise((resolve) => (peer.onicegatheringstatechange = () => isGathered() && resolve()));
  const offer = peer.localDescription.sdp.replace(/a=max-message-size:\\d+/, "a=max-message-size:16384");
  const sdp = await (await fetch("/", { method: "POST", body: offer })).text();
  await peer.setRemoteDescription({ type: "answer", sdp });
  await opened;
  const setUpMs = performance.now() - startMs;
  const count = counting();
  channel.onmessage = ({ data }) => count.add(data.byteLength);
  channel.send(Uint8Array.of(1));
  await new Promise((resolve) => setTimeout(resolve, 4000));
  peer.close();
  return { mbPerSec: count.mbPerSec(), setUpMs };
})()`;

const PIECE = Buffer.alloc(64 * 1024);

/** An endless body, sent as fast as it is read. */
function pour(response: ServerResponse): void {
  const endless = new Readable({ read: () => void endless.push(PIECE) });
  pipeline(endless, response, () => undefined);
}

export async function measureLoopback(runs: number, print: (line: string) => void): Promise<Loopback[]> {
  const { native } = loadNativeTransport();
  if (!native) throw new Error("the native transport is not built");
  const host = "127.0.0.1";
  const edge = new WebTransportEdge(native, {
    host,
    port: 0,
    name: host,
    sessionsMax: 8,
    onSession,
    onRotated: () => undefined,
  });
  const rtc = startRtc(
    { host, udpPort: await pickUdpPort(0, host), publicAddress: undefined, publicUdpPort: undefined },
    native,
    () => undefined,
  );
  let sessions = 0;
  const server = createServer((request, response) => {
    if (request.url === "/body") return pour(response);
    response.setHeader("content-type", "text/html");
    if (request.method !== "POST") return void response.end("<p>loopback");
    void text(request).then(async (offer) => response.end(await rtc.accept(`${++sessions}`, offer, onSession)));
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const open = await openBrowser({ headless: true });
  try {
    const page = await open.browser.newPage();
    const site = `http://${host}:${(server.address() as AddressInfo).port}/`;
    await page.goto(site);
    const scripts = [
      ["webtransport", workerRun(WEBTRANSPORT_IN_WORKER, edge.address(`${host}:${edge.port}`))],
      ["webrtc", WEBRTC_RUN],
      ["http", workerRun(HTTP_IN_WORKER, { url: `${site}body` })],
    ] as const;
    const results: Loopback[] = [];
    for (let run = 0; run < runs; run++) {
      for (const [transport, script] of scripts) {
        const [startedMs, idleShare, before] = [performance.now(), watchIdleShare(), process.cpuUsage()];
        const seen = (await page.evaluate(script)) as Pick<Loopback, "mbPerSec" | "setUpMs">;
        const { user, system } = process.cpuUsage(before);
        const senderCores = (user + system) / 1000 / (performance.now() - startedMs);
        const result: Loopback = { transport, ...seen, busyCores: os.cpus().length * (1 - idleShare()), senderCores };
        print(
          `  ${transport}: ${result.mbPerSec.toFixed(1)} MB/s, set up in ${result.setUpMs.toFixed(0)} ms, ` +
            `${result.busyCores.toFixed(1)} cores busy, of which the sender ${senderCores.toFixed(1)}`,
        );
        results.push(result);
      }
    }
    return results;
  } finally {
    await open.close();
    edge.close();
    rtc.close();
    server.close();
  }
}
