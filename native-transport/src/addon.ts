/**
 * Finds and loads the addon: the one that was built here, else the one in this platform's package. Also declares its
 * interface, which src/lib.rs implements. The door is index.ts.
 */
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

export interface SessionStats {
  rttMs: number;
  sentPackets: number;
  lostPackets: number;
  windowBytes: number;
}

export interface SessionEvent {
  session: number;
  kind: "opened" | "received" | "writable" | "closed";
  /** "opened": the largest datagram that the session carries. */
  datagramBytesMax?: number;
  /** "opened": the peer's IP address. */
  address?: string;
  /** "received": datagrams end to end, and their lengths. */
  bytes?: Uint8Array;
  lengths?: Uint32Array;
  /** "closed". */
  reason?: string;
}

export type Congestion = "delivery" | "bbr" | "cubic";

/** What servers and clients have in common. Their constructors take `wake`, which is called when there are events. */
export interface NativeSessions {
  /** All events since the last call. */
  take(): SessionEvent[];
  /**
   * Queues datagrams that lie end to end in `bytes`. Returns the bytes that the queue still takes. When the result is
   * not above 0, an event "writable" follows.
   */
  send(session: number, bytes: Uint8Array, lengths: Uint32Array): number;
  /** null when the session is over. */
  stats(session: number): SessionStats | null;
  closeSession(session: number, reason: string): void;
  close(): void;
}

export interface NativeWebTransportServer extends NativeSessions {
  readonly port: number;
  /** SHA-256 in lower-case hex of the certificate that is shown and of the next one. */
  readonly certificateHashes: string[];
  rotateCertificate(): void;
  drain(): void;
}

export interface NativeWebTransportClient extends NativeSessions {
  /** Returns the session's number. An event "opened" or "closed" follows. */
  connect(url: string, certificateHashes: string[]): number;
}

/** An end's name in ICE, and the key with which the other end signs its checks (RFC 8445 section 5.3). */
export interface IceCredentials {
  /** Must be new for each session. */
  ufrag: string;
  /** Secret. */
  password: string;
}

/** A client's offer, with the credentials that our answer gives to the client. */
export interface RtcOffer extends IceCredentials {
  /** SHA-256 of the client's certificate, 32 bytes. */
  fingerprint: Uint8Array;
}

/** A session's number, and the SHA-256 of the certificate that the other end will see. */
export interface RtcSession {
  session: number;
  fingerprint: Uint8Array;
}

export interface NativeRtcServer extends NativeSessions {
  readonly port: number;
  /** An event "opened" or "closed" follows for the session. */
  accept(offer: RtcOffer): RtcSession;
}

/** A proxy's answer. */
export interface RtcAnswer extends IceCredentials {
  /** SHA-256 of the proxy's certificate, 32 bytes. */
  fingerprint: Uint8Array;
  /** IP addresses and ports. */
  candidates: { address: string; port: number }[];
}

export interface NativeRtcClient extends NativeSessions {
  /** `connect` or `closeSession` must follow. */
  offer(): RtcSession;
  /** `own`: the credentials in the offer. An event "opened" or "closed" follows for the session. */
  connect(session: number, own: IceCredentials, answer: RtcAnswer): void;
}

export interface ListenOptions {
  /** IP address. */
  host: string;
  port: number;
  /** Goes into the certificates. */
  name: string;
  sessionsMax: number;
  congestion: Congestion;
}

/** The congestion controller of one session alone, for simulations. Times are milliseconds from 0 on. */
export interface CongestionControl {
  sent(nowMs: number, bytes: number): void;
  /** The packet that was sent at `sentMs` has arrived. `acknowledged` must follow at the acknowledgement's end. */
  arrived(nowMs: number, sentMs: number, bytes: number): void;
  acknowledged(nowMs: number, inFlightBytes: number): void;
  lost(nowMs: number, sentMs: number, bytes: number): void;
  /** Bytes that may be in flight. */
  readonly window: number;
}

/** What src/lib.rs exports. */
export interface Addon {
  readonly WebTransportServer: new (options: ListenOptions, wake: () => void) => NativeWebTransportServer;
  readonly WebTransportClient: new (congestion: Congestion, wake: () => void) => NativeWebTransportClient;
  readonly RtcServer: new (host: string, port: number, wake: () => void) => NativeRtcServer;
  readonly RtcClient: new (wake: () => void) => NativeRtcClient;
  readonly CongestionControl: new (packetBytes: number) => CongestionControl;
  /** The path on which a WebTransport server takes sessions. */
  path(): string;
}

/** Works from src/ and from dist/. */
const PACKAGE_DIR = join(__dirname, "..");
const PLATFORM_PACKAGE = `@tributary/native-transport-${process.platform}-${process.arch}`;

const HOW_TO_BUILD = "(node native-transport/build.mjs builds it, with cargo)";

const requireHere = createRequire(__filename);

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function builtHere(): Addon | string {
  const path = join(PACKAGE_DIR, "build", "native-transport.node");
  if (!existsSync(path)) return `native-transport/build/native-transport.node is not built ${HOW_TO_BUILD}`;
  try {
    const addon = requireHere(path) as Partial<Addon>;
    // Older sources may have another interface.
    if (!addon.WebTransportServer) return `native-transport/build/native-transport.node is out of date ${HOW_TO_BUILD}`;
    return addon as Addon;
  } catch (error) {
    return `native-transport/build/native-transport.node does not load: ${messageOf(error)}`;
  }
}

/** Refuses a package of another version, because its interface may differ. */
function fromPlatformPackage(): Addon | string {
  let manifest: string;
  try {
    manifest = requireHere.resolve(`${PLATFORM_PACKAGE}/package.json`);
  } catch {
    return `${PLATFORM_PACKAGE} is not installed`;
  }
  const versionIn = (path: string): string => (JSON.parse(readFileSync(path, "utf8")) as { version: string }).version;
  const [got, wanted] = [versionIn(manifest), versionIn(join(PACKAGE_DIR, "package.json"))];
  if (got !== wanted) return `${PLATFORM_PACKAGE} must be version ${wanted}, got ${got}`;
  try {
    return requireHere(PLATFORM_PACKAGE) as Addon;
  } catch (error) {
    return `${PLATFORM_PACKAGE} does not load: ${messageOf(error)}`;
  }
}

/** The addon, or the reason why it is missing. TRIBUTARY_NATIVE_TRANSPORT=off turns it off. */
export function loadAddon(): Addon | string {
  if (process.env["TRIBUTARY_NATIVE_TRANSPORT"] === "off") return "TRIBUTARY_NATIVE_TRANSPORT is off";
  const built = builtHere();
  if (typeof built !== "string") return built;
  const packaged = fromPlatformPackage();
  return typeof packaged === "string" ? `${built}; ${packaged}` : packaged;
}
