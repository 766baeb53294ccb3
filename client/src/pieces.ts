/** Bytes cut for delivery. */
import { PIECE_BYTES_MAX } from "./settings";

/** Pieces of at most PIECE_BYTES_MAX, each with a buffer of its own, so that each can be transferred. */
export function piecesOf(bytes: Uint8Array): Uint8Array[] {
  if (bytes.length <= PIECE_BYTES_MAX) return [bytes.byteLength === bytes.buffer.byteLength ? bytes : bytes.slice()];
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += PIECE_BYTES_MAX) pieces.push(new Uint8Array(bytes.subarray(at, at + PIECE_BYTES_MAX)));
  return pieces;
}
