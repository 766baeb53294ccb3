/** Opens the proxy's end of each transport for the conformance suite. An echo answers in place of sessions. */
import { pickUdpPort, startRtc, UdpEdge, WebTransportEdge, type Channel, type OpenSession } from "@tributary/proxy";
import type { ProxyInfo } from "@tributary/client";
import { LIMITS } from "@tributary/protocol";
import { loadNativeTransport } from "@tributary/native-transport";

/** The first byte of a message tells the echo to return it, to close the channel, or to send FLOOD_MESSAGES. */
export const ECHO = 1;
export const CLOSE = 2;
export const FLOOD = 3;
export const FLOOD_MESSAGES = 2000;
export const FLOOD_BYTES = LIMITS.channelMessageBytesMax;

export interface Edge {
  readonly proxy: ProxyInfo;
  /** The port where the edge listens. Tests send garbage to it. */
  readonly udpPort: number;
  /** True if this is WebRTC by node-datachannel. */
  readonly isLibrary: boolean;
  sendOffer(offer: string): Promise<string>;
  /** The reasons that the edge gave when channels ended. */
  readonly ends: string[];
  readonly openCount: number;
  close(): void;
}

const HOST = "127.0.0.1";
const SESSIONS_MAX = 32;

/** With `withLibrary`, WebRTC ignores the native part. */
export async function openEdge(name: "webrtc" | "webtransport" | "udp", withLibrary = false): Promise<Edge> {
  const ends: string[] = [];
  const open = new Set<Channel>();
  const onSession: OpenSession = (channel) => {
    open.add(channel);
    return echoOf(channel, (reason) => {
      open.delete(channel);
      ends.push(reason);
    });
  };
  const loaded = loadNativeTransport();
  const rtcNative = withLibrary ? undefined : loaded.native;
  const common = {
    ends,
    isLibrary: name === "webrtc" && rtcNative === undefined,
    get openCount() {
      return open.size;
    },
    sendOffer: () => Promise.reject(new Error("this transport has no signalling")),
  };
  const proxy: ProxyInfo = { id: name, name, url: "http://127.0.0.1:1" };
  if (name === "udp") {
    const edge = await UdpEdge.listen({ host: HOST, port: 0, sessionsMax: SESSIONS_MAX, onSession });
    return Object.assign(common, {
      proxy: { ...proxy, udp: { host: HOST, port: edge.port } },
      udpPort: edge.port,
      close: () => edge.close(),
    });
  }
  if (name === "webtransport") {
    if (!loaded.native) throw new Error(loaded.reason);
    const edge = new WebTransportEdge(loaded.native, {
      host: HOST,
      port: 0,
      name: HOST,
      sessionsMax: SESSIONS_MAX,
      onSession,
      onRotated: () => undefined,
    });
    return Object.assign(common, {
      proxy: { ...proxy, webTransport: edge.address(`${HOST}:${edge.port}`) },
      udpPort: edge.port,
      close: () => edge.close(),
    });
  }
  const udpPort = await pickUdpPort(0, HOST);
  const edge = startRtc(
    { host: HOST, udpPort, publicAddress: undefined, publicUdpPort: undefined },
    rtcNative,
    () => undefined,
  );
  let offers = 0;
  const sendOffer = (offer: string): Promise<string> => edge.accept(`${++offers}`, offer, onSession);
  return Object.assign(common, { proxy, udpPort, sendOffer, close: () => edge.close() });
}

function echoOf(channel: Channel, onEnd: (reason: string) => void): ReturnType<OpenSession> {
  let left = 0;
  const flood = (): void => {
    for (; left > 0 && channel.room > 0; left--) channel.send(new Uint8Array(FLOOD_BYTES).fill(left & 0xff, 1));
    // A full queue announces when it has room again. The timer continues the flood if that event is lost.
    if (left > 0) setTimeout(flood, 5);
  };
  return {
    handleMessage: (bytes) => {
      if (bytes[0] === ECHO) channel.send(bytes.slice());
      else if (bytes[0] === CLOSE) {
        channel.close("asked to");
        onEnd("asked to");
      } else if (bytes[0] === FLOOD && left === 0) {
        left = FLOOD_MESSAGES;
        flood();
      }
    },
    handleWritable: flood,
    handleClosed: onEnd,
  };
}
