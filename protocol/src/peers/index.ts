export { CodingPeer, type CodingOptions, type DependenceCheck } from "./coding-peer";
export { NaivePeer } from "./naive-peer";
export type { Block, Control, Peer, PeerOptions } from "./peer";
export { RarestPeer } from "./rarest-peer";
