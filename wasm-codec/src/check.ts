/** Argument checks on this side of the module's border: what a 32-bit address or integer could not carry truly. */
import { CodecError } from "@tributary/protocol";

export const U32_MAX = 0xffff_ffff;

/** `value` if it is an integer 0..2^32-1. */
export function u32(what: string, value: number): number {
  if (Number.isInteger(value) && value >= 0 && value <= U32_MAX) return value;
  throw new CodecError(what, Number(value), U32_MAX);
}

export function range(what: string, got: number, least: number, most: number): void {
  if (got < least) throw new CodecError(what, got, least);
  if (got > most) throw new CodecError(what, got, most);
}

/** By its tag and not by its constructor, which another realm has its own of. */
function isTyped(value: unknown, tag: "Uint8Array" | "Uint32Array"): boolean {
  return (
    ArrayBuffer.isView(value) && (value as unknown as { [Symbol.toStringTag]?: string })[Symbol.toStringTag] === tag
  );
}

/** `value` if it is bytes, and of them as many as `length` says. */
export function bytesArgument(what: string, value: Uint8Array, length?: number): Uint8Array {
  if (!isTyped(value, "Uint8Array")) throw new CodecError(what, Number.NaN, Number.NaN, `${what}: not a Uint8Array`);
  if (length !== undefined && value.length !== length) throw new CodecError(what, value.length, length);
  return value;
}

export function seedsArgument(what: string, value: Uint32Array): Uint32Array {
  if (isTyped(value, "Uint32Array")) return value;
  throw new CodecError(what, Number.NaN, Number.NaN, `${what}: not a Uint32Array`);
}
