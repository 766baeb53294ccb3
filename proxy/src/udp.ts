/**
 * Plain UDP edge, for Node programs on private links. It has no encryption, and no congestion control besides the
 * client's grants and the proxy's shaper. An unknown client gets a cookie, and the proxy stores nothing about it. A
 * client that sends the cookie back from the same address gets a session and its secret token (docs/spec/transport.md
 * §5). This is off unless UDP_PLAIN_PORT is set.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import dgram from "node:dgram";
import { isIP } from "node:net";
import {
  encodeUdpPacket,
  Fragmenter,
  parseUdpPacket,
  Reassembler,
  UDP_COOKIE_BYTES,
  UDP_DATAGRAM_BYTES_MAX,
  UDP_TOKEN_BYTES,
  type UdpPacket,
} from "@tributary/protocol";
import type { Channel, ChannelHandlers, OpenSession } from "./channel";

export interface UdpEdgeOptions {
  host: string;
  port: number;
  sessionsMax: number;
  onSession: OpenSession;
  nowMs?: () => number;
}

/** A cookie is valid for one to two of these periods. */
const COOKIE_MS = 10_000;
const SEND_BUFFER_BYTES = 4 * 1024 * 1024;
/** In a flood, everybody's packets wait behind this much. The kernel's own memory for a small packet counts, too. */
const RECEIVE_BUFFER_BYTES = 1024 * 1024;
/** The limit of Node's own queue. It is almost always empty, since the kernel takes packets at once. */
const QUEUE_BYTES_MAX = 64 * 1024;
/** A close packet is sent this often, because packets may be lost. */
const CLOSE_REPEATS = 3;

interface Client {
  /** The address, port and nonce of the OPEN packet. */
  readonly opening: string;
  readonly address: string;
  readonly port: number;
  readonly token: Buffer;
  readonly reassembler: Reassembler;
  handlers: ChannelHandlers | undefined;
}

export class UdpEdge {
  readonly #secret = randomBytes(32);
  readonly #byToken = new Map<string, Client>();
  /** By address, port and nonce, so that a repeated OPEN gives the same session. */
  readonly #byOpening = new Map<string, Client>();
  #draining = false;

  readonly #socket: dgram.Socket;
  readonly #options: UdpEdgeOptions;

  private constructor(socket: dgram.Socket, options: UdpEdgeOptions) {
    this.#socket = socket;
    this.#options = options;

    socket.on("message", (bytes, from) => this.#handlePacket(bytes, from));
    socket.on("error", () => undefined);
  }

  /** Rejects when the port is taken. */
  static listen(options: UdpEdgeOptions): Promise<UdpEdge> {
    return new Promise((resolve, reject) => {
      const type = isIP(options.host) === 6 ? "udp6" : "udp4";
      const socket = dgram.createSocket({
        type,
        recvBufferSize: RECEIVE_BUFFER_BYTES,
        sendBufferSize: SEND_BUFFER_BYTES,
      });
      socket.once("error", reject);
      socket.bind(options.port, options.host, () => {
        socket.off("error", reject);
        resolve(new UdpEdge(socket, options));
      });
    });
  }

  get port(): number {
    return this.#socket.address().port;
  }

  get sessionCount(): number {
    return this.#byToken.size;
  }

  drain(): void {
    this.#draining = true;
  }

  close(): void {
    this.#socket.close();
  }

  #handlePacket(bytes: Buffer, from: dgram.RemoteInfo): void {
    const packet = parseUdpPacket(bytes);
    if (packet?.type === "hello")
      this.#send(
        encodeUdpPacket({ type: "cookie", nonce: packet.nonce, cookie: this.#cookieOf(from, packet.nonce, 0) }),
        from,
      );
    else if (packet?.type === "open") this.#handleOpen(packet.nonce, packet.cookie, from);
    else if (packet?.type === "message" || packet?.type === "close") this.#handleFromClient(packet, from);
  }

  #handleOpen(nonce: Uint8Array, cookie: Uint8Array, from: dgram.RemoteInfo): void {
    const isGood = [0, 1].some((ago) => timingSafeEqual(this.#cookieOf(from, nonce, ago), cookie));
    if (!isGood) return;
    const opening = `${from.address} ${from.port} ${Buffer.from(nonce).toString("hex")}`;
    const known = this.#byOpening.get(opening);
    if (!known && (this.#draining || this.#byToken.size >= this.#options.sessionsMax)) {
      return this.#send(encodeUdpPacket({ type: "refused", nonce }), from);
    }
    const client = known ?? this.#admit(opening, from);
    this.#send(encodeUdpPacket({ type: "opened", nonce, token: client.token }), from);
    client.handlers ??= this.#options.onSession(this.#channelTo(client), client.address);
  }

  #admit(opening: string, { address, port }: dgram.RemoteInfo): Client {
    const token = randomBytes(UDP_TOKEN_BYTES);
    const client = { opening, address, port, token, reassembler: new Reassembler(), handlers: undefined };
    this.#byToken.set(token.toString("hex"), client);
    this.#byOpening.set(opening, client);
    return client;
  }

  #handleFromClient(packet: Extract<UdpPacket, { type: "message" | "close" }>, from: dgram.RemoteInfo): void {
    const client = this.#byToken.get(Buffer.from(packet.token).toString("hex"));
    if (!client || client.address !== from.address || client.port !== from.port) return;
    if (packet.type === "close") {
      this.#forget(client);
      client.handlers?.handleClosed("closed by the client");
      return;
    }
    const message = client.reassembler.accept(packet.datagram);
    if (message) client.handlers?.handleMessage(message);
  }

  #channelTo(client: Client): Channel {
    const fragmenter = new Fragmenter();
    const socket = this.#socket;
    const { token } = client;
    return {
      transport: "udp",
      send: (bytes) => {
        for (const datagram of fragmenter.split(bytes, UDP_DATAGRAM_BYTES_MAX))
          this.#send(encodeUdpPacket({ type: "message", token, datagram }), client);
        return true;
      },
      get room() {
        return QUEUE_BYTES_MAX - socket.getSendQueueSize();
      },
      stats: () => undefined,
      close: () => {
        for (let repeat = 0; repeat < CLOSE_REPEATS; repeat++)
          this.#send(encodeUdpPacket({ type: "close", token }), client);
        this.#forget(client);
      },
    };
  }

  #forget(client: Client): void {
    this.#byToken.delete(client.token.toString("hex"));
    this.#byOpening.delete(client.opening);
  }

  #cookieOf({ address, port }: dgram.RemoteInfo, nonce: Uint8Array, periodsAgo: number): Buffer {
    const period = Math.floor((this.#options.nowMs ?? Date.now)() / COOKIE_MS) - periodsAgo;
    return createHmac("sha256", this.#secret)
      .update(`${address} ${port} ${period} `)
      .update(nonce)
      .digest()
      .subarray(0, UDP_COOKIE_BYTES);
  }

  #send(packet: Uint8Array, { address, port }: { address: string; port: number }): void {
    this.#socket.send(packet, port, address, () => undefined);
  }
}
