/**
 * Channel: the interface between a session and its transport, which is WebRTC (rtc.ts), WebTransport (webtransport.ts)
 * or plain UDP (udp.ts).
 */
import type { ChannelHandlers as NativeHandlers, SessionStats, TransportChannel } from "@tributary/native-transport";

export type TransportName = "webrtc" | "webtransport" | "udp";

/** An unreliable, unordered path for messages of up to 16,384 bytes to one client. */
export interface Channel {
  readonly transport: TransportName;
  /** Copies the message. False when the transport did not take it; the message is then lost, which is allowed. */
  send(bytes: Uint8Array): boolean;
  /**
   * How many bytes may be sent now so that the queue stays short. At 0 or below, wait for `handleWritable`. Below 0,
   * the queue is too long by this many bytes.
   */
  readonly room: number;
  /** What the transport measures. Undefined when it measures nothing. */
  stats(): SessionStats | undefined;
  close(reason: string): void;
}

/** The calls that a transport makes to its session. */
export interface ChannelHandlers {
  handleMessage(bytes: Uint8Array): void;
  handleWritable(): void;
  /** The channel is gone. This is not called after the session's own `close`. */
  handleClosed(reason: string): void;
}

/** `address`: the IP address at the other end. */
export type OpenSession = (channel: Channel, address: string) => ChannelHandlers;

/** Wraps a channel of the native part. */
export function nativeChannel(transport: TransportName, channel: TransportChannel): Channel {
  return {
    transport,
    send: (bytes) => channel.send(bytes),
    get room() {
      return channel.room;
    },
    stats: () => channel.stats(),
    close: (reason) => channel.close(reason),
  };
}

export function nativeHandlers(handlers: ChannelHandlers): NativeHandlers {
  return {
    onMessage: (message) => handlers.handleMessage(message),
    onWritable: () => handlers.handleWritable(),
    onClosed: (reason) => handlers.handleClosed(reason),
  };
}
