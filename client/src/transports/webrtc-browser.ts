/** WebRTC in a browser. RTCPeerConnection exists only in documents, so this does not run in a worker. */
import { collectWhileBusy } from "../collect-browser";
import { Refused } from "../errors";
import type { Channel, Transport } from "../platform";
import { isPathClear } from "./browser-proxy";
import { webRtcOver, type DataChannelOptions } from "./webrtc";

/** This machine's candidates are found within milliseconds. The proxy can answer without them. */
const GATHERING_MS_MAX = 500;

/** WebTransport heeds the browser's own proxy, so WebRTC stands in only where a proxy offers no WebTransport. */
export const browserWebRtc: Transport = { ...webRtcOver(open), isStandIn: true };

async function open(options: DataChannelOptions): Promise<Channel> {
  const peer = new RTCPeerConnection();
  const channel = peer.createDataChannel("mutp", { ordered: false, maxRetransmits: 0 });
  channel.binaryType = "arraybuffer";
  channel.onmessage = ({ data }) => {
    if (data instanceof ArrayBuffer) options.onMessage(new Uint8Array(data));
    collectWhileBusy();
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
  return { send: (message) => trySend(channel, message), close };
}

async function negotiate(
  peer: RTCPeerConnection,
  channel: RTCDataChannel,
  { proxy, sendOffer, signal }: DataChannelOptions,
): Promise<void> {
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
    const sdp = await sendOffer(peer.localDescription!.sdp);
    // No packet leaves before the answer is set.
    if (!(await isPathClear(proxy, sdp))) throw new Refused("packets would go beside the proxy that the browser uses");
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

function trySend(channel: RTCDataChannel, message: Uint8Array): boolean {
  if (channel.readyState !== "open") return false;
  try {
    channel.send(message as Uint8Array<ArrayBuffer>);
    return true;
  } catch {
    return false;
  }
}
