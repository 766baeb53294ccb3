/**
 * Delivered: the digests of the bytes that a page has got, piece by piece. They prove that another answer begins with
 * the same bytes.
 */

export type Digest = (bytes: Uint8Array<ArrayBuffer>) => Promise<ArrayBuffer>;
/** Reads a body: undefined at its end. */
export type Read = () => Promise<Uint8Array<ArrayBuffer> | undefined>;

interface Piece {
  byteLength: number;
  digest: Promise<string>;
}

export class Delivered {
  readonly #pieces: Piece[] = [];
  readonly #digest: Digest | undefined;

  constructor(digest: Digest | undefined) {
    this.#digest = digest;
  }

  get isPossible(): boolean {
    return this.#digest !== undefined;
  }

  /** Copies `bytes` before it returns. */
  note(bytes: Uint8Array<ArrayBuffer>): void {
    if (this.#digest === undefined) return;
    const digest = textOf(this.#digest(bytes));
    digest.catch(() => undefined);
    this.#pieces.push({ byteLength: bytes.length, digest });
  }

  /** Reads what follows the delivered bytes in a body; undefined if the body does not begin with them. */
  async restOf(read: Read): Promise<Read | undefined> {
    const cutter = new Cutter(read);
    // The page may get more while this reads.
    for (const { byteLength, digest } of [...this.#pieces]) {
      const bytes = await cutter.cut(byteLength);
      if (bytes === undefined || (await this.#textOf(bytes)) !== (await digest)) return undefined;
    }
    return () => cutter.next();
  }

  #textOf(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
    return this.#digest === undefined ? Promise.reject(new Error("no digest")) : textOf(this.#digest(bytes));
  }
}

async function textOf(digest: Promise<ArrayBuffer>): Promise<string> {
  return String(new Uint8Array(await digest));
}

/** Cuts a body into pieces of given lengths. */
class Cutter {
  readonly #read: Read;
  #left = new Uint8Array(0);

  constructor(read: Read) {
    this.#read = read;
  }

  /** undefined if the body ends before. */
  async cut(byteLength: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const bytes = new Uint8Array(byteLength);
    for (let at = 0; at < byteLength;) {
      const next = await this.next();
      if (next === undefined) return undefined;
      const piece = next.subarray(0, byteLength - at);
      bytes.set(piece, at);
      at += piece.length;
      this.#left = next.subarray(piece.length);
    }
    return bytes;
  }

  /** What was read and not cut off, or else what comes next. */
  async next(): ReturnType<Read> {
    const left = this.#left;
    this.#left = new Uint8Array(0);
    return left.length > 0 ? left : this.#read();
  }
}
