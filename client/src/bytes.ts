/** Bytes cut for delivery, joined, and spelled. */

/** The largest piece that the body stream gets: small enough to flow, and large enough to be cheap to transfer. */
const PIECE_BYTES_MAX = 65_536;

/** Pieces of at most PIECE_BYTES_MAX, each with a buffer of its own, so that each can be transferred. */
export function piecesOf(bytes: Uint8Array): Uint8Array[] {
  if (bytes.length <= PIECE_BYTES_MAX) return [bytes.byteLength === bytes.buffer.byteLength ? bytes : bytes.slice()];
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += PIECE_BYTES_MAX)
    pieces.push(new Uint8Array(bytes.subarray(at, at + PIECE_BYTES_MAX)));
  return pieces;
}

/** One buffer, no larger than what is in it. */
export function joined(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** In lower case. */
export function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
