/** WebTransport in Node, where its native part is built (@tributary/webtransport). */
import { loadWebTransport, type WebTransportClient } from "@tributary/webtransport";
import type { Transport } from "../platform";

let client: WebTransportClient | undefined;
let isTried = false;

/** Loaded once, when first asked for. */
function clientHere(): WebTransportClient | undefined {
  if (!isTried) client = loadWebTransport().webTransport?.client();
  isTried = true;
  return client;
}

export const nodeWebTransport: Transport = {
  name: "webtransport",
  reaches: ({ webTransport }) => webTransport !== undefined && clientHere() !== undefined,
  open: async ({ proxy, signal, onMessage, onClosed }) => {
    const channel = await clientHere()!.connect({ ...proxy.webTransport!, signal, onMessage, onClosed, onWritable: () => undefined });
    return {
      send: (bytes) => channel.send(bytes),
      signals: () => Promise.resolve(channel.stats()),
      close: () => channel.close("closed"),
    };
  },
};
