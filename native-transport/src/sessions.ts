/**
 * The sessions of a server or a client of the native part: hands its events to their channels. It carries no messages:
 * that is channel.ts.
 */
import type { NativeSessions, SessionEvent } from "./addon";
import { NativeChannel, type ChannelHandlers, type TransportChannel } from "./channel";

/** Keeps the process alive while sessions are awaited or open. The threads of the native part do not. */
export class Hold {
  #timer: NodeJS.Timeout | undefined;

  set(isHeld: boolean): void {
    if (isHeld) this.#timer ??= setInterval(() => undefined, 2 ** 30);
    else {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }
}

interface SessionHooks {
  opened(session: number, channel: NativeChannel): void;
  /** The session ended before it opened. */
  failed(session: number, reason: string): unknown;
  ended?(): void;
}

/** Of the session with most of them, this many datagrams are handed on before it is another session's turn. */
const TURN_DATAGRAMS = 16;

export class Sessions {
  readonly #open = new Map<number, NativeChannel>();
  readonly #native: () => NativeSessions;
  readonly #hooks: SessionHooks;

  /** `native` is called only after the constructor of the native object has returned. */
  constructor(native: () => NativeSessions, hooks: SessionHooks) {
    this.#native = native;
    this.#hooks = hooks;
  }

  /** The native part calls this when there are events. */
  readonly wake = (): void => {
    const received: SessionEvent[] = [];
    for (const event of this.#native().take()) {
      if (event.kind === "received") received.push(event);
      else {
        this.#handOn(received.splice(0));
        this.#dispatch(event);
      }
    }
    this.#handOn(received);
  };

  get size(): number {
    return this.#open.size;
  }

  /**
   * Hands on datagrams in about the order in which they came. A busy process finds many of each session. If it took
   * them session by session, the last session would seem silent meanwhile.
   */
  #handOn(received: readonly SessionEvent[]): void {
    const inboxes = received.map(({ session, bytes, lengths }) => ({
      channel: this.#open.get(session),
      bytes: bytes!,
      lengths: lengths!,
      given: 0,
    }));
    const turns = Math.ceil(Math.max(0, ...inboxes.map(({ lengths }) => lengths.length)) / TURN_DATAGRAMS);
    for (let turn = 1; turn <= turns; turn++)
      for (const inbox of inboxes) {
        const { channel, bytes, lengths, given } = inbox;
        inbox.given = Math.floor((lengths.length * turn) / turns);
        const now = lengths.subarray(given, inbox.given);
        const nowBytes = now.reduce((sum, length) => sum + length, 0);
        channel?.handleReceived(bytes.subarray(0, nowBytes), now);
        inbox.bytes = bytes.subarray(nowBytes);
      }
  }

  #dispatch({ session, kind, datagramBytesMax = 0, address = "", reason = "" }: SessionEvent): void {
    const channel = this.#open.get(session);
    if (kind === "opened") {
      const made = new NativeChannel(this.#native(), session, { datagramBytesMax, address }, () =>
        this.#forget(session),
      );
      this.#open.set(session, made);
      this.#hooks.opened(session, made);
    } else if (kind === "writable") channel?.handleWritable();
    else if (channel) {
      this.#forget(session);
      channel.handleClosed(reason);
    } else this.#hooks.failed(session, reason);
  }

  #forget(session: number): void {
    this.#open.delete(session);
    this.#hooks.ended?.();
  }
}

interface Attempt {
  resolve(channel: NativeChannel): void;
  reject(error: Error): void;
}

/** Sessions that this end makes. */
export class OutgoingSessions {
  readonly #sessions: Sessions;
  readonly #attempts = new Map<number, Attempt>();
  readonly #hold = new Hold();
  readonly #native: () => NativeSessions;

  constructor(native: () => NativeSessions) {
    this.#native = native;
    this.#sessions = new Sessions(native, {
      opened: (session, channel) => this.#attempts.get(session)?.resolve(channel),
      failed: (session, reason) => this.#fail(session, new Error(reason)),
      ended: () => this.#keepAlive(),
    });
  }

  /** The native part calls this when there are events. */
  readonly wake = (): void => this.#sessions.wake();

  /**
   * Resolves when the session is open. Rejects with the reason when it cannot be made, or with the signal's reason.
   */
  opened(session: number, handlers: ChannelHandlers, signal: AbortSignal | undefined): Promise<TransportChannel> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        this.#attempts.delete(session);
        signal?.removeEventListener("abort", onAbort);
        this.#keepAlive();
      };
      const onAbort = (): void => this.giveUp(session, signal!.reason as Error);
      signal?.addEventListener("abort", onAbort);
      this.#attempts.set(session, {
        resolve: (channel) => {
          end();
          channel.handlers = handlers;
          resolve(channel);
        },
        reject: (error) => {
          end();
          reject(error);
        },
      });
      this.#keepAlive();
    });
  }

  giveUp(session: number, reason: Error): void {
    if (!this.#attempts.has(session)) return;
    this.#native().closeSession(session, "given up");
    this.#fail(session, reason);
  }

  close(): void {
    this.#hold.set(false);
    this.#native().close();
  }

  #fail(session: number, reason: Error): void {
    this.#attempts.get(session)?.reject(reason);
  }

  #keepAlive(): void {
    this.#hold.set(this.#attempts.size + this.#sessions.size > 0);
  }
}
