/**
 * A stream of datagrams that always has more to send, over WebTransport or WebRTC and nothing above it: what is left to
 * see is the congestion control. `serve TRANSPORT HOST` prints its address as a line of JSON and feeds whoever
 * connects; `take TRANSPORT ADDRESS SECONDS` connects to it, takes for so long, and prints what came.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { nodeTransports } from "@tributary/client/node";
import type { ProxyInfo } from "@tributary/client";
import { LIMITS } from "@tributary/protocol";
import { pickUdpPort, startRtc, WebTransportEdge } from "@tributary/proxy";
import type { Channel, OpenSession } from "@tributary/proxy";
import { loadNativeTransport } from "@tributary/native-transport";

/** One packet over either transport. */
const MESSAGE_BYTES = LIMITS.channelMessageBytesMax;
/** Messages of one turn of the event loop. */
const TURN_MESSAGES = 64;
const ASK_AGAIN_MS = 200;

/** Each message has its number: the highest that came tells how many were sent. */
function feed(channel: Channel, isOver: () => boolean): () => void {
  let sequence = 0;
  const go = (): void => {
    for (let count = 0; count < TURN_MESSAGES && !isOver(); count++) {
      if (channel.room <= 0) return;
      const message = Buffer.alloc(MESSAGE_BYTES);
      message.writeUInt32BE(sequence++);
      channel.send(message);
    }
    if (!isOver()) setImmediate(go);
  };
  return go;
}

const onSession: OpenSession = (channel) => {
  let over = false;
  const go = feed(channel, () => over);
  return { handleMessage: go, handleWritable: go, handleClosed: () => (over = true) };
};

async function serve(transport: string, host: string): Promise<void> {
  if (transport === "webrtc") return serveWebRtc(host);
  const loaded = loadNativeTransport();
  if (!loaded.native) throw new Error(loaded.reason);
  const edge = new WebTransportEdge(loaded.native, {
    host,
    port: 0,
    name: host,
    sessionsMax: 64,
    onRotated: () => undefined,
    onSession,
  });
  console.log(JSON.stringify({ webTransport: edge.address(`${host}:${edge.port}`) }));
}

async function serveWebRtc(host: string): Promise<void> {
  const rtc = startRtc(
    { host, udpPort: await pickUdpPort(0, host), publicAddress: undefined, publicUdpPort: undefined },
    loadNativeTransport().native,
    () => undefined,
  );
  let connections = 0;
  const server = createServer((request, response) => {
    void text(request).then(async (offer) => response.end(await rtc.accept(`${++connections}`, offer, onSession)));
  });
  server.listen(0, host, () =>
    console.log(JSON.stringify({ url: `http://${host}:${(server.address() as AddressInfo).port}` })),
  );
}

async function take(name: string, address: string, seconds: number): Promise<void> {
  let [messages, sent] = [0, 0];
  const transport = nodeTransports.find((each) => each.name === name)!;
  const proxy = { id: "stream", name: "stream", url: "", ...(JSON.parse(address) as object) } as ProxyInfo;
  const exchange = async (offer: string): Promise<string> =>
    (await fetch(proxy.url, { method: "POST", body: offer })).text();
  const onMessage = (bytes: Uint8Array): void => {
    messages++;
    sent = Math.max(sent, 1 + Buffer.from(bytes.buffer, bytes.byteOffset).readUInt32BE());
  };
  const channel = await transport.open({
    proxy,
    session: 1,
    sendOffer: exchange,
    signal: AbortSignal.timeout(10_000),
    onMessage,
    onClosed: () => undefined,
  });
  // Again until something comes: a datagram may be lost.
  const asking = setInterval(
    () => (messages > 0 ? clearInterval(asking) : channel.send(Uint8Array.of(1))),
    ASK_AGAIN_MS,
  );
  channel.send(Uint8Array.of(1));
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  clearInterval(asking);
  console.log(JSON.stringify({ messages, sent }));
  channel.close();
  setTimeout(() => process.exit(0), 50);
}

const [role, transport = "", ...words] = process.argv.slice(2);
if (role === "serve") void serve(transport, words[0]!);
else if (role === "take") void take(transport, words[0]!, Number(words[1]));
else throw new Error(`stream: got ${role}, known: serve, take`);
