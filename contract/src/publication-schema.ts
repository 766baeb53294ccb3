/**
 * Publications: what publishers, Origo, proxies and clients tell each other about published objects. One zod schema
 * each. Who sends what to whom: docs/spec/publications.md.
 */
import { z } from "zod";
import { type ApiError, ProxiesResponse, SCHEMA_LIMITS } from "./schema";
import { PUBLIC_KEY } from "./signed";
import { parseObjectId } from "./tree";

export const PUBLICATION_LIMITS = {
  nameChars: 64,
  pathBytes: 1024,
  /** Most file systems take names of at most 255 bytes. */
  pathPartBytes: 255,
  typeChars: 100,
  files: 10_000,
  manifestBytes: 4 * 1024 * 1024,
  /** Origo keeps playlists itself, because the addresses in them lead on from Origo's address. */
  playlistBytes: 1024 * 1024,
  grantsPerRequest: 100,
  objectsPerReport: 128,
  /** What one report may say of one object: 1 Gbit/s for a day. */
  servedBytesPerObject: 1e13,
  publicationsPerPage: 500,
} as const;

const count = z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER);
const epochMs = z.number().finite().nonnegative();

/** A publisher's public key. */
export const PublisherKey = z.string().regex(PUBLIC_KEY, "must be an Ed25519 key: 43 characters of base64url");
export const ObjectId = z
  .string()
  .refine((text) => parseObjectId(text) !== undefined, "must be an object's id: 64 hex digits, a hyphen, its bytes");

/** A part of an address, so it has neither capitals, which hosts of files may mix up, nor anything to be escaped. */
export const PublicationName = z
  .string()
  .max(PUBLICATION_LIMITS.nameChars)
  .regex(/^[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?$/, "must have a-z, 0-9, and between them . _ -");

const encoder = new TextEncoder();

/** Why this cannot be the path of a file in a publication; undefined if it can. */
export function pathFault(path: string): string | undefined {
  const { pathBytes, pathPartBytes } = PUBLICATION_LIMITS;
  const bytes = encoder.encode(path).length;
  if (bytes > pathBytes) return `has ${bytes} bytes, limit ${pathBytes}`;
  if (/[\p{Cc}\p{Cs}\\]/u.test(path)) return "must not hold control characters, backslashes or half surrogate pairs";
  for (const part of path.split("/")) {
    if (part === "") return "must not begin or end with a slash or have two in a row";
    if (part === "." || part === "..") return `must not hold the part ${part}`;
    const partBytes = encoder.encode(part).length;
    if (partBytes > pathPartBytes) return `has a part of ${partBytes} bytes, limit ${pathPartBytes}`;
  }
  return undefined;
}

/** A file with a private key is not longer than this. */
const KEY_BYTES_MAX = 65_536;
/** RFC 7468 §10 and §11, and the older labels, as RSA and OPENSSH. */
const PRIVATE_KEY = /-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----/;

/**
 * Whether a file holds a private key, such as the publisher's own. What is published is public, so such a file is left
 * out. `text` reads it in any superset of ASCII; it is called only for files that are short enough. Files in UTF-16,
 * as some shells write them, then have zeros between the letters.
 */
export async function isPrivateKey(bytes: number, text: () => Promise<string>): Promise<boolean> {
  return bytes <= KEY_BYTES_MAX && PRIVATE_KEY.test((await text()).replaceAll("\0", ""));
}

/** RFC 6838 §4.2, and parameters. */
export const MEDIA_TYPE = /^[\w.+-]+\/[\w.+-]+(?:; ?[\w-]+=[\w."', -]+)*$/;

/** A file of a publication. */
export const PublishedFile = z
  .object({
    path: z.string().superRefine((path, context) => {
      const fault = pathFault(path);
      if (fault !== undefined) context.addIssue({ code: z.ZodIssueCode.custom, message: `${path}: ${fault}` });
    }),
    type: z.string().max(PUBLICATION_LIMITS.typeChars).regex(MEDIA_TYPE, "must be a media type, as video/mp4"),
    object: ObjectId,
  })
  .strict();
export type PublishedFile = z.infer<typeof PublishedFile>;

/** What a publisher signs. A publication of the same key and name with a higher revision replaces it. */
export const Manifest = z
  .object({
    kind: z.literal("manifest"),
    key: PublisherKey,
    name: PublicationName,
    revision: count.min(1),
    files: z.array(PublishedFile).min(1).max(PUBLICATION_LIMITS.files),
  })
  .strict()
  .superRefine(({ files }, context) => {
    const seen = new Set<string>();
    for (const [index, { path }] of files.entries()) {
      if (seen.has(path))
        context.addIssue({ code: "custom", path: ["files", index], message: `${path} is there twice` });
      seen.add(path);
    }
  });
export type Manifest = z.infer<typeof Manifest>;

/** Whether Origo keeps this file and answers it, because the addresses in it are relative. */
export const isPlaylist = (path: string): boolean => /\.(?:m3u8|mpd)$/i.test(path);

const action = { key: PublisherKey, atMs: epochMs };
/**
 * Body of POST /v1/publisher: a JWS of one of these, signed by `key`. `atMs` is the time by Origo's clock (the `Date`
 * of its answers); it must be within five minutes.
 */
export const PublisherAction = z.discriminatedUnion("kind", [
  z
    .object({ kind: z.literal("enrol"), ...action, label: z.string().min(1).max(64), code: z.string().max(256) })
    .strict(),
  z
    .object({
      kind: z.literal("grants"),
      ...action,
      name: PublicationName,
      revision: count,
      objects: z.array(ObjectId).min(1).max(PUBLICATION_LIMITS.grantsPerRequest),
    })
    .strict(),
  z.object({ kind: z.literal("release"), ...action, name: PublicationName, revision: count }).strict(),
  z.object({ kind: z.literal("unpublish"), ...action, name: PublicationName }).strict(),
  z.object({ kind: z.literal("list"), ...action }).strict(),
]);
export type PublisherAction = z.infer<typeof PublisherAction>;

/** Answer to `enrol`. */
export const EnrolledPublisher = z.object({ key: PublisherKey, label: z.string(), quotaBytes: count }).strict();
export type EnrolledPublisher = z.infer<typeof EnrolledPublisher>;

/** A proxy that takes objects. */
export const LibraryProxy = z
  .object({
    id: z.string().max(SCHEMA_LIMITS.idChars),
    name: z.string().max(SCHEMA_LIMITS.nameChars),
    url: z.string().max(SCHEMA_LIMITS.proxyUrlChars),
    freeBytes: count,
  })
  .strict();
export type LibraryProxy = z.infer<typeof LibraryProxy>;

/** Answer of POST /v1/publications (201): where the objects go. Nothing plays the new revision before its release. */
export const PendingPublication = z
  .object({
    key: PublisherKey,
    name: PublicationName,
    revision: count,
    /** The proxies that are to hold the publication. */
    proxies: z.array(LibraryProxy),
  })
  .strict();
export type PendingPublication = z.infer<typeof PendingPublication>;

/** Answer to `grants`: one JWT for each object, in the order of the request. All proxies of the publication take it. */
export const GrantsResponse = z.object({ grants: z.array(z.string()) }).strict();
export type GrantsResponse = z.infer<typeof GrantsResponse>;

/** Claims of a grant (JWT, EdDSA, signed by Origo's token key): the proxies `aud` take the object until `exp`. */
export const GrantClaims = z
  .object({
    iss: z.literal("origo"),
    aud: z.array(z.string().max(SCHEMA_LIMITS.idChars)).max(SCHEMA_LIMITS.proxiesPerList),
    object: ObjectId,
    iat: count,
    exp: count,
  })
  .strict();
export type GrantClaims = z.infer<typeof GrantClaims>;

/** Answer to `release`. */
export const Release = z
  .object({
    /** The address of the publication, which ends with a slash. A file's address is this and its path. */
    address: z.string(),
    /** A page that plays it, for an iframe. */
    embed: z.string(),
  })
  .strict();
export type Release = z.infer<typeof Release>;

/** A publication as its publisher and the dashboard see it. */
export const PublicationRow = z
  .object({
    key: PublisherKey,
    name: PublicationName,
    revision: count,
    state: z.enum(["pending", "released"]),
    files: count,
    bytes: count,
    /**
     * What proxies say they have served of its objects, in all revisions since its first release. An object that
     * several publications have counts for each. Origo itself answers playlists, which do not count.
     */
    servedBytes: count,
    /** The proxies that hold all of its objects. */
    holders: z.array(z.object({ id: z.string(), name: z.string() }).strict()),
    /** The objects that no live proxy holds. */
    missingObjects: count,
    atMs: epochMs,
    address: z.string(),
    embed: z.string(),
  })
  .strict();
export type PublicationRow = z.infer<typeof PublicationRow>;

/** Answer to `list`, newest first. */
export const PublicationsResponse = z
  .object({ publications: z.array(PublicationRow).max(PUBLICATION_LIMITS.publicationsPerPage) })
  .strict();
export type PublicationsResponse = z.infer<typeof PublicationsResponse>;

/**
 * Answer of GET /v1/publications/KEY/NAME, open to every web page: the signed manifest of the released revision, and
 * proxies as in ProxiesResponse. Those that hold the publication come first; `holders` of them do.
 */
export const PublicationResponse = ProxiesResponse.extend({ manifest: z.string(), holders: count });
export type PublicationResponse = z.infer<typeof PublicationResponse>;

/**
 * Event "objects" of a proxy with a library to Origo, after its hello and after each change. `isFirst` begins the whole
 * list anew. Origo answers ObjectsAck.
 */
export const ObjectsReport = z
  .object({
    isFirst: z.boolean(),
    added: z.array(ObjectId).max(PUBLICATION_LIMITS.objectsPerReport),
    removed: z.array(ObjectId).max(PUBLICATION_LIMITS.objectsPerReport),
  })
  .strict();
export type ObjectsReport = z.infer<typeof ObjectsReport>;

/** `unwanted`: of the added objects, those that no publication has. The proxy may evict them. */
export type ObjectsAck = { unwanted: string[] } | { error: ApiError };

export const ServedObject = z
  .object({ object: ObjectId, bytes: count.max(PUBLICATION_LIMITS.servedBytesPerObject) })
  .strict();
export type ServedObject = z.infer<typeof ServedObject>;

/**
 * Event "served" of a proxy to Origo: what it served since the report before. It sends a report again, with the same
 * `id`, until Origo answers ServedAck, and Origo counts each one once.
 */
export const ServedReport = z
  .object({ id: z.string().uuid(), served: z.array(ServedObject).max(PUBLICATION_LIMITS.objectsPerReport) })
  .strict();
export type ServedReport = z.infer<typeof ServedReport>;
export type ServedAck = { id: string } | { error: ApiError };

/** Event "forget" of Origo to a proxy: no publication has these objects any more. */
export const ForgetObjects = z.object({ objects: z.array(ObjectId).max(PUBLICATION_LIMITS.objectsPerReport) }).strict();
export type ForgetObjects = z.infer<typeof ForgetObjects>;
