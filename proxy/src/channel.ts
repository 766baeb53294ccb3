/**
 * What a session knows of its transport, and a transport of its session: one interface for WebRTC (rtc.ts),
 * WebTransport (webtransport.ts) and plain UDP (udp.ts).
 */

import type { ChannelHandlers as NativeHandlers, TransportChannel } from "@tributary/native-transport";

export type TransportName = "webrtc" | "webtransport" | "udp";

/** An unreliable, unordered path for messages of up to 16,384 bytes to one client. */
export interface Channel {
  readonly transport: TransportName;
  /** Copies the message. False when it was not taken; it is then lost, which the protocol survives. */
  send(bytes: Uint8Array): boolean;
  /**
   * Bytes that may be sent now without more than a short queue. Not above 0: wait for `handleWritable`. Below 0: that
   * much is queued beyond.
   */
  readonly room: number;
  /** What the transport knows of delivery, where it does. */
  signals(): DeliverySignals | undefined;
  close(reason: string): void;
}

export interface DeliverySignals {
  /** Smoothed. */
  rttMs: number;
  sentPackets: number;
  lostPackets: number;
  /** Congestion window. */
  windowBytes: number;
}

/** Where a transport brings what it gets for a session. */
export interface ChannelHandlers {
  handleMessage(bytes: Uint8Array): void;
  handleWritable(): void;
  /** The channel is gone; not after one's own `close`. */
  handleClosed(reason: string): void;
}

export type OpenSession = (channel: Channel) => ChannelHandlers;

/** A channel of the native part. */
export function nativeChannel(transport: TransportName, channel: TransportChannel): Channel {
  return {
    transport,
    send: (bytes) => channel.send(bytes),
    get room() {
      return channel.room;
    },
    signals: () => channel.stats(),
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
