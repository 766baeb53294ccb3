/**
 * WebRTC edge: sessions of clients that come with an offer, all on one UDP port. The client makes the data channel; the
 * proxy answers once, with all its candidates. The native part serves them (rtc-native.ts), or a library where there is
 * none (rtc-library.ts). Knows no frames: that is session.ts.
 */
import dgram from "node:dgram";
import { isIP } from "node:net";
import type { NativeTransport } from "@tributary/native-transport";
import type { OpenSession } from "./channel";
import { LibraryRtc } from "./rtc-library";
import { NativeRtc } from "./rtc-native";

export interface RtcOptions {
  /** Where to listen: an IP address. */
  host: string;
  /** A port that was free a moment ago. */
  udpPort: number;
  /** An address and port told to clients in addition to those of this machine. */
  publicAddress: string | undefined;
  publicUdpPort: number | undefined;
}

export interface Rtc {
  /** Those that are being made, too. */
  readonly connectionCount: number;
  /**
   * Answers `offer`; rejects with an `OfferError`. `onSession` is called when the client's channel opens. Of a
   * connection that is over, or that nothing came of, nothing is left.
   */
  accept(id: string, offer: string, onSession: OpenSession): Promise<string>;
  close(): void;
}

/** The offer was not one this proxy can answer. */
export class OfferError extends Error {}

/** Throws when the UDP port is taken. */
export function startRtc(
  options: RtcOptions,
  native: NativeTransport | undefined,
  onWarning: (message: string) => void,
): Rtc {
  return native ? new NativeRtc(native, options) : new LibraryRtc(options, onWarning);
}

/** A UDP port that is free now; `port` itself unless it is 0. Rejects when it is taken. */
export function pickUdpPort(port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = dgram.createSocket(isIP(host) === 6 ? "udp6" : "udp4");
    socket.once("error", (error) => {
      socket.close();
      reject(error);
    });
    socket.bind(port, host, () => {
      const bound = socket.address().port;
      socket.close(() => resolve(bound));
    });
  });
}
