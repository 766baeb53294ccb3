/**
 * One session's messages on their way between JavaScript and the native part. Datagrams that are sent within one turn
 * of the event loop cross in one call. Longer messages travel in fragments. Which sessions exist is up to sessions.ts.
 */
import { Fragmenter, Reassembler } from "@tributary/protocol";
import type { NativeSessions, SessionStats } from "./addon";

/** One session. */
export interface TransportChannel {
  /** The peer's IP address. */
  readonly address: string;
  /** Queues a message of up to 16,384 bytes. Returns false when the session is over. */
  send(message: Uint8Array): boolean;
  /** Bytes that the queue takes: below 0 when it holds too many. When it is not above 0, `onWritable` follows. */
  readonly room: number;
  /** undefined when the session is over. */
  stats(): SessionStats | undefined;
  /** Ends the session. `onClosed` does not follow. */
  close(reason: string): void;
}

export interface ChannelHandlers {
  onMessage(message: Uint8Array): void;
  onWritable(): void;
  /** Called at most once. */
  onClosed(reason: string): void;
}

/** A batch of datagrams has at most this many bytes. */
const BATCH_BYTES = 64 * 1024;
/** A session takes this many bytes before the native part has said more. */
const ROOM_BYTES_FIRST = 8 * 1024;

export class NativeChannel implements TransportChannel {
  handlers: ChannelHandlers | undefined;
  readonly address: string;
  readonly #fragmenter = new Fragmenter();
  readonly #reassembler = new Reassembler();
  #isOpen = true;
  /** Datagrams that wait for the end of the turn, end to end in `#batch`. */
  #batch = new Uint8Array(8 * 1024);
  #used = 0;
  #lengths: number[] = [];
  #room = ROOM_BYTES_FIRST;

  readonly #native: NativeSessions;
  readonly #session: number;
  readonly #datagramBytesMax: number;
  readonly #forget: () => void;

  constructor(
    native: NativeSessions,
    session: number,
    opened: { datagramBytesMax: number; address: string },
    forget: () => void,
  ) {
    this.#native = native;
    this.#session = session;
    this.#datagramBytesMax = opened.datagramBytesMax;
    this.address = opened.address;
    this.#forget = forget;
  }

  send(message: Uint8Array): boolean {
    if (!this.#isOpen) return false;
    for (const datagram of this.#fragmenter.split(message, this.#datagramBytesMax)) this.#gather(datagram);
    return true;
  }

  get room(): number {
    if (this.#used >= this.#room) this.#flush();
    return this.#room - this.#used;
  }

  stats(): SessionStats | undefined {
    return this.#native.stats(this.#session) ?? undefined;
  }

  close(reason: string): void {
    if (!this.#isOpen) return;
    this.#flush();
    this.#isOpen = false;
    this.#forget();
    this.#native.closeSession(this.#session, reason);
  }

  handleWritable(): void {
    this.#room = Math.max(this.#room, ROOM_BYTES_FIRST);
    this.handlers?.onWritable();
  }

  handleClosed(reason: string): void {
    this.#isOpen = false;
    this.handlers?.onClosed(reason);
  }

  /** `bytes`: datagrams end to end. */
  handleReceived(bytes: Uint8Array, lengths: Uint32Array): void {
    let at = 0;
    for (const length of lengths) {
      const message = this.#reassembler.accept(bytes.subarray(at, at + length));
      at += length;
      if (message && this.#isOpen) this.handlers?.onMessage(message);
    }
  }

  #gather(datagram: Uint8Array): void {
    if (this.#used + datagram.length > BATCH_BYTES) this.#flush();
    if (this.#used + datagram.length > this.#batch.length) {
      const larger = new Uint8Array(BATCH_BYTES);
      larger.set(this.#batch.subarray(0, this.#used));
      this.#batch = larger;
    }
    this.#batch.set(datagram, this.#used);
    this.#used += datagram.length;
    this.#lengths.push(datagram.length);
    if (this.#lengths.length === 1) queueMicrotask(() => this.#flush());
  }

  #flush(): void {
    if (this.#lengths.length === 0 || !this.#isOpen) return;
    this.#room = this.#native.send(this.#session, this.#batch.subarray(0, this.#used), Uint32Array.from(this.#lengths));
    this.#used = 0;
    this.#lengths = [];
  }
}
