/**
 * Fragments: messages longer than a datagram travel in pieces. Transports that carry only datagrams need this, and so
 * does a path that is too narrow for the other end's own fragments. A lost piece loses the message, which the protocol
 * survives. Pure. Rules: transport.md §6.
 */
import { LIMITS } from "../limits";

/** The first byte of a piece. No frame begins with it. */
const FRAGMENT = 0xf0;
const HEADER_BYTES = 5;
/** The longest message, 16,384 bytes, fits into this many pieces of any datagram that the transports carry. */
const PIECES_MAX = 32;
/** Incomplete messages kept at once. A new one replaces the oldest, so lost pieces cost bounded memory. */
const PARTIAL_MESSAGES_MAX = 8;

export class Fragmenter {
  #messageId = 0;

  /** The datagrams of a message: the message itself if it fits, otherwise its pieces; none if it is too long. */
  split(message: Uint8Array, datagramBytesMax: number): Uint8Array[] {
    if (message.length <= datagramBytesMax) return [message];
    const pieceBytes = datagramBytesMax - HEADER_BYTES;
    const count = Math.ceil(message.length / pieceBytes);
    if (pieceBytes <= 0 || count > PIECES_MAX) return [];
    const id = (this.#messageId = (this.#messageId + 1) & 0xffff);
    return Array.from({ length: count }, (_, index) => {
      const piece = message.subarray(index * pieceBytes, (index + 1) * pieceBytes);
      const datagram = new Uint8Array(HEADER_BYTES + piece.length);
      datagram.set([FRAGMENT, id >> 8, id & 0xff, index, count]);
      datagram.set(piece, HEADER_BYTES);
      return datagram;
    });
  }
}

interface Partial {
  readonly pieces: (Uint8Array | undefined)[];
  missing: number;
  bytes: number;
}

export class Reassembler {
  readonly #partial = new Map<number, Partial>();

  /** The message that the datagram is or completes; undefined while pieces are missing, and for a malformed piece. */
  accept(datagram: Uint8Array): Uint8Array | undefined {
    return datagram[0] === FRAGMENT ? this.#acceptPiece(datagram) : datagram;
  }

  #acceptPiece(datagram: Uint8Array): Uint8Array | undefined {
    if (datagram.length <= HEADER_BYTES) return undefined;
    const [, high, low, index, count] = datagram as unknown as [number, number, number, number, number];
    const id = (high << 8) | low;
    if (count < 2 || count > PIECES_MAX || index >= count) return undefined;
    const message = this.#messageOf(id, count);
    if (message.pieces.length !== count || message.pieces[index]) return undefined;
    message.pieces[index] = datagram.slice(HEADER_BYTES);
    message.missing--;
    message.bytes += datagram.length - HEADER_BYTES;
    if (message.bytes > LIMITS.messageBytesMax) this.#partial.delete(id);
    else if (message.missing === 0) return this.#complete(id, message);
    return undefined;
  }

  #messageOf(id: number, count: number): Partial {
    let message = this.#partial.get(id);
    if (!message) {
      message = { pieces: Array.from({ length: count }, () => undefined), missing: count, bytes: 0 };
      if (this.#partial.size >= PARTIAL_MESSAGES_MAX) this.#partial.delete(this.#partial.keys().next().value!);
      this.#partial.set(id, message);
    }
    return message;
  }

  #complete(id: number, { pieces, bytes }: Partial): Uint8Array {
    this.#partial.delete(id);
    const message = new Uint8Array(bytes);
    let at = 0;
    for (const piece of pieces) {
      message.set(piece!, at);
      at += piece!.length;
    }
    return message;
  }
}
