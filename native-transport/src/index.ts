/**
 * The door to the native transports on Node, where they are built: sessions over HTTP/3 datagrams, as server
 * (`WebTransportServer`) and as client (`WebTransportClient`), and over WebRTC (`RtcServer`, `RtcCaller`).
 * Datagrams that are sent within one turn of the event loop cross into the native part in one call, and all that came
 * meanwhile crosses back in one. Longer messages travel in pieces.
 */
import { Fragmenter, Reassembler } from "@tributary/protocol";
import { randomBytes } from "node:crypto";
import {
  loadAddon,
  type Addon,
  type Congestion,
  type CongestionControl,
  type NativeConnector,
  type NativeRtcCaller,
  type NativeSessions,
  type RtcName,
  type RtcProxy,
  type SessionEvent,
  type SessionStats,
} from "./addon";

export { fingerprintLine, readFingerprint, sdpValue } from "./sdp";
export type { Congestion, CongestionControl, RtcName, RtcProxy, SessionStats } from "./addon";

/** One session. */
export interface TransportChannel {
  /** Queues a message of up to 16,384 bytes; false when the session is over. */
  send(message: Uint8Array): boolean;
  /** Bytes that are welcome; when not above 0, `onWritable` follows. Below 0 when too many were queued. */
  readonly room: number;
  /** undefined when the session is over. */
  stats(): SessionStats | undefined;
  /** `onClosed` does not follow. */
  close(reason: string): void;
}

export interface ChannelHandlers {
  onMessage(message: Uint8Array): void;
  onWritable(): void;
  /** At most once. */
  onClosed(reason: string): void;
}

/** The native part, or why there is none: in one sentence, for a log. */
export type NativeTransportResult =
  { readonly native: NativeTransport } | { readonly native: undefined; readonly reason: string };

export function loadNativeTransport(): NativeTransportResult {
  const addon = loadAddon();
  return typeof addon === "string" ? { native: undefined, reason: addon } : { native: new NativeTransport(addon) };
}

export interface ServerOptions {
  /** IP address to listen on. */
  host: string;
  /** 0 = any. */
  port: number;
  /** The address by which clients come; goes into the certificates. */
  name: string;
  sessionsMax: number;
  /** Default `delivery`: docs/spec/transport.md. */
  congestion?: Congestion;
  onSession(channel: TransportChannel): ChannelHandlers;
}

export class NativeTransport {
  readonly #addon: Addon;

  constructor(addon: Addon) {
    this.#addon = addon;
  }

  /** Throws when the port is taken. */
  listen(options: ServerOptions): WebTransportServer {
    return new WebTransportServer(this.#addon, options);
  }

  /** Throws when the port is taken. */
  listenRtc(host: string, port: number): RtcServer {
    return new RtcServer(this.#addon, host, port);
  }

  client(congestion: Congestion = "delivery"): WebTransportClient {
    return new WebTransportClient(this.#addon, congestion);
  }

  rtcCaller(): RtcCaller {
    return new RtcCaller(this.#addon);
  }

  congestionControl(packetBytes: number): CongestionControl {
    return new this.#addon.CongestionControl(packetBytes);
  }
}

/** What is sent in one turn goes over in pieces of at most this. */
const BATCH_BYTES = 64 * 1024;
/** What a session is sure to take before the native part has said more. */
const ROOM_BYTES_FIRST = 8 * 1024;

/** A session's messages on their way out, gathered until the turn ends. */
class NativeChannel implements TransportChannel {
  readonly #fragmenter = new Fragmenter();
  readonly reassembler = new Reassembler();
  #batch = new Uint8Array(8 * 1024);
  #used = 0;
  #lengths: number[] = [];
  #welcome = ROOM_BYTES_FIRST;
  handlers: ChannelHandlers | undefined;
  isOpen = true;

  readonly #native: NativeSessions;
  readonly #session: number;
  readonly #datagramBytesMax: number;
  readonly #forget: () => void;

  constructor(native: NativeSessions, session: number, datagramBytesMax: number, forget: () => void) {
    this.#native = native;
    this.#session = session;
    this.#datagramBytesMax = datagramBytesMax;
    this.#forget = forget;
  }

  send(message: Uint8Array): boolean {
    if (!this.isOpen) return false;
    for (const datagram of this.#fragmenter.split(message, this.#datagramBytesMax)) this.#gather(datagram);
    return true;
  }

  get room(): number {
    if (this.#used >= this.#welcome) this.#flush();
    return this.#welcome - this.#used;
  }

  stats(): SessionStats | undefined {
    return this.#native.stats(this.#session) ?? undefined;
  }

  close(reason: string): void {
    if (!this.isOpen) return;
    this.#flush();
    this.isOpen = false;
    this.#forget();
    this.#native.closeSession(this.#session, reason);
  }

  handleWritable(): void {
    this.#welcome = Math.max(this.#welcome, ROOM_BYTES_FIRST);
    this.handlers?.onWritable();
  }

  handleClosed(reason: string): void {
    this.isOpen = false;
    this.handlers?.onClosed(reason);
  }

  handleReceived(bytes: Uint8Array, lengths: Uint32Array): void {
    let at = 0;
    for (const length of lengths) {
      const message = this.reassembler.accept(bytes.subarray(at, at + length));
      at += length;
      if (message && this.isOpen) this.handlers?.onMessage(message);
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
    if (this.#lengths.length === 0 || !this.isOpen) return;
    this.#welcome = this.#native.send(
      this.#session,
      this.#batch.subarray(0, this.#used),
      Uint32Array.from(this.#lengths),
    );
    this.#used = 0;
    this.#lengths = [];
  }
}

/** Keeps the process alive, which the native part's threads do not, while something is awaited. */
class Hold {
  #timer: NodeJS.Timeout | undefined;

  set(isHeld: boolean): void {
    if (isHeld) this.#timer ??= setInterval(() => undefined, 2 ** 30);
    else {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }
}

/** The sessions of a listener or a connector, and what the native part tells of them. */
class Channels {
  readonly #open = new Map<number, NativeChannel>();

  readonly #native: () => NativeSessions;
  readonly #hooks: {
    opened(session: number, channel: NativeChannel): void;
    failed(session: number, reason: string): unknown;
    ended?(): void;
  };

  constructor(
    native: () => NativeSessions,
    hooks: {
      opened(session: number, channel: NativeChannel): void;
      failed(session: number, reason: string): unknown;
      ended?(): void;
    },
  ) {
    this.#native = native;
    this.#hooks = hooks;
  }

  /** To be called whenever the native part wakes us. */
  readonly take = (): void => {
    for (const event of this.#native().take()) this.#dispatch(event);
  };

  get size(): number {
    return this.#open.size;
  }

  #dispatch({ session, kind, datagramBytesMax = 0, bytes, lengths, reason = "" }: SessionEvent): void {
    const channel = this.#open.get(session);
    if (kind === "opened") {
      const made = new NativeChannel(this.#native(), session, datagramBytesMax, () => this.#forget(session));
      this.#open.set(session, made);
      this.#hooks.opened(session, made);
    } else if (kind === "received") channel?.handleReceived(bytes!, lengths!);
    else if (kind === "writable") channel?.handleWritable();
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

export class WebTransportServer {
  readonly #native;
  readonly #channels: Channels;

  constructor(addon: Addon, { onSession, congestion = "delivery", ...options }: ServerOptions) {
    this.#channels = new Channels(() => this.#native, {
      opened: (_, channel) => (channel.handlers = onSession(channel)),
      failed: () => undefined,
    });
    this.#native = new addon.Listener({ ...options, congestion }, this.#channels.take);
    this.path = addon.path();
    this.#hold.set(true);
  }

  readonly #hold = new Hold();

  /** Of the URL that clients connect to. */
  readonly path: string;

  get port(): number {
    return this.#native.port;
  }

  /** Lower-case hex: of the certificate shown now, and of the one that the next rotation will show. */
  get certificateHashes(): string[] {
    return this.#native.certificateHashes;
  }

  get sessionCount(): number {
    return this.#channels.size;
  }

  /** New connections see the next certificate. Due every few days: certificates live 11. */
  rotateCertificate(): void {
    this.#native.rotateCertificate();
  }

  /** Takes no new sessions. */
  drain(): void {
    this.#native.drain();
  }

  close(): void {
    this.#hold.set(false);
    this.#native.close();
  }
}

/** Who wants to connect over WebRTC, and what is to become of it. */
export interface RtcClient {
  /** SHA-256 of its certificate, 32 bytes. */
  fingerprint: Uint8Array;
  /** By which it will call us in ICE, and sign: not used before, and secret. */
  ufrag: string;
  password: string;
  onSession(channel: TransportChannel): ChannelHandlers;
}

/** The end of WebRTC that is connected to, without its signalling. */
export class RtcServer {
  readonly #native;
  readonly #channels: Channels;
  readonly #awaited = new Map<number, RtcClient>();
  readonly #hold = new Hold();

  constructor(addon: Addon, host: string, port: number) {
    this.#channels = new Channels(() => this.#native, {
      opened: (session, channel) => {
        const client = this.#awaited.get(session);
        this.#awaited.delete(session);
        if (client) channel.handlers = client.onSession(channel);
      },
      failed: (session) => this.#awaited.delete(session),
    });
    this.#native = new addon.RtcListener(host, port, this.#channels.take);
    this.#hold.set(true);
  }

  get port(): number {
    return this.#native.port;
  }

  /** Those that are to come, too. */
  get sessionCount(): number {
    return this.#channels.size + this.#awaited.size;
  }

  /** SHA-256 of the certificate that the client will be shown. When it does not come within 15 s it is forgotten. */
  accept(client: RtcClient): Uint8Array {
    const { fingerprint, ufrag, password } = client;
    const accepted = this.#native.accept({ fingerprint, ufrag, password });
    this.#awaited.set(accepted.session, client);
    return accepted.fingerprint;
  }

  close(): void {
    this.#hold.set(false);
    this.#native.close();
  }
}

interface Attempt {
  resolve(channel: NativeChannel): void;
  reject(error: Error): void;
}

/** Sessions that this end makes. */
class Outgoing {
  readonly #channels: Channels;
  readonly #attempts = new Map<number, Attempt>();
  readonly #hold = new Hold();

  readonly #native: () => NativeSessions;

  constructor(native: () => NativeSessions) {
    this.#native = native;

    this.#channels = new Channels(native, {
      opened: (session, channel) => this.#attempts.get(session)?.resolve(channel),
      failed: (session, reason) => this.#fail(session, new Error(reason)),
      ended: () => this.#keepAlive(),
    });
  }

  /** To be called whenever the native part wakes us. */
  readonly take = (): void => this.#channels.take();

  /** The session, once it is open. Rejects with the reason when it could not be made, or with the signal's. */
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
    this.#hold.set(this.#attempts.size + this.#channels.size > 0);
  }
}

export interface ConnectOptions extends ChannelHandlers {
  url: string;
  /** Lower-case hex, SHA-256. */
  certificateHashes: readonly string[];
  signal?: AbortSignal;
}

export class WebTransportClient {
  readonly #native: NativeConnector;
  readonly #outgoing = new Outgoing(() => this.#native);

  constructor(addon: Addon, congestion: Congestion) {
    this.#native = new addon.Connector(congestion, this.#outgoing.take);
  }

  /** Rejects with the reason when no session could be made, or with the signal's. */
  async connect({ url, certificateHashes, signal, ...handlers }: ConnectOptions): Promise<TransportChannel> {
    signal?.throwIfAborted();
    return this.#outgoing.opened(this.#native.connect(url, [...certificateHashes]), handlers, signal);
  }

  close(): void {
    this.#outgoing.close();
  }
}

export interface CallOptions extends ChannelHandlers {
  /** Brings what names us to the proxy, with the SHA-256 of our certificate, and what names it back. */
  exchange(own: RtcName & { fingerprint: Uint8Array }): Promise<RtcProxy>;
  signal?: AbortSignal;
}

/** RFC 8445 section 5.3 asks for 24 and 128 bits at least. */
const UFRAG_BYTES = 6;
const PASSWORD_BYTES = 18;

/** How an end calls itself, for one session. */
export function drawRtcName(): RtcName {
  return {
    ufrag: randomBytes(UFRAG_BYTES).toString("base64"),
    password: randomBytes(PASSWORD_BYTES).toString("base64"),
  };
}

/** The end of WebRTC that connects, without its signalling. */
export class RtcCaller {
  readonly #native: NativeRtcCaller;
  readonly #outgoing = new Outgoing(() => this.#native);

  constructor(addon: Addon) {
    this.#native = new addon.RtcCaller(this.#outgoing.take);
  }

  /** Rejects with the reason when no session could be made, or with the signal's. */
  async connect({ exchange, signal, ...handlers }: CallOptions): Promise<TransportChannel> {
    signal?.throwIfAborted();
    const { session, fingerprint } = this.#native.offer();
    const own = drawRtcName();
    const opened = this.#outgoing.opened(session, handlers, signal);
    const call = async (): Promise<void> => {
      const proxy = await exchange({ ...own, fingerprint });
      if (!signal?.aborted) this.#native.call(session, own, proxy);
    };
    call().catch((error: Error) => this.#outgoing.giveUp(session, error));
    return opened;
  }

  close(): void {
    this.#outgoing.close();
  }
}
