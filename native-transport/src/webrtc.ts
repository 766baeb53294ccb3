/**
 * WebRTC with one data channel: the server, which is connected to, and the client, which connects. It does no
 * signalling: callers carry offers and answers. docs/spec/transport.md §4.
 */
import { randomBytes } from "node:crypto";
import type { Addon, IceCredentials, NativeRtcClient, NativeRtcServer, RtcAnswer, RtcOffer } from "./addon";
import type { ChannelHandlers, TransportChannel } from "./channel";
import { Hold, OutgoingSessions, Sessions } from "./sessions";

/** RFC 8445 section 5.3 asks for at least 24 and 128 random bits. */
const UFRAG_BYTES = 6;
const PASSWORD_BYTES = 18;

/** Random credentials of one end for one session. */
export function drawIceCredentials(): IceCredentials {
  return {
    ufrag: randomBytes(UFRAG_BYTES).toString("base64"),
    password: randomBytes(PASSWORD_BYTES).toString("base64"),
  };
}

export interface AcceptOptions extends RtcOffer {
  onSession(channel: TransportChannel): ChannelHandlers;
  /** The session ended before it opened. */
  onFailed?(): void;
}

/** A client that has not come yet. */
export interface AwaitedClient {
  /** The SHA-256 of the certificate that the client will see. */
  fingerprint: Uint8Array;
  /** Forgets the client. Changes nothing once the session is open. */
  giveUp(): void;
}

export class RtcServer {
  readonly #native: NativeRtcServer;
  readonly #sessions: Sessions;
  readonly #awaited = new Map<number, AcceptOptions>();
  readonly #hold = new Hold();

  /** Throws when the port is taken. */
  constructor(addon: Addon, host: string, port: number) {
    this.#sessions = new Sessions(() => this.#native, {
      opened: (session, channel) => {
        const client = this.#awaited.get(session);
        this.#awaited.delete(session);
        if (client) channel.handlers = client.onSession(channel);
      },
      failed: (session) => {
        const client = this.#awaited.get(session);
        this.#awaited.delete(session);
        client?.onFailed?.();
      },
    });
    this.#native = new addon.RtcServer(host, port, this.#sessions.wake);
    this.#hold.set(true);
  }

  get port(): number {
    return this.#native.port;
  }

  /** Counts the awaited sessions too. */
  get sessionCount(): number {
    return this.#sessions.size + this.#awaited.size;
  }

  /** Awaits a client. Forgets it when it does not come within 15 s. */
  accept(client: AcceptOptions): AwaitedClient {
    const { fingerprint, ufrag, password } = client;
    const accepted = this.#native.accept({ fingerprint, ufrag, password });
    this.#awaited.set(accepted.session, client);
    const giveUp = (): void => {
      if (this.#awaited.delete(accepted.session)) this.#native.closeSession(accepted.session, "given up");
    };
    return { fingerprint: accepted.fingerprint, giveUp };
  }

  close(): void {
    this.#hold.set(false);
    this.#native.close();
  }
}

export interface RtcConnectOptions extends ChannelHandlers {
  /** Brings our credentials and the SHA-256 of our certificate to the proxy. Resolves to the proxy's answer. */
  sendOffer(own: IceCredentials & { fingerprint: Uint8Array }): Promise<RtcAnswer>;
  signal?: AbortSignal;
}

export class RtcClient {
  readonly #native: NativeRtcClient;
  readonly #outgoing = new OutgoingSessions(() => this.#native);

  constructor(addon: Addon) {
    this.#native = new addon.RtcClient(this.#outgoing.wake);
  }

  /** Rejects with the reason when the session cannot be made, or with the signal's reason. */
  async connect({ sendOffer, signal, ...handlers }: RtcConnectOptions): Promise<TransportChannel> {
    signal?.throwIfAborted();
    const { session, fingerprint } = this.#native.offer();
    const own = drawIceCredentials();
    const opened = this.#outgoing.opened(session, handlers, signal);
    const connect = async (): Promise<void> => {
      const answer = await sendOffer({ ...own, fingerprint });
      if (!signal?.aborted) this.#native.connect(session, own, answer);
    };
    connect().catch((error: Error) => this.#outgoing.giveUp(session, error));
    return opened;
  }

  close(): void {
    this.#outgoing.close();
  }
}
