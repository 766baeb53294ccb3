/**
 * Every limit of the protocol, with its reason. Both ends check a frame against these while parsing it
 * (frames.ts); past the parser nothing re-checks a length. Specification: docs/spec/protocol.md §3.
 */
export const PROTOCOL_VERSION = 1;

export const LIMITS = {
  /** One chunk (a segment or a byte range). The client cuts longer bodies into ranges. */
  chunkBytesMax: 32 * 1024 * 1024,
  /** Signed media URLs reach a few KB; a transport carries a control frame of this size by itself. */
  urlBytesMax: 8192,
  /** Of a client at its proxies, as Origo signs it for up to 64 of them. */
  tokenBytesMax: 4096,
  /** A control frame: a request with the longest URL, or a plan with its headers. */
  messageBytesMax: 16384,
  /** What a data frame may fill: less than QUIC carries on any path that it works on, 1,161. */
  dataFrameBytesMax: 1156,
  /**
   * What a data channel carries in one packet of 1,200 bytes, IPv4's header among them: 28 are IP's and UDP's, up to 37
   * DTLS's, 12 SCTP's and 16 its chunk's; a multiple of 4, as SCTP pads to it.
   */
  channelMessageBytesMax: 1104,
  symbolBytesMin: 64,
  /** dataFrameBytesMax less the longest header of a seeded symbol. */
  symbolBytesMax: 1140,
  /**
   * channelMessageBytesMax less the longest header of a seeded symbol; 17 x 64. The paper's (section III-A) is 1,100.
   */
  symbolBytesDefault: 1088,
  generationSizeMax: 128,
  generationSizeDefault: 24,
  /** Mode `coded`: larger generations need less redundancy, smaller ones come sooner. */
  codedGenerationSizeDefault: 128,
  /** Generation indexes travel in 16 bits. */
  generationCountMax: 65535,
  windowPacketsMax: 4096,
  windowPacketsDefault: 240,
  /** Mode `coded`: what a proxy may send before the first grant reaches it. */
  firstPacketsDefault: 256,
  /** Entries of one feedback frame: symbols (uncoded) or generations (coded) above its base. */
  feedbackEntriesMax: 4096,
  /** Runs of one grant: it has to fit a packet. */
  grantRunsMax: 320,
  requestsPerSessionMax: 16,
  planHeadersMax: 32,
  headerValueBytesMax: 2048,
  rejectMessageBytesMax: 512,
  /** Data frames kept per proxy while its plan has not come yet. */
  earlyFramesMax: 64,
} as const;

/** Times in milliseconds. */
export const TIMING = {
  /** A request goes out twice, this long apart: a lost one costs a round trip of the whole proxy. */
  requestTwinMs: 10,
  requestTwins: 2,
  /** Then an unanswered request is repeated; doubles up to requestRepeatMsMax. */
  requestRepeatMs: 250,
  requestRepeatMsMax: 2000,
  /** Once another proxy has answered, the request is repeated after this time and this part of its round trip. */
  requestHastenMs: 10,
  requestHastenRoundTrips: 0.25,
  /** Repeat of a final feedback until the proxy's END, and of a REJECT until the final feedback. */
  finalRepeatMs: 200,
  finalTries: 6,
  /** The interval between final feedbacks doubles this many times. */
  finalDoublings: 3,
  /** A sender with nothing to say repeats PENDING; a proxy silent for proxySilenceMs has failed. */
  pendingRepeatMs: 1000,
  proxySilenceMs: 4000,
  /** A receiver repeats its feedback at least this often, so that a lost one costs no more than this. */
  feedbackKeepaliveMs: 500,
  feedbackEveryMsDefault: 20,
  /** Mode `coded`: all proxies are granted anew so often in the shortest round trip, but within these times. */
  grantsPerRoundTrip: 5,
  grantEveryMsMin: 5,
  grantEveryMsMax: 10,
  /** Sender: a request without any frame from its client for this long is over. */
  clientSilenceMs: 15000,
  /** Sender: bounds of the time after which a packet in transit counts as lost. */
  retransmitMsMin: 150,
  retransmitMsInitial: 500,
  retransmitMsMax: 3000,
} as const;

/** Feedback after this many packets from one proxy (the paper's F). */
export const FEEDBACK_EVERY_PACKETS_DEFAULT = 24;
/** Until the client is heard a plan is repeated after each power of two of data frames from this on. */
export const PLAN_REPEAT_PACKETS = 4;
/** Uncoded: a packet counts as lost once this many sent after it were reported. */
export const REORDER_PACKETS = 3;
