/** Names for files, from an address or from a server. Neither can reach outside the folder. No I/O. */
import { createHash } from "node:crypto";
import path from "node:path";
import { parse as parseDisposition } from "content-disposition";

/** Leaves room for the endings of a part file within the 255 bytes of most disks. */
const NAME_BYTES_MAX = 240;
const NAME_DEFAULT = "index.html";
/** Windows opens a device under such a name, whatever its extension is. */
const RESERVED = /^((?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?)$/i;

/** The last part of the address's path, decoded. */
export function nameFromUrl(url: string): string {
  const last = URL.canParse(url) ? new URL(url).pathname.split("/").at(-1)! : "";
  return safeName(decoded(last)) ?? NAME_DEFAULT;
}

/** The name in a Content-Disposition header (RFC 6266). A leading dot is dropped, so no server makes a hidden file. */
export function nameFromHeader(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  const name = dispositionName(header)?.split(/[\\/]/).at(-1)?.replace(/^\.+/, "");
  return name === undefined ? undefined : safeName(name);
}

/** Headers come as Latin-1, but many servers send UTF-8. */
function dispositionName(header: string): string | undefined {
  const text = Buffer.from(header, "latin1").toString();
  const readable = text.includes("\ufffd") || Buffer.from(text).toString("latin1") !== header ? header : text;
  try {
    return parseDisposition(readable).parameters["filename"];
  } catch {
    return undefined;
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Replaces separators, controls and what Windows forbids. Undefined if no name is left. */
function safeName(text: string): string | undefined {
  const clean = text
    // eslint-disable-next-line no-control-regex
    .replace(/[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069/\\:*?"<>|]/g, "_")
    .replace(/[. ]+$/, "")
    .trim()
    .replace(RESERVED, "_$1");
  return clean === "" ? undefined : shortened(clean, NAME_BYTES_MAX);
}

/** At most `bytesMax` bytes of UTF-8. The extension stays. */
function shortened(name: string, bytesMax: number): string {
  if (Buffer.byteLength(name) <= bytesMax) return name;
  const extension = path.extname(name);
  const kept = Buffer.byteLength(extension) <= 20 ? extension : "";
  return cut(name.slice(0, name.length - kept.length), bytesMax - Buffer.byteLength(kept)) + kept;
}

function cut(text: string, bytesMax: number): string {
  const bytes = Buffer.from(text).subarray(0, bytesMax);
  return new TextDecoder().decode(bytes).replace(/\ufffd+$/, "");
}

/** `NAME.part` in the same folder. A name that leaves no room for that is cut, and a digest keeps it apart. */
export function partPathOf(file: string): string {
  const { dir, base } = path.parse(file);
  if (Buffer.byteLength(base) <= NAME_BYTES_MAX) return `${file}.part`;
  const digest = createHash("sha256").update(base).digest("hex").slice(0, 8);
  return path.join(dir, `${cut(base, NAME_BYTES_MAX - digest.length - 1)}-${digest}.part`);
}

/** The path itself, or `NAME.1.EXTENSION` and so on if it is taken. */
export function freePath(file: string, isTaken: (file: string) => boolean): string {
  const { dir, name, ext } = path.parse(file);
  for (let number = 0; ; number++) {
    const candidate = number === 0 ? file : path.join(dir, `${name}.${number}${ext}`);
    if (!isTaken(candidate)) return candidate;
  }
}
