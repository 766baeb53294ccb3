/** What tells versions of a piece apart: bytes of two versions must not become one film. Pure. */
import { parseContentRange, type ResponseHead } from "@tributary/contract";
import { z } from "zod";

export const versionSchema = z.object({
  etag: z.string().optional(),
  modified: z.string().optional(),
  /** Of the whole file, also if the piece is a part of it. */
  bytes: z.number().optional(),
});

export type Version = z.infer<typeof versionSchema>;

export function versionOf({ status, headers, totalBytes }: ResponseHead): Version {
  const bytes = status === 206 ? parseContentRange(headers["content-range"] ?? null)?.resourceBytes : totalBytes;
  const etag = headers.etag?.replace(/^W\//, "");
  const modified = headers["last-modified"];
  return {
    ...(etag === undefined ? {} : { etag }),
    ...(modified === undefined ? {} : { modified }),
    ...(bytes === undefined || bytes === null ? {} : { bytes }),
  };
}

/**
 * Whether these are two versions. Servers of one site may have different entity tags for the same file, so a tag alone
 * does not decide against an equal date.
 */
export function isOther(a: Version, b: Version): boolean {
  const compare = (name: keyof Version): boolean | undefined =>
    a[name] === undefined || b[name] === undefined ? undefined : a[name] === b[name];
  if (compare("bytes") === false) return true;
  const [etag, modified] = [compare("etag"), compare("modified")];
  return (etag === false && modified !== true) || (modified === false && etag !== true);
}
