export { CodingPeer, type CodingOptions, DEPENDENCE_CHECKS, type DependenceCheck } from "./coding-peer";
export { createPeer, PEER_SCHEMES, type PeerScheme } from "./create-peer";
export { NaivePeer } from "./naive-peer";
export type { Block, Control, Peer, PeerOptions } from "./peer";
export { RarestPeer } from "./rarest-peer";
export { mixedTopology, type TopologyNode } from "./topology";
