/**
 * The readers of each download that reads one answer of the origin over several HTTP requests. Between two requests a
 * stand-in keeps the answer, because the origin would have to send all of it again. Stand-ins are few and brief, and
 * they give way first.
 */
import type { ChunkListener, Reader } from "./chunk";

/** A client asks for the next part at once, or when its player has room. */
export const STAND_IN_MS = 3000;
export const STAND_INS_MAX = 64;

const SILENT: ChunkListener = { onHead: () => undefined, onGrowth: () => undefined, onFailure: () => undefined };

export class DownloadReaders {
  readonly #open = new Map<string, Set<Reader>>();
  /** The oldest first. */
  readonly #standIns = new Map<Reader, NodeJS.Timeout>();

  /** Ends a stand-in. */
  readonly #giveUp: (standIn: Reader) => void;

  constructor(giveUp: (standIn: Reader) => void) {
    this.#giveUp = giveUp;
  }

  /** Another reader of the same download, which has the answer for this one, too. */
  enter(reader: Reader): Reader | undefined {
    if (reader.download === undefined) return undefined;
    const readers = this.#open.get(reader.download) ?? new Set();
    const [peer] = readers;
    this.#open.set(reader.download, readers.add(reader));
    return peer;
  }

  leave(reader: Reader): void {
    clearTimeout(this.#standIns.get(reader));
    this.#standIns.delete(reader);
    const readers = this.#open.get(reader.download ?? "");
    if (readers?.delete(reader) && readers.size === 0) this.#open.delete(reader.download!);
  }

  /** A stand-in for the last reader of a download, which leaves. Undefined if the download needs none. */
  standInFor(reader: Reader): Reader | undefined {
    const { download = "", chunk, takenBytes } = reader;
    const isLast = this.#open.get(download)?.size === 1 && chunk.readers.has(reader);
    if (!isLast || !chunk.isComplete || takenBytes >= chunk.body!.totalBytes) return undefined;
    if (this.#standIns.size >= STAND_INS_MAX) this.giveUpOldest();
    const standIn = { ...reader, listener: SILENT };
    this.#standIns.set(standIn, setTimeout(() => this.#giveUp(standIn), STAND_IN_MS).unref());
    this.enter(standIn);
    return standIn;
  }

  /** False if there is none. */
  giveUpOldest(): boolean {
    const [oldest] = this.#standIns.keys();
    if (oldest) this.#giveUp(oldest);
    return oldest !== undefined;
  }
}
