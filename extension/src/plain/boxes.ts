/** Boxes: reads and makes the boxes of ISO/IEC 14496-12 §4.2. Pure. */
export interface Box {
  type: string;
  body: Uint8Array<ArrayBuffer>;
}

/** `bytes` counts the whole box with its header. It is Infinity for a box that extends to the end of the file. */
export interface BoxHeader {
  type: string;
  headerBytes: number;
  bytes: number;
}

/**
 * The header of the box at the start of `bytes`; undefined if more bytes are needed. Throws RangeError if it is no box.
 */
export function headerOf(bytes: Uint8Array<ArrayBuffer>): BoxHeader | undefined {
  if (bytes.length < 16) return undefined;
  const header = readHeader(bytes);
  if (!/^[\w ©-]{4}$/.test(header.type) || header.bytes < header.headerBytes) throw new RangeError("not a box");
  return header;
}

function readHeader(bytes: Uint8Array<ArrayBuffer>): BoxHeader {
  const data = view(bytes);
  const short = data.getUint32(0);
  const type = String.fromCharCode(...bytes.subarray(4, 8));
  return short === 1
    ? { type, headerBytes: 16, bytes: Number(data.getBigUint64(8)) }
    : { type, headerBytes: 8, bytes: short === 0 ? Infinity : short };
}

/** The boxes in `bytes`. Throws RangeError if a box is cut short. */
export function unpack(bytes: Uint8Array<ArrayBuffer>): Box[] {
  const boxes: Box[] = [];
  for (let at = 0; at + 8 <= bytes.length;) {
    const { type, headerBytes, bytes: told } = readHeader(bytes.subarray(at));
    const size = told === Infinity ? bytes.length - at : told;
    if (size < headerBytes || at + size > bytes.length) throw new RangeError("a box is cut short");
    boxes.push({ type, body: bytes.subarray(at + headerBytes, at + size) });
    at += size;
  }
  return boxes;
}

export function box(type: string, ...parts: readonly Uint8Array<ArrayBuffer>[]): Uint8Array<ArrayBuffer> {
  const made = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 8));
  made.set(u32(made.length));
  made.set(fourcc(type), 4);
  let at = 8;
  for (const part of parts) {
    made.set(part, at);
    at += part.length;
  }
  return made;
}

/** A box with version and flags, which are one number here. */
export function full(
  type: string,
  versionAndFlags: number,
  ...parts: readonly Uint8Array<ArrayBuffer>[]
): Uint8Array<ArrayBuffer> {
  return box(type, u32(versionAndFlags), ...parts);
}

export function fourcc(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

export function u32(value: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array([value >> 24, value >> 16, value >> 8, value]);
}

export function u64(value: number): Uint8Array<ArrayBuffer> {
  const made = new Uint8Array(8);
  view(made).setBigUint64(0, BigInt(value));
  return made;
}

export function view(bytes: Uint8Array<ArrayBuffer>): DataView<ArrayBuffer> {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
