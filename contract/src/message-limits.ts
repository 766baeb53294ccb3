/** Largest lengths: strings in UTF-16 code units, arrays in items. Cut a long error message before sending it. */
export const SCHEMA_LIMITS = {
  nameChars: 64,
  idChars: 64,
  kindChars: 64,
  proxyErrorKinds: 16,
  messageChars: 2000,
  commentChars: 1000,
  proxyUrlChars: 2048,
  urlChars: 8192,
  proxiesPerRecord: 64,
  connections: 64,
  recordsPerRequest: 256,
  errorsPerRequest: 256,
  proxiesPerList: 32,
  excludedPerList: 64,
  recordsPerPage: 500,
  recordsPerPageDefault: 100,
  experimentsPerRecord: 16,
} as const;

/** Of the evidence against a proxy. */
export const EVIDENCE_LIMITS = {
  symbolBytes: 1140,
  symbols: 128,
  /** A generation lies in as many pieces. */
  proofs: 2,
  /** Of the message: generation, payload and proofs in base64, and the rest. */
  bytes: 256 * 1024,
} as const;
