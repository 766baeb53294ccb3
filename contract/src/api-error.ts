/** What Origo answers when it refuses a request. */
import { z } from "zod";

/** Why Origo refuses a request. The kind is for programs, the message for people. */
export const API_ERROR_KINDS = [
  "adminRequired",
  "badField",
  "badJson",
  "badRequest",
  "bodyTooLarge",
  "busy",
  "clockWrong",
  "closing",
  "codeExpired",
  "codeMissing",
  "codeUsed",
  "csrfTokenWrong",
  "diskFull",
  "evidenceWrong",
  "experimentsOverlap",
  "helloMissing",
  "keyRevoked",
  "keyUnknown",
  "lastAdmin",
  "loginRequired",
  "methodNotAllowed",
  "nameTaken",
  "noRoom",
  "notFound",
  "objectsMissing",
  "proofWrong",
  "quotaExceeded",
  "revisionOld",
  "rootMismatch",
  "setupRefused",
  "signatureWrong",
  "storageFull",
  "tooFast",
  "tooManyAttempts",
  "tooManyExperiments",
  "tooManyProxies",
  "tooManyFiles",
  "tooManyPublications",
  "tooManyPublishers",
  "tooManyViews",
  "unavailable",
  "unknownId",
  "unknownNamespace",
  "unknownSetting",
  "unsupportedMediaType",
  "versionConflict",
  "wrongCode",
  "wrongLogin",
  "wrongState",
] as const;
export type ApiErrorKind = (typeof API_ERROR_KINDS)[number];

/**
 * What is wrong with a request. `field` is the path to the fault, e.g. `records[0].url`. `got` and `limit` are there if
 * the fault is a number.
 */
export const ApiError = z
  .object({
    kind: z.enum(API_ERROR_KINDS),
    message: z.string(),
    field: z.string().optional(),
    got: z.number().optional(),
    limit: z.number().optional(),
  })
  .strict();
export type ApiError = z.infer<typeof ApiError>;

/** Body of every answer that is not a success. */
export const ErrorResponse = z.object({ error: ApiError }).strict();
export type ErrorResponse = z.infer<typeof ErrorResponse>;
