/**
 * WebTransport edge: sessions over HTTP/3 datagrams on their own UDP port, by the native part
 * (@tributary/native-transport). It makes and rotates the certificates that clients accept by their hashes. session.ts
 * handles the frames.
 */
import type { NativeTransport, WebTransportServer } from "@tributary/native-transport";
import { nativeChannel, nativeHandlers, type OpenSession } from "./channel";

export interface WebTransportEdgeOptions {
  /** The IP address to listen on. */
  host: string;
  port: number;
  /** The address that clients use. */
  name: string;
  sessionsMax: number;
  onSession: OpenSession;
  /** Called when the certificates have changed, since Origo must know their hashes. */
  onRotated: () => void;
}

/** A certificate is announced for this long, then used for this long. It is valid for 11 days. */
const ROTATE_MS = 4 * 24 * 3600 * 1000;

export class WebTransportEdge {
  readonly #server: WebTransportServer;
  readonly #rotation: NodeJS.Timeout;

  /** Throws when the port is taken. */
  constructor(native: NativeTransport, { onSession, onRotated, ...options }: WebTransportEdgeOptions) {
    this.#server = native.listen({
      ...options,
      onSession: (channel) => nativeHandlers(onSession(nativeChannel("webtransport", channel), channel.address)),
    });
    this.#rotation = setInterval(() => {
      this.#server.rotateCertificate();
      onRotated();
    }, ROTATE_MS).unref();
  }

  get port(): number {
    return this.#server.port;
  }

  get sessionCount(): number {
    return this.#server.sessionCount;
  }

  /** What a client needs to connect. `authority` is HOST:PORT as clients see it. */
  address(authority: string): { url: string; certificateHashes: string[] } {
    return { url: `https://${authority}${this.#server.path}`, certificateHashes: this.#server.certificateHashes };
  }

  drain(): void {
    this.#server.drain();
  }

  close(): void {
    clearInterval(this.#rotation);
    this.#server.close();
  }
}
