/** MUTP and Coded MUTP as pure state machines: no clock, socket, random source or codec of its own. */
export {
  CodecError,
  sparseCoefficients,
  type Codec,
  type Decoder,
  type Encoder,
  type Recoder,
  type RepairDecoder,
  type RepairEncoder,
} from "./codec";
export { dataHeaderBytes, encodeFrame, parseFrame, requestIdOf } from "./wire/frames";
export { Fragmenter, Reassembler } from "./wire/fragments";
export { generationBytes, generationStart, geometryOf, symbolsIn, type Geometry } from "./geometry";
export { FEEDBACK_EVERY_PACKETS_DEFAULT, LIMITS, PROTOCOL_VERSION, TIMING } from "./limits";
export type { KnownPath } from "./planner/known";
export {
  createPeer,
  DEPENDENCE_CHECKS,
  mixedTopology,
  PEER_SCHEMES,
  type Block,
  type CodingOptions,
  type Control,
  type DependenceCheck,
  type Peer,
  type PeerScheme,
  type TopologyNode,
} from "./peers";
export { Pacer } from "./sender/pacer";
export { farewell } from "./receiver/feedback";
export type { PacketFate, ProxyStats } from "./receiver/proxy-state";
export type { ReceiverOptions } from "./receiver/options";
export type { ReceiverEvent, ReceiverStats, ShownEvidence } from "./receiver/outcome";
export {
  DigestAgreement,
  Patience,
  statementOf,
  statementOfRejection,
  undecided,
  verdictOf,
} from "./receiver/agreement";
export { isDoubtful, isOutvoted, votersOf, wordsOf } from "./receiver/voters";
export type { ByteCheck } from "./receiver/assembly";
export { ObjectProofs } from "./receiver/proofs";
export { Receiver } from "./receiver/receiver";
export { xorshift128 } from "./rng";
export { clipped, partOf } from "./sharing";
export { SplitHttp, type SplitHttpCommand, type SplitHttpEvent, type SplitHttpOptions } from "./split-http/split-http";
export { CONNECTIONS_MAX as SPLIT_CONNECTIONS_MAX } from "./split-http/piece-planner";
export type { CodedSymbol, SymbolSupply } from "./sender/coded-symbols";
export { EncoderPool } from "./sender/encoder-pool";
export { Sender, type SenderOutcome, type SupplyFor } from "./sender/sender";
export {
  encodeUdpPacket,
  parseUdpPacket,
  UDP_COOKIE_BYTES,
  UDP_DATAGRAM_BYTES_MAX,
  UDP_NONCE_BYTES,
  UDP_TOKEN_BYTES,
  type UdpPacket,
} from "./wire/udp";
export type {
  ChunkSource,
  Coding,
  DataFrame,
  FeedbackFrame,
  FinalReason,
  GrantFrame,
  Frame,
  GenerationSpan,
  MutpMode,
  ParseError,
  PlanHead,
  RequestFrame,
  Rng,
  Sharing,
} from "./types";
