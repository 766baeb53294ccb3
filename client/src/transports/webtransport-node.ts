/** WebTransport in Node, by the native part (@tributary/native-transport). */
import { loadNativeTransport, type WebTransportClient } from "@tributary/native-transport";
import type { Transport } from "../platform";
import { withFirst } from "./webtransport";

let client: WebTransportClient | undefined;
let isTried = false;

/** Returns the native client. It is loaded once, on first use. */
function clientHere(): WebTransportClient | undefined {
  if (!isTried) client = loadNativeTransport().native?.client();
  isTried = true;
  return client;
}

export const nodeWebTransport: Transport = {
  name: "webtransport",
  reaches: ({ webTransport }) => webTransport !== undefined && clientHere() !== undefined,
  open: async ({ proxy, first, signal, onMessage, onClosed }) => {
    const { url, certificateHashes } = proxy.webTransport!;
    const channel = await clientHere()!.connect({
      url: withFirst(url, first),
      certificateHashes,
      signal,
      onMessage,
      onClosed,
      onWritable: () => undefined,
    });
    return { send: (bytes) => channel.send(bytes), close: () => channel.close("closed") };
  },
};
