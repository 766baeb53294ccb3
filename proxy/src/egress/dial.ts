/**
 * Dial: connects to vetted addresses only, with one agent for http and one for https. The address of a connection is
 * checked before a byte is written, and TLS checks the name in the URL. A connection that is kept alive is used again
 * only for a request that was vetted for the same addresses. policy.ts decides which addresses are vetted.
 */
import http from "node:http";
import https from "node:https";
import net from "node:net";
import tls from "node:tls";
import type { Duplex } from "node:stream";
import { canonicalAddress } from "./classify";

/** Options of a request made through a vetted agent. */
export interface VettedRequestOptions extends https.RequestOptions {
  /** The addresses of the host. The policy has accepted all of them. They are tried in this order. */
  vettedAddresses: readonly string[];
  /** Stops the connection attempt when it aborts. Node does not pass the `signal` of a request to its agent. */
  unwanted: AbortSignal;
}

type OnSocket = (error: Error | null, socket?: Duplex) => void;

/** The time limit for TCP to one address, and again for TLS. */
const CONNECT_MS_MAX = 4000;
/** Connections that are kept for later requests, to all origins together. */
const FREE_MAX = 256;
const AGENT = { keepAlive: true, scheduling: "lifo", maxFreeSockets: 16, maxSockets: 128, timeout: 20_000 } as const;

export class VettedAgents {
  readonly #plain = limitFree(new VettedHttpAgent(AGENT));
  readonly #secure: VettedHttpsAgent;

  /** `tlsOptions` may hold, for example, a private CA. */
  constructor(tlsOptions: tls.SecureContextOptions = {}) {
    this.#secure = limitFree(new VettedHttpsAgent({ ...AGENT, secureContext: tls.createSecureContext(tlsOptions) }));
  }

  of(protocol: string): http.Agent {
    return protocol === "https:" ? this.#secure : this.#plain;
  }

  destroy(): void {
    this.#plain.destroy();
    this.#secure.destroy();
  }
}

/** Closes the connection that the agent has kept for longest when it keeps too many for later requests. */
function limitFree<A extends http.Agent>(agent: A): A {
  const free = new Set<Duplex>();
  const watched = new WeakSet<Duplex>();
  const keep = agent.keepSocketAlive.bind(agent) as unknown as (socket: Duplex) => boolean;
  const reuse = agent.reuseSocket.bind(agent);
  agent.keepSocketAlive = (socket: Duplex): boolean => {
    const isKept = keep(socket);
    if (!isKept) return false;
    if (!watched.has(socket)) socket.once("close", () => free.delete(socket));
    watched.add(socket);
    free.add(socket);
    if (free.size <= FREE_MAX) return true;
    const [longest] = free;
    free.delete(longest!);
    longest!.destroy();
    return true;
  };
  agent.reuseSocket = (socket, request) => {
    free.delete(socket);
    reuse(socket, request);
  };
  return agent;
}

class VettedHttpAgent extends http.Agent {
  override getName(options?: Parameters<http.Agent["getName"]>[0]): string {
    return `${super.getName(options)}|${vettedOf(options).join(",")}`;
  }
  override createConnection(options: VettedRequestOptions, onSocket: OnSocket): undefined {
    dial(vettedOf(options), Number(options.port), unwantedOf(options)).then(
      (socket) => onSocket(null, socket),
      onSocket,
    );
  }
}

class VettedHttpsAgent extends https.Agent {
  override getName(options?: https.RequestOptions): string {
    return `${super.getName(options)}|${vettedOf(options).join(",")}`;
  }
  override createConnection(options: VettedRequestOptions, onSocket: OnSocket): undefined {
    const unwanted = unwantedOf(options);
    dial(vettedOf(options), Number(options.port), unwanted)
      .then((socket) => secured(socket, options, unwanted))
      .then((socket) => onSocket(null, socket), onSocket);
  }
}

function vettedOf(options: object | undefined): readonly string[] {
  return (options as Partial<VettedRequestOptions> | undefined)?.vettedAddresses ?? [];
}

/**
 * When a request had to wait for a connection, Node may pass the options of a request that has ended. The signal of
 * that request is then ignored.
 */
function unwantedOf({ unwanted }: VettedRequestOptions): AbortSignal {
  return unwanted.aborted ? new AbortController().signal : unwanted;
}

/** Connects to the first address that answers. Rejects with the error of the last address. */
async function dial(addresses: readonly string[], port: number, unwanted: AbortSignal): Promise<net.Socket> {
  let failure: unknown = new Error("no address was vetted");
  for (const address of addresses) {
    try {
      return await connect(address, port, unwanted);
    } catch (error) {
      failure = error;
      if (unwanted.aborted) break;
    }
  }
  throw failure;
}

async function connect(address: string, port: number, unwanted: AbortSignal): Promise<net.Socket> {
  const socket = await made(net.connect({ host: address, port, noDelay: true }), "connect", unwanted);
  const reached = canonicalAddress(socket.remoteAddress ?? "");
  if (reached !== undefined && reached === canonicalAddress(address)) return socket;
  socket.destroy();
  throw new Error("the connection reached another address");
}

function secured(socket: net.Socket, options: VettedRequestOptions, unwanted: AbortSignal): Promise<tls.TLSSocket> {
  const host = options.servername ?? options.hostname ?? "";
  const servername = net.isIP(host) === 0 ? host : "";
  return made(
    tls.connect({ ...(options as tls.ConnectionOptions), socket, servername, host, ALPNProtocols: ["http/1.1"] }),
    "secureConnect",
    unwanted,
  );
}

/** Resolves when the socket emits `event`. Destroys a socket that fails, is too slow or is not needed. */
function made<T extends net.Socket>(socket: T, event: "connect" | "secureConnect", unwanted: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      clearTimeout(timer);
      unwanted.removeEventListener("abort", stop);
    };
    const fail = (error: Error): void => {
      settle();
      socket.destroy();
      reject(error);
    };
    const stop = (): void => fail(new Error("the connection is no longer needed"));
    const timer = setTimeout(() => fail(new Error(`no connection within ${CONNECT_MS_MAX} ms`)), CONNECT_MS_MAX);
    unwanted.addEventListener("abort", stop);
    socket.once("error", fail);
    socket.once(event, () => {
      settle();
      socket.off("error", fail);
      resolve(socket);
    });
  });
}
