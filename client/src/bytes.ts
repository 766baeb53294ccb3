/** Small functions on bytes: cut them into pieces, join pieces, and write them as hex. */

/** The largest piece of the body stream. Smaller pieces cost more transfers, and larger pieces come less evenly. */
const PIECE_BYTES_MAX = 65_536;

/** Cuts bytes into pieces of at most PIECE_BYTES_MAX. Each has its own buffer, so that it can be transferred. */
export function piecesOf(bytes: Uint8Array): Uint8Array[] {
  if (bytes.length <= PIECE_BYTES_MAX) return [bytes.byteLength === bytes.buffer.byteLength ? bytes : bytes.slice()];
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += PIECE_BYTES_MAX)
    pieces.push(new Uint8Array(bytes.subarray(at, at + PIECE_BYTES_MAX)));
  return pieces;
}

/** Joins pieces into one buffer without spare room. */
export function joined(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** Writes bytes as lower-case hex. */
export function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
