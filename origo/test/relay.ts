/**
 * A TCP relay in front of a server on loopback. It can fall silent as a firewall does: it passes nothing on and closes
 * nothing.
 */
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export interface TestRelay {
  /** The same `url` with the port of the relay. */
  through(url: string): string;
  /** Open connections pass nothing on from now. `newOnes` says what new connections do. */
  silence(newOnes: "pass" | "silent"): void;
  close(): void;
}

export async function startRelay(toPort: number): Promise<TestRelay> {
  const sockets = new Set<Socket>();
  let passNew = true;
  const relay = createServer((near) => {
    const far = connect(toPort, "127.0.0.1");
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
      if (passNew) socket.pipe(other);
    }
  }).listen(0, "127.0.0.1");
  await once(relay, "listening");
  const { port } = relay.address() as AddressInfo;
  const through = (url: string): string => {
    const moved = new URL(url);
    moved.port = String(port);
    return moved.href;
  };
  const silence = (newOnes: "pass" | "silent"): void => {
    passNew = newOnes === "pass";
    for (const socket of sockets) socket.unpipe().pause();
  };
  const close = (): void => {
    for (const socket of sockets) socket.destroy();
    relay.close();
  };
  return { through, silence, close };
}
