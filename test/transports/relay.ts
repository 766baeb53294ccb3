/**
 * A UDP relay on loopback in front of another port. A test can make it drop datagrams or change the client's port. It
 * never changes a datagram and has no rate or delay; lab/links has those.
 */
import dgram from "node:dgram";

const HOST = "127.0.0.1";

export class Relay {
  /** If true, the relay drops everything. */
  isDead = false;
  /** The relay drops longer payloads. */
  bytesMax = Infinity;
  /** Datagrams from clients. */
  received = 0;
  readonly #front = dgram.createSocket("udp4");
  readonly #backs = new Map<number, dgram.Socket>();

  private constructor(public targetPort: number) {}

  static async to(targetPort: number): Promise<Relay> {
    const relay = new Relay(targetPort);
    relay.#front.on("message", (bytes, { port }) => {
      relay.received++;
      relay.#pass(bytes, () => relay.#backOf(port).send(bytes, relay.targetPort, HOST));
    });
    await new Promise<void>((resolve) => relay.#front.bind(0, HOST, resolve));
    return relay;
  }

  get port(): number {
    return this.#front.address().port;
  }

  /** Gives each client a new port on the proxy's side, as a change of networks does. */
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
