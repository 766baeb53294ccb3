/**
 * Plain UDP in Node, for private links. It is used only if the caller names it, because it has no encryption and no
 * congestion control. The handshake shows the proxy that this address is ours (docs/spec/transport.md §5).
 */
import { randomBytes } from "node:crypto";
import dgram from "node:dgram";
import { isIP } from "node:net";
import {
  encodeUdpPacket,
  Fragmenter,
  parseUdpPacket,
  Reassembler,
  UDP_DATAGRAM_BYTES_MAX,
  UDP_NONCE_BYTES,
} from "@tributary/protocol";
import type { Channel, ChannelOptions, Transport } from "../platform";

/** A HELLO or OPEN is sent again after this time, because it may be lost. */
const REPEAT_MS = 200;
const SOCKET_BUFFER_BYTES = 4 * 1024 * 1024;
/** A CLOSE is sent this often, because packets may be lost. */
const CLOSE_REPEATS = 3;

export const nodeUdp: Transport = {
  name: "udp",
  reaches: ({ udp }) => udp !== undefined,
  open: (options) => new Promise((resolve, reject) => new Opening(options, resolve, reject)),
};

/** One socket, from its first HELLO to its end. */
class Opening {
  readonly #socket: dgram.Socket;
  readonly #nonce: Uint8Array = randomBytes(UDP_NONCE_BYTES);
  readonly #reassembler = new Reassembler();
  readonly #fragmenter = new Fragmenter();
  readonly #repeat: NodeJS.Timeout;
  #packet: Uint8Array;
  #token: Uint8Array | undefined;
  #isEnded = false;

  readonly #options: ChannelOptions;
  readonly #resolve: (channel: Channel) => void;
  readonly #reject: (error: Error) => void;

  constructor(options: ChannelOptions, resolve: (channel: Channel) => void, reject: (error: Error) => void) {
    this.#options = options;
    this.#resolve = resolve;
    this.#reject = reject;

    const { host, port } = options.proxy.udp!;
    const type = isIP(host) === 6 ? "udp6" : "udp4";
    this.#packet = encodeUdpPacket({ type: "hello", nonce: this.#nonce });
    this.#socket = dgram.createSocket({
      type,
      recvBufferSize: SOCKET_BUFFER_BYTES,
      sendBufferSize: SOCKET_BUFFER_BYTES,
    });
    this.#socket.on("error", (error) => this.#fail(error));
    this.#socket.on("message", (bytes) => this.#handlePacket(bytes));
    this.#repeat = setInterval(() => this.#sendAgain(), REPEAT_MS);
    options.signal.addEventListener("abort", this.#onAbort);
    if (options.signal.aborted) this.#onAbort();
    else this.#socket.connect(port, host, () => this.#sendAgain());
  }

  readonly #onAbort = (): void => this.#fail(this.#options.signal.reason as Error);

  #sendAgain(): void {
    if (!this.#isEnded) this.#socket.send(this.#packet, () => undefined);
  }

  #handlePacket(bytes: Buffer): void {
    const packet = parseUdpPacket(bytes);
    if (!packet || this.#isEnded) return;
    if ("nonce" in packet && Buffer.compare(packet.nonce, this.#nonce) !== 0) return;
    if (packet.type === "cookie" && !this.#token) {
      this.#packet = encodeUdpPacket({ type: "open", nonce: this.#nonce, cookie: packet.cookie });
      this.#sendAgain();
    } else if (packet.type === "opened" && !this.#token) this.#open(Uint8Array.from(packet.token));
    else if (packet.type === "refused") this.#fail(new Error("the proxy has no free session"));
    else if ((packet.type === "message" || packet.type === "close") && this.#isOurs(packet.token)) {
      if (packet.type === "close") return this.#fail(new Error("closed by the proxy"));
      const message = this.#reassembler.accept(packet.datagram);
      if (message) this.#options.onMessage(message);
    }
  }

  #isOurs(token: Uint8Array): boolean {
    return this.#token !== undefined && Buffer.compare(token, this.#token) === 0;
  }

  #open(token: Uint8Array): void {
    this.#token = token;
    clearInterval(this.#repeat);
    this.#options.signal.removeEventListener("abort", this.#onAbort);
    this.#resolve({ send: (bytes) => this.#send(token, bytes), close: () => this.#close(token) });
  }

  #send(token: Uint8Array, bytes: Uint8Array): boolean {
    if (this.#isEnded) return false;
    for (const datagram of this.#fragmenter.split(bytes, UDP_DATAGRAM_BYTES_MAX)) {
      this.#socket.send(encodeUdpPacket({ type: "message", token, datagram }), () => undefined);
    }
    return true;
  }

  #close(token: Uint8Array): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    let left = CLOSE_REPEATS;
    const packet = encodeUdpPacket({ type: "close", token });
    for (let repeat = 0; repeat < CLOSE_REPEATS; repeat++)
      this.#socket.send(packet, () => --left === 0 && this.#socket.close());
  }

  #fail(error: Error): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    clearInterval(this.#repeat);
    this.#options.signal.removeEventListener("abort", this.#onAbort);
    this.#socket.close();
    if (this.#token) this.#options.onClosed(error.message);
    else this.#reject(error);
  }
}
