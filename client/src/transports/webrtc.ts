/**
 * A channel over WebRTC, the same in a browser and in Node. It uses one data channel. Each message is one packet, and a
 * longer message travels in pieces.
 */
import { Fragmenter, LIMITS, Reassembler } from "@tributary/protocol";
import type { Channel, ChannelOptions, Transport } from "../platform";

export type DataChannelOptions = Pick<ChannelOptions, "proxy" | "sendOffer" | "signal" | "onMessage" | "onClosed">;

/** Opens one data channel for packets of at most `LIMITS.channelMessageBytesMax` bytes. */
export type OpenDataChannel = (options: DataChannelOptions) => Promise<Channel>;

export function webRtcOver(open: OpenDataChannel): Transport {
  return { name: "webrtc", reaches: () => true, open: (options) => openChannel(open, options) };
}

async function openChannel(
  open: OpenDataChannel,
  { proxy, sendOffer, signal, onMessage, onClosed }: ChannelOptions,
): Promise<Channel> {
  const [fragmenter, reassembler] = [new Fragmenter(), new Reassembler()];
  const channel = await open({
    proxy,
    sendOffer,
    signal,
    onClosed,
    onMessage: (packet) => {
      const message = reassembler.accept(packet);
      if (message) onMessage(message);
    },
  });
  return {
    send: (bytes) => fragmenter.split(bytes, LIMITS.channelMessageBytesMax).every((piece) => channel.send(piece)),
    close: () => channel.close(),
  };
}
