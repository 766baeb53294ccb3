/** The page Library of the dashboard: what is published, who may publish, and publishing as Origo's own publisher. */
import { z } from "zod";
import {
  ObjectId,
  PublicationName,
  PublicationRow,
  PUBLICATION_LIMITS,
  PublishedFile,
  PublisherKey,
} from "./publication-schema";

const count = z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER);
const epochMs = z.number().finite().nonnegative();

/** `quotaBytes` null: as `origo.publisherBytes` says. `isOwn`: Origo's own, which the dashboard publishes as. */
export const PublisherRow = z
  .object({
    key: PublisherKey,
    label: z.string(),
    author: z.string(),
    enrolledAtMs: epochMs,
    quotaBytes: count.nullable(),
    revokedAtMs: epochMs.nullable(),
    publications: count,
    bytes: count,
    isOwn: z.boolean(),
  })
  .strict();
export type PublisherRow = z.infer<typeof PublisherRow>;

/** Answer of GET /v1/library. */
export const LibraryResponse = z
  .object({
    publications: z.array(PublicationRow),
    publishers: z.array(PublisherRow),
    /** What `quotaBytes` null means. */
    quotaBytesDefault: count,
  })
  .strict();
export type LibraryResponse = z.infer<typeof LibraryResponse>;

/** Body of PATCH /v1/publishers/KEY. */
export const PublisherChange = z.object({ quotaBytes: count.nullable() }).strict();

/** Body of POST /v1/library/publications: Origo makes the manifest, signs it and begins to publish. */
export const OwnPublication = z
  .object({ name: PublicationName, files: z.array(PublishedFile).min(1).max(PUBLICATION_LIMITS.files) })
  .strict();
export type OwnPublication = z.infer<typeof OwnPublication>;

const revision = { name: PublicationName, revision: count.min(1) };
/** Body of POST /v1/library/grants. */
export const OwnGrants = z
  .object({ ...revision, objects: z.array(ObjectId).min(1).max(PUBLICATION_LIMITS.grantsPerRequest) })
  .strict();
/** Body of POST /v1/library/releases. */
export const OwnRelease = z.object(revision).strict();
