/**
 * What a WebRTC server of the proxy does. All its sessions share one UDP port. A client sends an offer and makes the
 * data channel; the proxy answers once, with all its candidates. The server knows no frames: session.ts does.
 */
import type { OpenSession } from "./channel";

export interface RtcOptions {
  /** The IP address to listen at. */
  host: string;
  /** A port that was free a moment ago. */
  udpPort: number;
  /** An address and a port that clients get in addition to the addresses of this machine. */
  publicAddress: string | undefined;
  publicUdpPort: number | undefined;
}

export interface Rtc {
  /** Open connections and those that are still being made. */
  readonly connectionCount: number;
  /**
   * Answers `offer`. Rejects with an `OfferError`. Calls `onSession` when the client's channel opens, and `onFailed`
   * when it never will. A connection that ends or never opens leaves nothing behind.
   */
  accept(id: string, offer: string, onSession: OpenSession, onFailed?: () => void): Promise<string>;
  /** Forgets the client of an answered offer. Changes nothing once its session is open. */
  giveUp(id: string): void;
  close(): void;
}

/** The proxy cannot answer this offer. */
export class OfferError extends Error {}
