/**
 * WebRTC edge: sessions over node-datachannel, all on one UDP port. The client offers and makes the data channel; the
 * proxy answers once, with all its candidates. Knows no frames: that is session.ts. How many connections a session has, and
 * which one carries a message, is associations.ts.
 */
import { randomBytes } from "node:crypto";
import dgram from "node:dgram";
import { isIP } from "node:net";
import { LIMITS } from "@tributary/protocol";
import { IceUdpMuxListener, initLogger, PeerConnection, setSctpSettings, type DataChannel } from "node-datachannel";
import { Associations, type Association } from "./associations";
import type { OpenSession } from "./channel";
import { tameOffer, withCandidate } from "./sdp";

export interface RtcOptions {
  /** Where to listen: an IP address. */
  host: string;
  /** A port that was free a moment ago. */
  udpPort: number;
  /** An address and port told to clients in addition to those of this machine. */
  publicAddress: string | undefined;
  publicUdpPort: number | undefined;
}

/** The offer was not one this proxy can answer. */
export class OfferError extends Error {}

/** No session waits for a connection with that word: there never was one, it was used, or its time is over. */
export class JoinError extends Error {}

/** As the library counts: it takes off the headers of IPv6, UDP, DTLS and SCTP, 108 bytes; what is left is a message and its chunk's header. */
const MTU_BYTES = LIMITS.channelMessageBytesMax + 16 + 108;
/**
 * Bounds what is in flight, and with it what is sent in vain after the client has enough; at 50 ms round trip it is
 * still worth 2.6 MB/s per proxy. It holds only with a message limit as small (the library takes the larger of the two).
 */
const SEND_BUFFER_BYTES = 128 * 1024;
const RECEIVE_BUFFER_BYTES = 256 * 1024;
/** Half of what associations.ts lets wait. */
const WRITABLE_BYTES = 8 * 1024;
const GATHER_MS_MAX = 2000;
const OPEN_MS_MAX = 15_000;
const INVITATION_BYTES = 16;

let librarySet = false;

/**
 * Settings of the library as a whole: they count only before its first connection. Its lesser messages quote what clients
 * sent, addresses included, which must not be logged.
 */
function setLibrary(onWarning: (message: string) => void): void {
  if (librarySet) return;
  librarySet = true;
  setSctpSettings({
    sendBufferSize: SEND_BUFFER_BYTES, recvBufferSize: RECEIVE_BUFFER_BYTES, initialCongestionWindow: 10, delayedSackTime: 20,
  });
  initLogger("Fatal", (_level, message) => onWarning(message));
}

/** A UDP port that is free now; `port` itself unless it is 0. Rejects when it is taken. */
export function pickUdpPort(port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = dgram.createSocket(isIP(host) === 6 ? "udp6" : "udp4");
    socket.once("error", (error) => {
      socket.close();
      reject(error);
    });
    socket.bind(port, host, () => {
      const bound = socket.address().port;
      socket.close(() => resolve(bound));
    });
  });
}

export class Rtc {
  private readonly listener: IceUdpMuxListener;
  private readonly bindAddress: string | undefined;
  private readonly connections = new Set<PeerConnection>();
  /** Sessions that may have another connection, by the word that brings it. */
  private readonly invitations = new Map<string, Associations>();

  /** Throws when the UDP port is taken. Holds it until `close`. */
  constructor(private readonly options: RtcOptions, onWarning: (message: string) => void) {
    setLibrary(onWarning);
    this.bindAddress = options.host === "::" ? undefined : options.host;
    this.listener = new IceUdpMuxListener(options.udpPort, this.bindAddress);
  }

  get connectionCount(): number {
    return this.connections.size;
  }

  /**
   * Answers `offer`; rejects with an `OfferError` or a `JoinError`. `onSession` is called when the client's channel opens, unless
   * the connection is to `join` a session that is there. Of a connection that is over, or that nothing came of, nothing is left.
   */
  async accept(id: string, offer: string, onSession: OpenSession, join?: string): Promise<string> {
    const associations = join === undefined ? this.newSession() : this.takeInvitation(join);
    const connection = this.makeConnection(id);
    this.connections.add(connection);
    let gone = false;
    let association: Association | undefined;
    const leave = (reason: string): void => {
      if (gone) return;
      gone = true;
      clearTimeout(opening);
      this.connections.delete(connection);
      setImmediate(() => connection.close());
      if (association) associations.remove(association, reason);
    };
    const opening = setTimeout(() => leave("no channel was opened in time"), OPEN_MS_MAX);
    connection.onStateChange((state) => {
      if (state === "closed" || state === "failed") leave(`connection ${state}`);
    });
    connection.onDataChannel((dataChannel) => {
      if (association || gone) return dataChannel.close();
      clearTimeout(opening);
      association = associationOf(connection, dataChannel, leave);
      if (!associations.add(association, onSession)) return leave("the session is over, or has connections enough");
      serve(dataChannel, association, associations, leave);
    });
    try {
      return this.withPublicCandidate(await answerTo(connection, offer));
    } catch (error) {
      leave("offer refused");
      throw error;
    }
  }

  close(): void {
    for (const connection of this.connections) connection.close();
    this.connections.clear();
    this.listener.stop();
  }

  private newSession(): Associations {
    const associations: Associations = new Associations({ invite: () => this.invite(associations) });
    return associations;
  }

  private invite(associations: Associations): string {
    const word = randomBytes(INVITATION_BYTES).toString("hex");
    this.invitations.set(word, associations);
    setTimeout(() => this.invitations.delete(word), OPEN_MS_MAX).unref();
    return word;
  }

  private takeInvitation(word: string): Associations {
    const associations = this.invitations.get(word);
    this.invitations.delete(word);
    if (!associations) throw new JoinError("No session waits for another connection by that word.");
    return associations;
  }

  private makeConnection(id: string): PeerConnection {
    return new PeerConnection(id, {
      iceServers: [],
      enableIceUdpMux: true,
      portRangeBegin: this.options.udpPort,
      portRangeEnd: this.options.udpPort,
      mtu: MTU_BYTES,
      maxMessageSize: LIMITS.messageBytesMax,
      ...(this.bindAddress === undefined ? {} : { bindAddress: this.bindAddress }),
    });
  }

  private withPublicCandidate(answer: string): string {
    const { publicAddress, publicUdpPort, udpPort } = this.options;
    return publicAddress === undefined ? answer : withCandidate(answer, publicAddress, publicUdpPort ?? udpPort);
  }
}

function answerTo(connection: PeerConnection, offer: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new OfferError("The answer could not be made in time.")), GATHER_MS_MAX);
    connection.onGatheringStateChange((state) => {
      const answer = state === "complete" ? connection.localDescription()?.sdp : undefined;
      if (answer === undefined) return;
      clearTimeout(late);
      resolve(answer);
    });
    try {
      connection.setRemoteDescription(tameOffer(offer), "offer");
    } catch {
      clearTimeout(late);
      reject(new OfferError("The offer is not an SDP with one data channel section that this proxy can answer."));
    }
  });
}

function associationOf(connection: PeerConnection, dataChannel: DataChannel, leave: (reason: string) => void): Association {
  return {
    send: (message) => trySend(dataChannel, message),
    get queuedBytes() {
      return dataChannel.isOpen() ? dataChannel.bufferedAmount() : 0;
    },
    get rttMs() {
      const rttMs = dataChannel.isOpen() ? connection.rtt() : -1;
      return rttMs < 0 ? undefined : rttMs;
    },
    close: () => leave("closed by the proxy"),
  };
}

function serve(dataChannel: DataChannel, association: Association, associations: Associations, leave: (reason: string) => void): void {
  dataChannel.setBufferedAmountLowThreshold(WRITABLE_BYTES);
  dataChannel.onBufferedAmountLow(() => associations.handleWritable());
  dataChannel.onMessage((message) => associations.handleMessage(association, messageOf(message)));
  dataChannel.onClosed(() => leave("channel closed"));
}

/** The library throws when the channel is not open, as when the other end has just gone; thrown into one of its own callbacks, that would end the process. */
function trySend(dataChannel: DataChannel, message: Uint8Array | string): boolean {
  try {
    return typeof message === "string" ? dataChannel.sendMessage(message) : dataChannel.sendMessageBinary(message);
  } catch {
    return false;
  }
}

function messageOf(message: string | Buffer | ArrayBuffer): Uint8Array | string {
  return message instanceof ArrayBuffer ? new Uint8Array(message) : message;
}
