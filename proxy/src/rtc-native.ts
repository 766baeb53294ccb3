/** WebRTC edge over the native part. Its SCTP uses the same congestion control as WebTransport. */
import { isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";
import {
  drawIceCredentials,
  type AwaitedClient,
  type NativeTransport,
  type RtcServer,
} from "@tributary/native-transport";
import { nativeChannel, nativeHandlers, type OpenSession } from "./channel";
import { OfferError, type Rtc, type RtcOptions } from "./rtc-server";
import { answerSdp, readOffer } from "./sdp";

export class NativeRtc implements Rtc {
  readonly #server: RtcServer;
  readonly #awaited = new Map<string, AwaitedClient>();

  readonly #options: RtcOptions;

  /** Throws when the UDP port is taken. */
  constructor(native: NativeTransport, options: RtcOptions) {
    this.#options = options;

    this.#server = native.listenRtc(options.host, options.udpPort);
  }

  get connectionCount(): number {
    return this.#server.sessionCount;
  }

  async accept(id: string, offer: string, onSession: OpenSession, onFailed?: () => void): Promise<string> {
    const read = readOffer(offer);
    if (!read)
      throw new OfferError("The offer is not an SDP with one data channel section that this proxy can answer.");
    const { ufrag, password } = drawIceCredentials();
    const awaited = this.#server.accept({
      fingerprint: read.fingerprint,
      ufrag,
      password,
      onSession: (channel) => {
        this.#awaited.delete(id);
        return nativeHandlers(onSession(nativeChannel("webrtc", channel), channel.address));
      },
      onFailed: () => {
        this.#awaited.delete(id);
        onFailed?.();
      },
    });
    this.#awaited.set(id, awaited);
    const { fingerprint } = awaited;
    return answerSdp({ id, mid: read.mid, ufrag, password, fingerprint, candidates: this.#candidates() });
  }

  giveUp(id: string): void {
    this.#awaited.get(id)?.giveUp();
    this.#awaited.delete(id);
  }

  close(): void {
    this.#server.close();
  }

  #candidates(): { address: string; port: number }[] {
    const { host, udpPort, publicAddress, publicUdpPort } = this.#options;
    const own = (host === "0.0.0.0" || host === "::" ? ownAddresses(host) : [host]).map((address) => ({
      address,
      port: udpPort,
    }));
    if (publicAddress === undefined) return own;
    const open = { address: publicAddress, port: publicUdpPort ?? udpPort };
    return [...own.filter(({ address, port }) => address !== open.address || port !== open.port), open];
  }
}

/** The addresses of this machine. Loopback addresses are included only if there are no others. */
function ownAddresses(host: string): string[] {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const fitting = all.filter(({ address }) => (host === "::" || !isIPv6(address)) && !address.startsWith("fe80"));
  const outer = fitting.filter(({ internal }) => !internal);
  return (outer.length > 0 ? outer : fitting).map(({ address }) => address);
}
