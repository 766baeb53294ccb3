/** Largest lengths: strings in UTF-16 code units, arrays in items. Cut a long error message before sending it. */
export const SCHEMA_LIMITS = {
  nameChars: 64,
  idChars: 64,
  kindChars: 64,
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
