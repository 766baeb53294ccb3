/**
 * WebRTC edge: chooses the server of the sessions. It is the native part if that is built (rtc-native.ts), and
 * otherwise the library (rtc-library.ts).
 */
import dgram from "node:dgram";
import { isIP } from "node:net";
import type { NativeTransport } from "@tributary/native-transport";
import { LibraryRtc } from "./rtc-library";
import { NativeRtc } from "./rtc-native";
import type { Rtc, RtcOptions } from "./rtc-server";

/** Throws when the UDP port is taken. */
export function startRtc(
  options: RtcOptions,
  native: NativeTransport | undefined,
  onWarning: (message: string) => void,
): Rtc {
  return native ? new NativeRtc(native, options) : new LibraryRtc(options, onWarning);
}

/** Finds a free UDP port if `port` is 0. Otherwise gives `port`, or rejects when it is taken. */
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
