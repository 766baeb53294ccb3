/**
 * Published ports: a proxy in a container does not know its ports on the host, so it searches for them. It tries each
 * port of a range until its own answer comes back: by HTTP for TCP, and by datagrams for UDP. The UDP ports must be
 * free: they are bound here and released before WebRTC and WebTransport take them.
 */
import { randomBytes, timingSafeEqual } from "node:crypto";
import dgram from "node:dgram";
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { PublishedRange } from "./config";

export interface PublishedPorts {
  /** The IP address of the probed host. */
  address: string;
  tcpPort: number;
  /** In the order of `ProbeOptions.udpPorts`. The first is always found; the others may not be published. */
  udpPorts: [number, ...(number | undefined)[]];
}

export interface ProbeOptions {
  range: PublishedRange;
  /** The answer of this proxy to GET /v1/whoami. */
  nonce: string;
  host: string;
  /** Free ports of this machine. */
  udpPorts: readonly number[];
  tries?: number;
  waitMs?: number;
}

const TRIES = 5;
const WAIT_MS = 1500;
const NONCE_BYTES = 16;

/** Rejects when the ports are not found after some attempts. The error says what to check. */
export async function findPublished(options: ProbeOptions): Promise<PublishedPorts> {
  const { range, tries = TRIES, waitMs = WAIT_MS } = options;
  let tcpPort: number | undefined;
  let udpPorts: (number | undefined)[] = options.udpPorts.map(() => undefined);
  let address: string | undefined;
  for (let attempt = 0; attempt < tries; attempt++) {
    address ??= await resolveHost(range.host);
    if (address !== undefined) {
      const at = address;
      const probes = options.udpPorts.map(
        async (port, index) => udpPorts[index] ?? (await findUdp(at, port, options, waitMs)),
      );
      [tcpPort, udpPorts] = await Promise.all([tcpPort ?? findTcp(at, options, waitMs), Promise.all(probes)]);
      const [first, ...others] = udpPorts;
      if (tcpPort !== undefined && first !== undefined) return { address, tcpPort, udpPorts: [first, ...others] };
    }
    if (attempt + 1 < tries) await new Promise((resolve) => setTimeout(resolve, waitMs / 2));
  }
  throw new Error(notFound(range, address, tcpPort));
}

function notFound(
  { host, first, last }: PublishedRange,
  address: string | undefined,
  tcpPort: number | undefined,
): string {
  if (address === undefined) return `PROBE_PUBLISHED: the name ${host} does not resolve`;
  const kind = tcpPort === undefined ? "TCP" : "UDP";
  const advice = "Check that the range is published, and that this container can reach the ports of the host.";
  return `PROBE_PUBLISHED: no ${kind} port of ${host}:${first}-${last} leads back to this proxy. ${advice}`;
}

async function resolveHost(host: string): Promise<string | undefined> {
  if (isIP(host) !== 0) return host;
  return await lookup(host, { family: 4 }).then(
    ({ address }) => address,
    () => undefined,
  );
}

async function findTcp(address: string, { range, nonce }: ProbeOptions, waitMs: number): Promise<number | undefined> {
  const found = await Promise.all(
    portsOf(range).map(async (port) => ((await isMine(address, port, nonce, waitMs)) ? port : undefined)),
  );
  return found.find((port) => port !== undefined);
}

async function isMine(address: string, port: number, nonce: string, waitMs: number): Promise<boolean> {
  try {
    const host = isIP(address) === 6 ? `[${address}]` : address;
    const response = await fetch(`http://${host}:${port}/v1/whoami`, {
      signal: AbortSignal.timeout(waitMs),
      redirect: "error",
    });
    if (response.status === 200) return (await response.text()) === nonce;
    await response.body?.cancel();
  } catch {
    // Nothing listens there, or it does not speak HTTP. In both cases it is not this proxy.
  }
  return false;
}

/** Each datagram carries a nonce and the port that it was sent to. The first one to arrive names the published port. */
async function findUdp(
  address: string,
  udpPort: number,
  { range, host }: ProbeOptions,
  waitMs: number,
): Promise<number | undefined> {
  const nonce = randomBytes(NONCE_BYTES);
  const receiver = await boundSocket(host, udpPort);
  const sender = dgram.createSocket(isIP(address) === 6 ? "udp6" : "udp4");
  sender.on("error", () => undefined);
  try {
    const arrived = new Promise<number>((resolve) => {
      receiver.on("message", (message) => {
        const mine = message.length === NONCE_BYTES + 2 && timingSafeEqual(message.subarray(0, NONCE_BYTES), nonce);
        if (mine) resolve(message.readUInt16BE(NONCE_BYTES));
      });
    });
    for (const port of portsOf(range)) {
      const message = Buffer.concat([nonce, Buffer.from([port >> 8, port & 0xff])]);
      sender.send(message, port, address, () => undefined);
    }
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((resolve) => (timer = setTimeout(() => resolve(undefined), waitMs)));
    return await Promise.race([arrived, late]).finally(() => clearTimeout(timer));
  } finally {
    sender.close();
    await new Promise<void>((resolve) => receiver.close(() => resolve()));
  }
}

function boundSocket(host: string, port: number): Promise<dgram.Socket> {
  return new Promise((resolve, reject) => {
    const socket = dgram.createSocket(isIP(host) === 6 ? "udp6" : "udp4");
    socket.once("error", reject);
    socket.bind(port, host, () => {
      socket.off("error", reject);
      socket.on("error", () => undefined);
      resolve(socket);
    });
  });
}

function portsOf({ first, last }: PublishedRange): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}
