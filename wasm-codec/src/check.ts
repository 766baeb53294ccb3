/** Checks arguments before they enter the module, whose addresses and integers have 32 bits. */
import { CodecError } from "@tributary/protocol";

export const U32_MAX = 0xffff_ffff;

/** Returns `value` if it is an integer 0..2^32-1. Else throws a CodecError. */
export function u32(what: string, value: number): number {
  if (Number.isInteger(value) && value >= 0 && value <= U32_MAX) return value;
  throw new CodecError(what, Number(value), U32_MAX);
}

export function range(what: string, got: number, least: number, most: number): void {
  if (got < least) throw new CodecError(what, got, least);
  if (got > most) throw new CodecError(what, got, most);
}

/** Checks the tag and not the constructor, because another realm has another constructor. */
function isTyped(value: unknown, tag: "Uint8Array" | "Uint32Array"): boolean {
  return (
    ArrayBuffer.isView(value) && (value as unknown as { [Symbol.toStringTag]?: string })[Symbol.toStringTag] === tag
  );
}

/** Returns `value` if it is a Uint8Array of `length` bytes. Else throws a CodecError. */
export function bytesArgument(what: string, value: Uint8Array, length?: number): Uint8Array {
  if (!isTyped(value, "Uint8Array")) throw new CodecError(what, Number.NaN, Number.NaN, `${what}: not a Uint8Array`);
  if (length !== undefined && value.length !== length) throw new CodecError(what, value.length, length);
  return value;
}

export function seedsArgument(what: string, value: Uint32Array): Uint32Array {
  if (isTyped(value, "Uint32Array")) return value;
  throw new CodecError(what, Number.NaN, Number.NaN, `${what}: not a Uint32Array`);
}
