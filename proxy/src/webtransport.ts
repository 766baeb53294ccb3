/**
 * WebTransport edge: sessions over HTTP/3 datagrams on a UDP port of its own, from the native part (@tributary/webtransport).
 * Makes and rotates the certificates that clients accept by their hashes. Knows no frames: that is session.ts.
 */
import type { WebTransport, WebTransportChannel, WebTransportServer } from "@tributary/webtransport";
import type { Channel, OpenSession } from "./channel";

export interface WebTransportEdgeOptions {
  /** Where to listen: an IP address. */
  host: string;
  port: number;
  /** The address that clients come to. */
  name: string;
  sessionsMax: number;
  onSession: OpenSession;
  /** The certificates have changed: Origo should know their hashes. */
  onRotated: () => void;
}

/** A certificate is announced for as long before it is shown, and shown for as long; it lives 11 days. */
const ROTATE_MS = 4 * 24 * 3600 * 1000;

export class WebTransportEdge {
  private readonly server: WebTransportServer;
  private readonly rotation: NodeJS.Timeout;

  /** Throws when the port is taken. */
  constructor(webTransport: WebTransport, { onSession, onRotated, ...options }: WebTransportEdgeOptions) {
    this.server = webTransport.listen({
      ...options,
      onSession: (channel) => {
        const handlers = onSession(channelOf(channel));
        return {
          onMessage: (message) => handlers.handleMessage(message),
          onWritable: () => handlers.handleWritable(),
          onClosed: (reason) => handlers.handleClosed(reason),
        };
      },
    });
    this.rotation = setInterval(() => {
      this.server.rotateCertificate();
      onRotated();
    }, ROTATE_MS).unref();
  }

  get port(): number {
    return this.server.port;
  }

  get sessionCount(): number {
    return this.server.sessionCount;
  }

  /** What a client must know to connect; `authority` is HOST:PORT as clients see it. */
  address(authority: string): { url: string; certificateHashes: string[] } {
    return { url: `https://${authority}${this.server.path}`, certificateHashes: this.server.certificateHashes };
  }

  drain(): void {
    this.server.drain();
  }

  close(): void {
    clearInterval(this.rotation);
    this.server.close();
  }
}

function channelOf(channel: WebTransportChannel): Channel {
  return {
    transport: "webtransport",
    send: (bytes) => channel.send(bytes),
    get room() {
      return channel.room;
    },
    signals: () => channel.stats(),
    close: (reason) => channel.close(reason),
  };
}
