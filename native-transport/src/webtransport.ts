/** WebTransport over HTTP/3 datagrams: the server, and the client. docs/spec/transport.md §3. */
import type { Addon, Congestion, NativeWebTransportClient, NativeWebTransportServer } from "./addon";
import type { ChannelHandlers, TransportChannel } from "./channel";
import { Hold, OutgoingSessions, Sessions } from "./sessions";

export interface ServerOptions {
  /** IP address to listen on. */
  host: string;
  /** 0 means any free port. */
  port: number;
  /** The address by which clients come. It goes into the certificates. */
  name: string;
  sessionsMax: number;
  /** Default `delivery`: docs/adr/0006-delivery-rate-window.md. */
  congestion?: Congestion;
  onSession(channel: TransportChannel): ChannelHandlers;
}

export class WebTransportServer {
  /** The path of the URL to which clients connect. */
  readonly path: string;
  readonly #native: NativeWebTransportServer;
  readonly #sessions: Sessions;
  readonly #hold = new Hold();

  /** Throws when the port is taken. */
  constructor(addon: Addon, { onSession, congestion = "delivery", ...options }: ServerOptions) {
    this.#sessions = new Sessions(() => this.#native, {
      opened: (_, channel) => (channel.handlers = onSession(channel)),
      failed: () => undefined,
    });
    this.#native = new addon.WebTransportServer({ ...options, congestion }, this.#sessions.wake);
    this.path = addon.path();
    this.#hold.set(true);
  }

  get port(): number {
    return this.#native.port;
  }

  /** SHA-256 in lower-case hex: of the certificate that is shown, and of the one that the next rotation will show. */
  get certificateHashes(): string[] {
    return this.#native.certificateHashes;
  }

  get sessionCount(): number {
    return this.#sessions.size;
  }

  /** New connections see the next certificate. Call it every few days: a certificate is valid for 11 days. */
  rotateCertificate(): void {
    this.#native.rotateCertificate();
  }

  /** Takes no new sessions. */
  drain(): void {
    this.#native.drain();
  }

  close(): void {
    this.#hold.set(false);
    this.#native.close();
  }
}

export interface ConnectOptions extends ChannelHandlers {
  url: string;
  /** SHA-256 in lower-case hex. The server must show a certificate with one of them. */
  certificateHashes: readonly string[];
  signal?: AbortSignal;
}

export class WebTransportClient {
  readonly #native: NativeWebTransportClient;
  readonly #outgoing = new OutgoingSessions(() => this.#native);

  constructor(addon: Addon, congestion: Congestion) {
    this.#native = new addon.WebTransportClient(congestion, this.#outgoing.wake);
  }

  /** Rejects with the reason when the session cannot be made, or with the signal's reason. */
  async connect({ url, certificateHashes, signal, ...handlers }: ConnectOptions): Promise<TransportChannel> {
    signal?.throwIfAborted();
    return this.#outgoing.opened(this.#native.connect(url, [...certificateHashes]), handlers, signal);
  }

  close(): void {
    this.#outgoing.close();
  }
}
