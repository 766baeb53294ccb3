/** What the process that runs a swarm and its peers' processes say to each other, over Node's channel to a child. */
import type { DependenceCheck, PeerScheme } from "@tributary/protocol";

/** What all peers of a run share. */
export interface SwarmSettings {
  scheme: PeerScheme;
  density: number;
  aggressiveness: number;
  check: DependenceCheck;
  blockBytes: number;
  seed: number;
}

export interface PeerOrder extends SwarmSettings {
  kind: "begin";
  id: number;
  /** Hexadecimal. */
  token: string;
  /** 0: the system chooses. */
  port: number;
  blockCount: number;
  fileBytes: number;
  upBytesPerSec: number;
  downBytesPerSec: number;
  upstream: readonly number[];
  downstream: readonly number[];
  /** The first peer reads the file. The other ones write it. */
  file: string;
}

export type ToPeer =
  | PeerOrder
  /** The port of every peer, by id. */
  | { kind: "join"; ports: readonly number[] }
  | { kind: "start" }
  | { kind: "stop" };

export interface PeerCounts {
  /** Blocks that came, and those that brought something new. */
  received: number;
  innovative: number;
  receivedBytes: number;
  controlBytes: number;
  /** How often each rule of the wire was broken by a neighbour. */
  faults: Record<string, number>;
}

export type FromPeer =
  | { kind: "listening"; port: number }
  | { kind: "joined" }
  | { kind: "progress"; innovative: number; receivedBytes: number }
  /** It had all after `ms`. Its file is written. */
  | { kind: "complete"; ms: number }
  /** All that it could get blocks from is gone. */
  | { kind: "isolated" }
  | { kind: "failed"; message: string }
  /** The answer to `stop`. */
  | { kind: "ended"; counts: PeerCounts; cpuMs: number; memoryBytes: number };
