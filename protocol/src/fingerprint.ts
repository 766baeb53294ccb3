/** By what a message is known again at its other end, where the transport has no numbers of its own to tell. */

/** The head of a frame tells it from others: a data frame's has its sequence. */
const HEAD_BYTES = 24;

/** FNV-1a, 32 bits, of the first 24 bytes. Equal messages have equal ones; nothing is secret about it. */
export function fingerprintOf(message: Uint8Array): number {
  let hash = 0x811c9dc5;
  const end = Math.min(message.length, HEAD_BYTES);
  for (let index = 0; index < end; index++) hash = Math.imul(hash ^ message[index]!, 0x01000193);
  return hash >>> 0;
}
