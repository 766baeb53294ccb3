/**
 * Finds and loads the addon: what was built here, else the package that carries it for this platform. Not the door:
 * that is index.ts.
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
  /** With "opened": the largest datagram that the path is sure to carry. */
  datagramBytesMax?: number;
  /** With "received": datagrams end to end, and their lengths. */
  bytes?: Uint8Array;
  lengths?: Uint32Array;
  /** With "closed". */
  reason?: string;
}

export type Congestion = "delivery" | "bbr" | "cubic";

/**
 * What listener and connector have in common. `wake` (of the constructors) is called when there is something to `take`.
 */
export interface NativeSessions {
  take(): SessionEvent[];
  /** Queues datagrams, end to end in `bytes`. Bytes still welcome; when not above 0, an event "writable" follows. */
  send(session: number, bytes: Uint8Array, lengths: Uint32Array): number;
  /** null when the session is over. */
  stats(session: number): SessionStats | null;
  closeSession(session: number, reason: string): void;
  close(): void;
}

export interface NativeListener extends NativeSessions {
  readonly port: number;
  /** SHA-256 in hex of the certificate shown now and of the one that follows. */
  readonly certificateHashes: string[];
  rotateCertificate(): void;
  drain(): void;
}

export interface NativeConnector extends NativeSessions {
  connect(url: string, certificateHashes: string[]): number;
}

export interface RtcOffer {
  /** SHA-256 of the client's certificate, 32 bytes. */
  fingerprint: Uint8Array;
  /** What the client will name us by in ICE, and what it will sign with. */
  ufrag: string;
  password: string;
}

/** A session's number, and the SHA-256 of the certificate that the other end will be shown. */
export interface RtcSession {
  session: number;
  fingerprint: Uint8Array;
}

export interface NativeRtcListener extends NativeSessions {
  readonly port: number;
  /** The session's event "opened" or "closed" follows. */
  accept(offer: RtcOffer): RtcSession;
}

/** How an end is called in ICE, and what is signed with by who calls it. */
export interface RtcName {
  ufrag: string;
  password: string;
}

/** What a proxy's answer says of it. */
export interface RtcProxy extends RtcName {
  /** SHA-256 of its certificate, 32 bytes. */
  fingerprint: Uint8Array;
  /** IP addresses and ports. */
  candidates: { address: string; port: number }[];
}

export interface NativeRtcCaller extends NativeSessions {
  /** `call` or `closeSession` follows. */
  offer(): RtcSession;
  /** The session's event "opened" or "closed" follows. */
  call(session: number, own: RtcName, proxy: RtcProxy): void;
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

/**
 * The congestion control of one session by itself, for simulations. Times in milliseconds from 0 on, sizes in bytes.
 */
export interface CongestionControl {
  sent(nowMs: number, bytes: number): void;
  /** A packet that was sent at `sentMs` has arrived; `acknowledged` ends what one acknowledgement tells. */
  arrived(nowMs: number, sentMs: number, bytes: number): void;
  acknowledged(nowMs: number, inFlightBytes: number): void;
  lost(nowMs: number, sentMs: number, bytes: number): void;
  /** Bytes that may be in flight. */
  readonly window: number;
}

/** What src/lib.rs exports. */
export interface Addon {
  readonly Listener: new (options: ListenOptions, wake: () => void) => NativeListener;
  readonly Connector: new (congestion: Congestion, wake: () => void) => NativeConnector;
  readonly RtcListener: new (host: string, port: number, wake: () => void) => NativeRtcListener;
  readonly RtcCaller: new (wake: () => void) => NativeRtcCaller;
  readonly CongestionControl: new (packetBytes: number) => CongestionControl;
  path(): string;
}

/** The same from src/ and from dist/. */
const PACKAGE_DIR = join(__dirname, "..");
const PLATFORM_PACKAGE = `@tributary/native-transport-${process.platform}-${process.arch}`;

const requireHere = createRequire(__filename);

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function builtHere(): Addon | string {
  const path = join(PACKAGE_DIR, "build", "native-transport.node");
  if (!existsSync(path))
    return "native-transport/build/native-transport.node is not built (node native-transport/build.mjs builds it, with cargo)";
  try {
    return requireHere(path) as Addon;
  } catch (error) {
    return `native-transport/build/native-transport.node does not load: ${messageOf(error)}`;
  }
}

/** A package of another version may hold another interface, so it is not tried. */
function fromPlatformPackage(): Addon | string {
  let manifest: string;
  try {
    manifest = requireHere.resolve(`${PLATFORM_PACKAGE}/package.json`);
  } catch {
    return `${PLATFORM_PACKAGE} is not installed`;
  }
  const versionIn = (path: string): string => (JSON.parse(readFileSync(path, "utf8")) as { version: string }).version;
  const [got, wanted] = [versionIn(manifest), versionIn(join(PACKAGE_DIR, "package.json"))];
  if (got !== wanted) return `${PLATFORM_PACKAGE} is version ${got}, this is ${wanted}`;
  try {
    return requireHere(PLATFORM_PACKAGE) as Addon;
  } catch (error) {
    return `${PLATFORM_PACKAGE} does not load: ${messageOf(error)}`;
  }
}

/** The addon, or why there is none. TRIBUTARY_NATIVE_TRANSPORT=off makes as if there were none. */
export function loadAddon(): Addon | string {
  if (process.env["TRIBUTARY_NATIVE_TRANSPORT"] === "off") return "TRIBUTARY_NATIVE_TRANSPORT is off";
  const built = builtHere();
  if (typeof built !== "string") return built;
  const packaged = fromPlatformPackage();
  return typeof packaged === "string" ? `${built}; ${packaged}` : packaged;
}
