/**
 * The door to the native transports on Node. They are optional: `loadNativeTransport` says why they are missing. They
 * carry sessions over HTTP/3 datagrams (`WebTransportServer`, `WebTransportClient`) and over WebRTC (`RtcServer`,
 * `RtcClient`).
 */
import { loadAddon, type Addon, type Congestion, type CongestionControl } from "./addon";
import { RtcClient, RtcServer } from "./webrtc";
import { WebTransportClient, WebTransportServer, type ServerOptions } from "./webtransport";

export type { Congestion, CongestionControl, IceCredentials, RtcAnswer, SessionStats } from "./addon";
export type { ChannelHandlers, TransportChannel } from "./channel";
export { fingerprintLine, readFingerprint, sdpValue } from "./sdp";
export { drawIceCredentials, type AwaitedClient, type RtcClient, type RtcServer } from "./webrtc";
export type { WebTransportClient, WebTransportServer } from "./webtransport";

/** The native part, or the reason why it is missing, in one sentence for a log. */
export type NativeTransportResult =
  { readonly native: NativeTransport } | { readonly native: undefined; readonly reason: string };

export function loadNativeTransport(): NativeTransportResult {
  const addon = loadAddon();
  return typeof addon === "string" ? { native: undefined, reason: addon } : { native: new NativeTransport(addon) };
}

export class NativeTransport {
  readonly #addon: Addon;

  constructor(addon: Addon) {
    this.#addon = addon;
  }

  /** Throws when the port is taken. */
  listen(options: ServerOptions): WebTransportServer {
    return new WebTransportServer(this.#addon, options);
  }

  /** Throws when the port is taken. */
  listenRtc(host: string, port: number): RtcServer {
    return new RtcServer(this.#addon, host, port);
  }

  client(congestion: Congestion = "delivery"): WebTransportClient {
    return new WebTransportClient(this.#addon, congestion);
  }

  rtcClient(): RtcClient {
    return new RtcClient(this.#addon);
  }

  congestionControl(packetBytes: number): CongestionControl {
    return new this.#addon.CongestionControl(packetBytes);
  }
}
