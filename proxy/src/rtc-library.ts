/** WebRTC edge without the native part. It uses node-datachannel and the congestion control of its SCTP. */
import { Fragmenter, LIMITS, Reassembler } from "@tributary/protocol";
import { IceUdpMuxListener, initLogger, PeerConnection, setSctpSettings, type DataChannel } from "node-datachannel";
import type { Channel, ChannelHandlers, OpenSession } from "./channel";
import { OfferError, type Rtc, type RtcOptions } from "./rtc-server";
import { tameOffer, withCandidate } from "./sdp";

/**
 * The library subtracts 108 bytes for the headers of IPv6, UDP, DTLS and SCTP. The rest holds a message and the 16-byte
 * header of its SCTP chunk.
 */
const MTU_BYTES = LIMITS.channelMessageBytesMax + 16 + 108;
/**
 * Bounds the bytes in flight, and so the bytes that arrive after the client has enough. At a round trip of 50 ms it
 * still allows 2.6 MB/s per proxy. The library uses the larger of this and the message limit, so the message limit is
 * small too.
 */
const SEND_BUFFER_BYTES = 128 * 1024;
const RECEIVE_BUFFER_BYTES = 256 * 1024;
/** The queue of a channel is short, so that data waits in its sender, which can still choose what to send. */
const QUEUE_BYTES_MAX = 16 * 1024;
const GATHER_MS_MAX = 2000;
const OPEN_MS_MAX = 15_000;

let librarySet = false;

/**
 * Sets the options of the library, which takes them only before its first connection. Only fatal messages are logged,
 * because the others quote what clients sent, including addresses.
 */
function setLibrary(onWarning: (message: string) => void): void {
  if (librarySet) return;
  librarySet = true;
  setSctpSettings({
    sendBufferSize: SEND_BUFFER_BYTES,
    recvBufferSize: RECEIVE_BUFFER_BYTES,
    initialCongestionWindow: 10,
    delayedSackTime: 20,
  });
  initLogger("Fatal", (_level, message) => onWarning(message));
}

export class LibraryRtc implements Rtc {
  readonly #listener: IceUdpMuxListener;
  readonly #bindAddress: string | undefined;
  readonly #connections = new Set<PeerConnection>();
  /** Ends each connection that has no channel yet, by the id of its offer. */
  readonly #awaited = new Map<string, () => void>();

  readonly #options: RtcOptions;

  /** Throws when the UDP port is taken. Keeps the port until `close`. */
  constructor(options: RtcOptions, onWarning: (message: string) => void) {
    this.#options = options;

    setLibrary(onWarning);
    this.#bindAddress = options.host === "::" ? undefined : options.host;
    this.#listener = new IceUdpMuxListener(options.udpPort, this.#bindAddress);
  }

  get connectionCount(): number {
    return this.#connections.size;
  }

  async accept(id: string, offer: string, onSession: OpenSession, onFailed?: () => void): Promise<string> {
    const connection = this.#makeConnection(id);
    this.#connections.add(connection);
    let gone = false;
    let handlers: ChannelHandlers | undefined;
    const end = (): void => {
      gone = true;
      clearTimeout(opening);
      this.#connections.delete(connection);
      this.#awaited.delete(id);
      setImmediate(() => connection.close());
    };
    const leave = (reason: string): void => {
      if (gone) return;
      end();
      if (handlers) handlers.handleClosed(reason);
      else onFailed?.();
    };
    this.#awaited.set(id, () => leave("given up"));
    const opening = setTimeout(() => leave(`no channel opened within ${OPEN_MS_MAX} ms`), OPEN_MS_MAX);
    connection.onStateChange((state) => {
      if (state === "closed" || state === "failed") leave(`connection ${state}`);
    });
    connection.onDataChannel((dataChannel) => {
      if (handlers || gone) return dataChannel.close();
      clearTimeout(opening);
      this.#awaited.delete(id);
      const { address = "" } = connection.getSelectedCandidatePair()?.remote ?? {};
      const session = (handlers = onSession(channelOf(connection, dataChannel, end), address));
      serve(dataChannel, session, leave);
    });
    try {
      return this.#withPublicCandidate(await answerTo(connection, offer));
    } catch (error) {
      leave("offer refused");
      throw error;
    }
  }

  giveUp(id: string): void {
    this.#awaited.get(id)?.();
  }

  close(): void {
    for (const connection of this.#connections) connection.close();
    this.#connections.clear();
    this.#listener.stop();
  }

  #makeConnection(id: string): PeerConnection {
    return new PeerConnection(id, {
      iceServers: [],
      enableIceUdpMux: true,
      portRangeBegin: this.#options.udpPort,
      portRangeEnd: this.#options.udpPort,
      mtu: MTU_BYTES,
      maxMessageSize: LIMITS.messageBytesMax,
      ...(this.#bindAddress === undefined ? {} : { bindAddress: this.#bindAddress }),
    });
  }

  #withPublicCandidate(answer: string): string {
    const { publicAddress, publicUdpPort, udpPort } = this.#options;
    return publicAddress === undefined ? answer : withCandidate(answer, publicAddress, publicUdpPort ?? udpPort);
  }
}

function answerTo(connection: PeerConnection, offer: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const tooLate = new OfferError(`The proxy could not make an answer within ${GATHER_MS_MAX} ms.`);
    const late = setTimeout(() => reject(tooLate), GATHER_MS_MAX);
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

function channelOf(connection: PeerConnection, dataChannel: DataChannel, close: () => void): Channel {
  const fragmenter = new Fragmenter();
  return {
    transport: "webrtc",
    send: (bytes) =>
      fragmenter.split(bytes, LIMITS.channelMessageBytesMax).every((piece) => trySend(dataChannel, piece)),
    get room() {
      return dataChannel.isOpen() ? QUEUE_BYTES_MAX - dataChannel.bufferedAmount() : 0;
    },
    stats: () => undefined,
    close,
  };
}

function serve(dataChannel: DataChannel, session: ChannelHandlers, leave: (reason: string) => void): void {
  const reassembler = new Reassembler();
  dataChannel.setBufferedAmountLowThreshold(QUEUE_BYTES_MAX / 2);
  dataChannel.onBufferedAmountLow(() => session.handleWritable());
  dataChannel.onMessage((message) => {
    const whole = typeof message === "string" ? undefined : reassembler.accept(new Uint8Array(message));
    if (whole) session.handleMessage(whole);
  });
  dataChannel.onClosed(() => leave("channel closed"));
}

/**
 * The library throws when the channel is not open, for example when the other end has just left. An exception in one of
 * the library's callbacks would end the process.
 */
function trySend(dataChannel: DataChannel, message: Uint8Array): boolean {
  try {
    return dataChannel.sendMessageBinary(message);
  } catch {
    return false;
  }
}
