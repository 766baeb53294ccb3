/** The open readers of each download that reads one answer of the origin over several HTTP requests. No I/O. */
import type { Reader } from "./chunk";

export class DownloadReaders {
  readonly #open = new Map<string, Set<Reader>>();

  /** Another reader of the same download, which has the answer for this one, too. */
  enter(reader: Reader): Reader | undefined {
    if (reader.download === undefined) return undefined;
    const readers = this.#open.get(reader.download) ?? new Set();
    const [peer] = readers;
    this.#open.set(reader.download, readers.add(reader));
    return peer;
  }

  leave(reader: Reader): void {
    const readers = this.#open.get(reader.download ?? "");
    if (readers?.delete(reader) && readers.size === 0) this.#open.delete(reader.download!);
  }
}
