/** What a person reads when a file cannot be read or written, or when a download did not bring what was asked for. */
import type { DownloadRecord } from "@tributary/contract/schema";
import { Exit, STATUS } from "./exit";

const REASONS: Record<string, string> = {
  EACCES: "there is no permission",
  EPERM: "there is no permission",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EFBIG: "the file is too large for this disk or limit",
  EROFS: "the disk is read-only",
  ENOENT: "the folder does not exist",
  ENOTDIR: "a part of the path is not a folder",
  EISDIR: "it is a folder",
  ENAMETOOLONG: "the name is too long; most disks allow 255 bytes",
  ELOOP: "its symbolic links form a loop",
  EBUSY: "it is in use",
  ENXIO: "it has no reader",
  EPIPE: "its reader is gone",
};

export function codeOf(error: unknown): string {
  return typeof error === "object" && error !== null && "code" in error ? String(error.code) : "";
}

/** `Cannot write PATH: the disk is full (ENOSPC).` An `Exit` stays what it is. */
export function fileFault(what: "read" | "write", path: string, error: unknown): Exit {
  if (error instanceof Exit) return error;
  const code = codeOf(error);
  const reason = what === "read" && code === "ENOENT" ? "it does not exist" : REASONS[code];
  const detail =
    reason === undefined ? (error instanceof Error ? error.message : String(error)) : `${reason} (${code})`;
  return new Exit(STATUS.failed, `Cannot ${what} ${path}: ${detail}.`);
}

export function problemOf(record: DownloadRecord): Exit | undefined {
  if (record.outcome !== "complete") return new Exit(STATUS.failed, `${record.error?.kind}: ${record.error?.message}`);
  if (record.status >= 200 && record.status < 300) return undefined;
  return new Exit(STATUS.failed, `The origin answered ${record.status}. Its text is not kept.`);
}
