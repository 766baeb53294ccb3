/**
 * A path for datagrams that misbehaves when told to: a UDP relay on loopback before some other port. It changes no
 * datagram; it lets them through, or not. Not a link (lab/links): no rate, no delay.
 */
import dgram from "node:dgram";

const HOST = "127.0.0.1";

export class Relay {
  /** Nothing passes. */
  isDead = false;
  /** Longer payloads do not pass. */
  bytesMax = Infinity;
  readonly #front = dgram.createSocket("udp4");
  readonly #backs = new Map<number, dgram.Socket>();

  private constructor(public targetPort: number) {}

  static async to(targetPort: number): Promise<Relay> {
    const relay = new Relay(targetPort);
    relay.#front.on("message", (bytes, { port }) =>
      relay.#pass(bytes, () => relay.#backOf(port).send(bytes, relay.targetPort, HOST)),
    );
    await new Promise<void>((resolve) => relay.#front.bind(0, HOST, resolve));
    return relay;
  }

  get port(): number {
    return this.#front.address().port;
  }

  /** The proxy sees the client come from another port, as after a change of networks. */
  moveClients(): void {
    for (const back of this.#backs.values()) back.close();
    this.#backs.clear();
  }

  close(): void {
    this.moveClients();
    this.#front.close();
  }

  #pass(bytes: Uint8Array, go: () => void): void {
    if (!this.isDead && bytes.length <= this.bytesMax) go();
  }

  #backOf(clientPort: number): dgram.Socket {
    let back = this.#backs.get(clientPort);
    if (!back) {
      back = dgram.createSocket("udp4");
      back.on("message", (bytes) => this.#pass(bytes, () => this.#front.send(bytes, clientPort, HOST)));
      this.#backs.set(clientPort, back);
    }
    return back;
  }
}
