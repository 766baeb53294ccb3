/** The schemes by which peers get an object from each other. */
import { CodingPeer, type CodingOptions } from "./coding-peer";
import { NaivePeer } from "./naive-peer";
import type { Peer } from "./peer";
import { RarestPeer } from "./rarest-peer";

export const PEER_SCHEMES = ["coding", "rarest", "naive"] as const;
export type PeerScheme = (typeof PEER_SCHEMES)[number];

/** Only `coding` uses the codec, the density, the aggressiveness and the check. */
export function createPeer(scheme: PeerScheme, options: CodingOptions): Peer {
  if (scheme === "naive") return new NaivePeer(options);
  return scheme === "rarest" ? new RarestPeer(options) : new CodingPeer(options);
}
