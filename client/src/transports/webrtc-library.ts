/**
 * WebRTC in Node without the native part, by node-datachannel. A process that used it must end by `process.exit()`
 * (node.ts says why).
 */
import { PeerConnection, type DataChannel } from "node-datachannel";
import type { Channel } from "../platform";
import { webRtcOver, type DataChannelOptions } from "./webrtc";

const GATHERING_MS_MAX = 500;

export const libraryWebRtc = webRtcOver(open);

function open({ sendOffer, signal, onMessage, onClosed }: DataChannelOptions): Promise<Channel> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    const peer = new PeerConnection("tributary", { iceServers: [] });
    let state: "opening" | "open" | "ended" = "opening";

    const end = (): void => {
      state = "ended";
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      channel.close();
      peer.close();
    };
    const fail = (reason: unknown): void => {
      if (state === "ended") return;
      const wasOpen = state === "open";
      end();
      if (wasOpen) onClosed(String(reason));
      else reject(reason instanceof Error ? reason : new Error(String(reason)));
    };
    const onAbort = (): void => {
      if (state === "opening") fail(signal.reason);
    };
    const offer = once(() => {
      const sdp = peer.localDescription()?.sdp;
      if (state !== "opening" || !sdp) return;
      sendOffer(sdp)
        .then((answer) => {
          if (state === "opening") peer.setRemoteDescription(answer, "answer");
        })
        .catch(fail);
    });
    const timer = setTimeout(offer, GATHERING_MS_MAX);

    signal.addEventListener("abort", onAbort);
    peer.onGatheringStateChange((gathering) => gathering === "complete" && offer());
    peer.onStateChange((connection) => {
      if (connection === "failed" || connection === "closed") fail(`the connection is ${connection}`);
    });
    const channel = peer.createDataChannel("mutp", { unordered: true, maxRetransmits: 0 });
    channel.onMessage((message) => {
      if (state !== "ended" && typeof message !== "string") onMessage(new Uint8Array(message));
    });
    channel.onClosed(() => fail("the data channel was closed"));
    channel.onError((error) => fail(`the data channel failed: ${error}`));
    channel.onOpen(() => {
      if (state !== "opening") return;
      state = "open";
      signal.removeEventListener("abort", onAbort);
      resolve({ send: (message) => trySend(channel, message), close: () => state === "open" && end() });
    });
  });
}

function trySend(channel: DataChannel, message: Uint8Array): boolean {
  try {
    return channel.isOpen() && channel.sendMessageBinary(message);
  } catch {
    return false;
  }
}

function once(task: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    task();
  };
}
