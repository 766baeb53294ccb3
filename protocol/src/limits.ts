/**
 * Every limit of the protocol, with its reason. Both ends check a frame against these while parsing it
 * (frames.ts); code behind the parser checks no length again. Specification: docs/spec/protocol.md §3.
 */
export const PROTOCOL_VERSION = 2;
/** Of a request that shares the reading of the chunk. All other frames are those of version 2. */
export const SHARING_VERSION = 3;

export const LIMITS = {
  /** Both ends hold a chunk in memory. The client cuts longer bodies into ranges. */
  chunkBytesMax: 32 * 1024 * 1024,
  /** Signed media URLs have up to a few KB. */
  urlBytesMax: 8192,
  /** A client shows this token to its proxies. Origo signs it for up to 64 proxies. */
  tokenBytesMax: 4096,
  /** A scheme, a host name of 253 characters and a port. */
  pageOriginBytesMax: 300,
  /** The longest control frames are a request with a long URL and token, and a plan with its headers. */
  messageBytesMax: 16384,
  /** QUIC carries datagrams of 1,161 bytes on every path on which it works. A data frame stays below that. */
  dataFrameBytesMax: 1156,
  /**
   * A data channel carries this much in one IPv4 packet of 1,200 bytes. The headers of IP and UDP take 28 bytes, DTLS
   * up to 37, SCTP 12 and its chunk 16. SCTP pads to a multiple of 4.
   */
  channelMessageBytesMax: 1104,
  /** A header of 16 bytes already takes a fifth of a frame with such a short symbol. */
  symbolBytesMin: 64,
  /** `dataFrameBytesMax` minus the 16 bytes of a seeded symbol's header. */
  symbolBytesMax: 1140,
  /**
   * `channelMessageBytesMax` minus the 16 bytes of a seeded symbol's header. It is 17 x 64. The paper (section III-A)
   * uses 1,100.
   */
  symbolBytesDefault: 1088,
  /** The cost of decoding a byte grows with the size of its generation. */
  generationSizeMax: 128,
  /** Generations of an object are whole blocks of 16 KiB. */
  objectSymbolBytes: 1024,
  objectGenerationSizeDefault: 32,
  generationSizeDefault: 24,
  /** Mode `coded`: larger generations need less redundancy, and smaller ones are complete sooner. */
  codedGenerationSizeDefault: 128,
  /** Mode `coded` with a shared reading: parts are whole generations, and all proxies should have one of 50 KB. */
  sharedGenerationSizeDefault: 8,
  /** Generation indexes travel in 16 bits. */
  generationCountMax: 65535,
  /** One feedback frame can report a window of this size. */
  windowPacketsMax: 4096,
  windowPacketsDefault: 240,
  /** Mode `coded`: a proxy may send this many packets before the first grant reaches it. */
  firstPacketsDefault: 256,
  /** An entry is a symbol (uncoded) or a generation (coded) at or above the base of the feedback. */
  feedbackEntriesMax: 4096,
  /** A grant has to fit into one packet, and a run takes 3 bytes. */
  grantRunsMax: 320,
  /** A client uses at most this many proxies. */
  readersMax: 32,
  /** An id of Origo's list. */
  readerIdBytesMax: 64,
  /** A proxy reads two stretches of a chunk, and it may hold more. */
  readSpansMax: 64,
  /** Bounds what the requests of one client can make a proxy hold. */
  requestsPerSessionMax: 16,
  /** This bounds what a plan can make a client hold, together with `headerValueBytesMax`. */
  planHeadersMax: 32,
  /** A proxy passes on this much of the names and values of headers, because each plan repeats them. */
  planHeaderBytesMax: 6144,
  headerNameBytesMax: 255,
  headerValueBytesMax: 2048,
  /** SHA-256 cut to this length. A second body with the same digest takes 2^128 tries. */
  digestBytes: 16,
  /** A block of a body over HTTP, which has a digest. The digests of a proxy add 0.05 % of the body. */
  httpBlockBytes: 32 * 1024,
  /** A frame of digests fits a data channel's packet of 1,200 bytes. */
  digestsPerFrameMax: 64,
  /** A proxy announces at most this many digests that the client has not confirmed. */
  digestsAheadMax: 1024,
  /** A frame of a proof fits a data channel's message: `channelMessageBytesMax` minus 10 bytes, by 32. */
  proofDigestsPerFrameMax: 34,
  /** A proxy sends at most this many digests of proofs that the client has not confirmed: three pieces or more. */
  proofDigestsAheadMax: 256,
  /** The message is one sentence for people. */
  rejectMessageBytesMax: 512,
  /** The receiver keeps this many data frames of a proxy until the proxy's plan arrives. */
  earlyFramesMax: 64,
} as const;

/** Times in milliseconds. */
export const TIMING = {
  /** A request goes out twice, this long apart, because a lost request would cost a round trip. */
  requestTwinMs: 10,
  requestTwins: 2,
  /** Then an unanswered request is repeated. The interval doubles up to `requestRepeatMsMax`. */
  requestRepeatMs: 250,
  requestRepeatMsMax: 2000,
  /** Once another proxy has answered, the request is repeated after this time plus this part of its round trip. */
  requestHastenMs: 10,
  requestHastenRoundTrips: 0.25,
  /** The client repeats a final feedback until the proxy's END. The proxy repeats a REJECT until the final feedback. */
  finalRepeatMs: 200,
  finalTries: 6,
  /** The interval between final feedbacks doubles this many times. */
  finalDoublings: 3,
  /** A sender with nothing to send repeats PENDING. A proxy has failed when it is silent for `proxySilenceMs`. */
  pendingRepeatMs: 1000,
  proxySilenceMs: 4000,
  /** A receiver repeats its feedback at least this often, so that a lost one costs at most this time. */
  feedbackKeepaliveMs: 500,
  feedbackEveryMsDefault: 20,
  /** Mode `coded`: proxies get this many new grants in the shortest round trip, at intervals within these bounds. */
  grantsPerRoundTrip: 5,
  grantEveryMsMin: 5,
  grantEveryMsMax: 10,
  /**
   * A client waits this long in all for a second proxy to confirm what the first one said. A longer wait would let one
   * slow proxy hold up the chunk, and a shorter one would let a liar win that only answers sooner.
   */
  confirmMs: 1000,
  /** A proxy repeats digests that are not confirmed after this time. The interval doubles up to the maximum. */
  digestRepeatMs: 30,
  digestRepeatMsMax: 1000,
  /** A sender ends a request when no frame of its client arrives for this long. */
  clientSilenceMs: 15000,
  /** A sender counts a packet in transit as lost after a time within these bounds. */
  retransmitMsMin: 150,
  retransmitMsInitial: 500,
  retransmitMsMax: 3000,
} as const;

/** A proxy gets feedback after this many packets from it (the paper's F). */
export const FEEDBACK_EVERY_PACKETS_DEFAULT = 24;
/** A plan is repeated after this many data frames, and each time their number doubles, until the client is heard. */
export const PLAN_REPEAT_PACKETS = 4;
/** A proxy that has data to send announces new digests at most once in this many data frames. */
export const DIGEST_EVERY_PACKETS = 16;
/** Proofs of the first piece do not wait for their turn between data frames. */
export const PROOF_DIGESTS_URGENT = 64;
/** A proxy hashes at most this much for one frame of digests, so that no frame keeps the process busy for long. */
export const DIGEST_HASHED_BYTES_MAX = 512 * 1024;
/** Uncoded: a packet counts as lost once this many later packets were reported. */
export const REORDER_PACKETS = 3;
