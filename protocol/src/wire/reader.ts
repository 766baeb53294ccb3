/** Reads the fields of a frame one after the other, and checks each against its limit. */
import { type BoundedField, type Rejection, type RejectionKind, type TextField } from "@tributary/contract";
import { rejection } from "../geometry";

const utf8Decoder = new TextDecoder("utf-8", { fatal: true });

/** Thrown only while a frame is read. It is not an Error, because a flood of garbage must not cost stack traces. */
export class Malformed {
  constructor(readonly rejection: Rejection) {}
}

export function refuse(kind: RejectionKind, text: string, got: number, limit: number): never {
  throw new Malformed(rejection(kind, text, got, limit));
}

/** It reads bytes without a DataView: making a view for each frame costs more than the reading itself. */
export class Reader {
  #position = 0;
  requestId: number | undefined;

  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  #advance(count: number): number {
    const at = this.#position;
    if (at + count > this.#bytes.length)
      refuse("frameTruncated", "The frame ends early", this.#bytes.length, at + count);
    this.#position = at + count;
    return at;
  }
  u8(): number {
    return this.#bytes[this.#advance(1)]!;
  }
  u16(): number {
    const at = this.#advance(2);
    return this.#bytes[at]! * 2 ** 8 + this.#bytes[at + 1]!;
  }
  u32(): number {
    return this.u16() * 2 ** 16 + this.u16();
  }
  u48(): number {
    const high = this.u16();
    return high * 2 ** 32 + this.u32();
  }
  f64(): number {
    const at = this.#advance(8);
    return new DataView(this.#bytes.buffer, this.#bytes.byteOffset + at, 8).getFloat64(0);
  }
  take(count: number): Uint8Array {
    const at = this.#advance(count);
    return this.#bytes.subarray(at, at + count);
  }
  rest(): Uint8Array {
    return this.take(this.#bytes.length - this.#position);
  }
  text(byteCount: number, limit: number, what: TextField): string {
    if (byteCount > limit) refuse(`${what}TooLong`, `The ${what} is too long`, byteCount, limit);
    try {
      return utf8Decoder.decode(this.take(byteCount));
    } catch (error) {
      if (error instanceof Malformed) throw error;
      throw new Malformed({ kind: "notUtf8", message: `The ${what} is not UTF-8.` });
    }
  }
  within(value: number, min: number, max: number, what: BoundedField): number {
    if (value < min) refuse(`${what}TooSmall`, `${what} is too small`, value, min);
    if (value > max) refuse(`${what}TooLarge`, `${what} is too large`, value, max);
    return value;
  }
  end(): void {
    if (this.#position !== this.#bytes.length) {
      refuse("frameTooLong", "The frame goes on after its end", this.#bytes.length, this.#position);
    }
  }
}
