/**
 * The digests of a stored body's generations. They are computed when a client first asks for them, and all readers who
 * cut the body in the same way share them. They live as long as the body, and their number is bounded.
 */
import { createHash } from "node:crypto";
import { LIMITS } from "@tributary/protocol";

/** A kept digest takes about 250 bytes of memory. With one for so many bytes of a body, they add 3 %. */
const BYTES_PER_DIGEST = 8192;
/** A short body may always keep this many. */
const DIGESTS_MIN = 64;

export class Digests {
  /** By stretch of the body, the oldest first. */
  readonly #kept = new Map<string, Uint8Array>();
  readonly #countMax: number;
  readonly #view: (start: number, end: number) => Uint8Array;

  constructor(totalBytes: number, view: (start: number, end: number) => Uint8Array) {
    this.#countMax = Math.max(DIGESTS_MIN, totalBytes / BYTES_PER_DIGEST);
    this.#view = view;
  }

  /** SHA-256 of the bytes from `start` to before `end`, cut to the length on the wire. */
  of(start: number, end: number): Uint8Array {
    const key = `${start}-${end}`;
    let digest = this.#kept.get(key);
    if (digest) return digest;
    digest = createHash("sha256").update(this.#view(start, end)).digest().subarray(0, LIMITS.digestBytes);
    this.#kept.set(key, digest);
    if (this.#kept.size > this.#countMax) this.#kept.delete(this.#kept.keys().next().value!);
    return digest;
  }
}
