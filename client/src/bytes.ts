/** Pieces of the body stream. */

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
