/** Files: what a person dropped or chose, as the files of a publication. */
import { isPrivateKey, pathFault, PUBLICATION_LIMITS } from "@tributary/contract/publication-schema";

export interface ChosenFile {
  path: string;
  type: string;
  file: File;
}

/** Browsers know few of these types. */
const TYPES: Record<string, string> = {
  m3u8: "application/vnd.apple.mpegurl",
  mpd: "application/dash+xml",
  m4s: "video/iso.segment",
  cmfv: "video/mp4",
  cmfa: "audio/mp4",
  mp4: "video/mp4",
  m4v: "video/mp4",
  m4a: "audio/mp4",
  ts: "video/mp2t",
  aac: "audio/aac",
  webm: "video/webm",
  mkv: "video/x-matroska",
  vtt: "text/vtt",
};

export function typeOf(path: string, known: string): string {
  const ending = path.slice(path.lastIndexOf(".") + 1).toLowerCase();
  return TYPES[ending] ?? (/^[\w.+-]+\/[\w.+-]+$/.test(known) ? known : "application/octet-stream");
}

/** The name of the publication that the person may change. */
export function nameFor(title: string): string {
  const plain = title
    .normalize("NFKD")
    .toLowerCase()
    .replace(/\.[a-z0-9]{1,5}$/, "")
    .replace(/[^a-z0-9._-]+/g, "-")
    .slice(0, PUBLICATION_LIMITS.nameChars)
    .replace(/^[._-]+|[._-]+$/g, "");
  return plain === "" ? "video" : plain;
}

export interface Chosen {
  /** The folder's name, or the only file's; empty if there is neither. */
  title: string;
  files: ChosenFile[];
  /** What is left out, each with the reason. */
  skipped: string[];
}

/** Files with their paths in the publication. Rejects with an error that names a bad file. */
export async function chosen(found: readonly { path: string; file: File }[]): Promise<Chosen> {
  const usable: { path: string; file: File }[] = [];
  const leftOut: { path: string; why: string }[] = [];
  for (const each of found) {
    const why = await whyLeftOut(each);
    if (why === undefined) usable.push(each);
    else leftOut.push({ path: each.path, why });
  }
  const top = (usable[0] ?? found[0])?.path.split("/")[0] ?? "";
  const isFolder = usable.every(({ path }) => path.startsWith(`${top}/`));
  const ownPath = (path: string): string =>
    isFolder && path.startsWith(`${top}/`) ? path.slice(top.length + 1) : path;
  const skipped = leftOut.map(({ path, why }) => `${ownPath(path)}: ${why}`).sort();
  if (usable.length === 0) throw new Error(["there is no file to publish in it", ...skipped.slice(0, 5)].join("; "));
  if (usable.length > PUBLICATION_LIMITS.files)
    throw new Error(`a publication has at most ${PUBLICATION_LIMITS.files} files, got ${usable.length}`);
  const files = usable.map(({ path, file }) => {
    const own = ownPath(path);
    const fault = pathFault(own);
    if (fault !== undefined) throw new Error(`${own}: ${fault}`);
    return { path: own, type: typeOf(own, file.type), file };
  });
  const title = isFolder || usable.length === 1 ? top : "";
  return { title, files: files.sort((a, b) => (a.path < b.path ? -1 : 1)), skipped };
}

async function whyLeftOut({ path, file }: { path: string; file: File }): Promise<string | undefined> {
  if (path.split("/").some((part) => part.startsWith("."))) return "hidden";
  const text = (): Promise<string> =>
    file.text().catch((error: Error) => {
      throw new Error(`${path}: ${error.message}`);
    });
  return (await isPrivateKey(file.size, text)) ? "a private key" : undefined;
}

/** Everything in what was dropped, folders too. */
export async function dropped(items: DataTransferItemList): Promise<{ path: string; file: File }[]> {
  // The list is only valid now, so the entries are taken before the first wait.
  const entries = [...items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  return (await Promise.all(entries.map((entry) => filesIn(entry, "")))).flat();
}

async function filesIn(entry: FileSystemEntry, folder: string): Promise<{ path: string; file: File }[]> {
  const path = folder + entry.name;
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    return [{ path, file }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) break;
    all.push(...some);
  }
  return (await Promise.all(all.map((each) => filesIn(each, `${path}/`)))).flat();
}

/** What the browser's dialogs give. */
export const picked = (list: FileList): { path: string; file: File }[] =>
  [...list].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
