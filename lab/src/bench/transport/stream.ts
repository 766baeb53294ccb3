/**
 * A stream of datagrams that always has more to send, over WebTransport and nothing above it: what is left to see is the
 * congestion control. `serve HOST` prints its address as a line of JSON and feeds whoever connects; `take ADDRESS SECONDS`
 * connects to it, takes for so long, and prints what came.
 */
import { WebTransportEdge } from "@tributary/proxy";
import type { Channel } from "@tributary/proxy";
import { loadWebTransport } from "@tributary/webtransport";
import type { WebTransport } from "@tributary/webtransport";

const MESSAGE = new Uint8Array(1156);
/** Messages of one turn of the event loop. */
const TURN_MESSAGES = 64;

function loaded(): WebTransport {
  const result = loadWebTransport();
  if (!result.webTransport) throw new Error(result.reason);
  return result.webTransport;
}

function feed(channel: Channel, isOver: () => boolean): void {
  for (let count = 0; count < TURN_MESSAGES && !isOver(); count++) {
    if (channel.room <= 0) return;
    channel.send(MESSAGE);
  }
  if (!isOver()) setImmediate(() => feed(channel, isOver));
}

function serve(host: string): void {
  const edge = new WebTransportEdge(loaded(), {
    host, port: 0, name: host, sessionsMax: 64, onRotated: () => undefined,
    onSession: (channel) => {
      let over = false;
      const go = (): void => feed(channel, () => over);
      return { handleMessage: go, handleWritable: go, handleClosed: () => (over = true) };
    },
  });
  console.log(JSON.stringify(edge.address(`${host}:${edge.port}`)));
}

async function take(address: string, seconds: number): Promise<void> {
  let messages = 0;
  const { url, certificateHashes } = JSON.parse(address) as { url: string; certificateHashes: string[] };
  const channel = await loaded().client().connect({
    url, certificateHashes, onMessage: () => messages++, onWritable: () => undefined, onClosed: () => undefined,
  });
  channel.send(Uint8Array.of(1));
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  console.log(JSON.stringify({ messages }));
  channel.close("enough");
  setTimeout(() => process.exit(0), 50);
}

const [role, ...words] = process.argv.slice(2);
if (role === "serve") serve(words[0]!);
else if (role === "take") void take(words[0]!, Number(words[1]));
else throw new Error(`stream: got ${role}, known: serve, take`);
