/** Boxes: reads and makes the boxes of ISO/IEC 14496-12 §4.2. Pure. */
import { add, firstOf, globalOf, matches, methodOf, staticOf } from "../shared/primordials";
import { bytes as part, OwnBytes } from "../shared/late-primordials";

export type Bytes = Uint8Array<ArrayBuffer>;

export interface Box {
  type: string;
  body: Bytes;
}

/** `bytes` counts the whole box with its header. It is Infinity for a box that extends to the end of the file. */
export interface BoxHeader {
  type: string;
  headerBytes: number;
  bytes: number;
}

export const OwnRangeError = globalOf("RangeError");
const codeAt = methodOf<string, [number], number>("String", "charCodeAt");
const ofCodes = staticOf("String", "fromCharCode") as typeof String.fromCharCode;

/**
 * The header of the box at the start of `bytes`; undefined if more bytes are needed. Throws RangeError if it is no box.
 */
export function headerOf(bytes: Bytes): BoxHeader | undefined {
  if (part.count(bytes) < 16) return undefined;
  const header = readHeader(bytes);
  if (!matches(/^[\w ©-]{4}$/, header.type) || header.bytes < header.headerBytes) throw new OwnRangeError("not a box");
  return header;
}

function readHeader(bytes: Bytes): BoxHeader {
  const short = uint32(bytes, 0);
  const type = textAt(bytes, 4);
  return short === 1
    ? { type, headerBytes: 16, bytes: uint64(bytes, 8) }
    : { type, headerBytes: 8, bytes: short === 0 ? Infinity : short };
}

/** The boxes in `bytes`. Throws RangeError if a box is cut short. */
export function unpack(bytes: Bytes): Box[] {
  const boxes: Box[] = [];
  const count = part.count(bytes);
  for (let at = 0; at + 8 <= count;) {
    const { type, headerBytes, bytes: told } = readHeader(part.part(bytes, at));
    const size = told === Infinity ? count - at : told;
    if (size < headerBytes || at + size > count) throw new OwnRangeError("a box is cut short");
    add(boxes, { type, body: part.part(bytes, at + headerBytes, size - headerBytes) });
    at += size;
  }
  return boxes;
}

/** The first box of that type. */
export const boxIn = (boxes: readonly Box[], type: string): Box | undefined =>
  firstOf(boxes, (each) => each.type === type);

export function box(type: string, ...parts: readonly Bytes[]): Bytes {
  return boxOf(type, parts);
}

export function boxOf(type: string, parts: readonly Bytes[]): Bytes {
  const body = join(parts);
  const made = new OwnBytes(8 + part.count(body));
  part.put(made, u32(8 + part.count(body)), 0);
  part.put(made, fourcc(type), 4);
  part.put(made, body, 8);
  return made;
}

/** A box with version and flags, which are one number here. */
export function full(type: string, versionAndFlags: number, ...parts: readonly Bytes[]): Bytes {
  return box(type, u32(versionAndFlags), join(parts));
}

export function join(parts: readonly Bytes[]): Bytes {
  let count = 0;
  firstOf(parts, (each) => void (count += part.count(each)));
  const joined = new OwnBytes(count);
  let at = 0;
  firstOf(parts, (each) => {
    part.put(joined, each, at);
    at += part.count(each);
  });
  return joined;
}

export function fourcc(text: string): Bytes {
  const made = new OwnBytes(4);
  for (let at = 0; at < 4; at++) made[at] = codeAt(text, at);
  return made;
}

export function u32(value: number): Bytes {
  const made = new OwnBytes(4);
  for (let at = 0; at < 4; at++) made[at] = value >> (24 - 8 * at);
  return made;
}

export function u64(value: number): Bytes {
  return join([u32((value - (value >>> 0)) / 2 ** 32), u32(value)]);
}

/** A number beyond the end is NaN at first. Throws RangeError there. */
export function uint32(bytes: Uint8Array, at: number): number {
  const value = bytes[at]! * 2 ** 24 + bytes[at + 1]! * 2 ** 16 + bytes[at + 2]! * 2 ** 8 + bytes[at + 3]!;
  if (value >= 0) return value;
  throw new OwnRangeError("a box is cut short");
}

export const int32 = (bytes: Uint8Array, at: number): number => uint32(bytes, at) | 0;

/** Exact below 2^53. */
export const uint64 = (bytes: Uint8Array, at: number): number => uint32(bytes, at) * 2 ** 32 + uint32(bytes, at + 4);

export const int64 = (bytes: Uint8Array, at: number): number => int32(bytes, at) * 2 ** 32 + uint32(bytes, at + 4);

/** Four characters. */
export const textAt = (bytes: Uint8Array, at: number): string =>
  ofCodes(bytes[at] ?? 0, bytes[at + 1] ?? 0, bytes[at + 2] ?? 0, bytes[at + 3] ?? 0);
