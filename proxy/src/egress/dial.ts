/**
 * Dials vetted addresses and nothing else: one agent for http, one for https. A connection is checked against the
 * address it was meant for before a byte is written, and TLS keeps the name of the URL. A kept-alive connection is
 * used again only by a request that was vetted for the same addresses. Not here: which addresses are vetted.
 */
import http from "node:http";
import https from "node:https";
import net from "node:net";
import tls from "node:tls";
import type { Duplex } from "node:stream";
import { canonicalAddress } from "./classify";

/** Options of a request made through a vetted agent. */
export interface VettedRequestOptions extends https.RequestOptions {
  /** What the host resolved to, all of it accepted by the policy; tried in this order. */
  vettedAddresses: readonly string[];
  /** Ends the making of its connection when it aborts. Node tells an agent nothing of a request's `signal`. */
  unwanted: AbortSignal;
}

type OnSocket = (error: Error | null, socket?: Duplex) => void;

/** For TCP to one address, and again for TLS. */
const CONNECT_MS_MAX = 4000;
const AGENT = { keepAlive: true, scheduling: "lifo", maxFreeSockets: 16, maxSockets: 128, timeout: 20_000 } as const;

export class VettedAgents {
  readonly #plain = new VettedHttpAgent(AGENT);
  readonly #secure: VettedHttpsAgent;

  /** `tlsOptions`: e.g. a CA of one's own. */
  constructor(tlsOptions: tls.SecureContextOptions = {}) {
    this.#secure = new VettedHttpsAgent({ ...AGENT, secureContext: tls.createSecureContext(tlsOptions) });
  }

  of(protocol: string): http.Agent {
    return protocol === "https:" ? this.#secure : this.#plain;
  }

  destroy(): void {
    this.#plain.destroy();
    this.#secure.destroy();
  }
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
 * For a request that had to wait for its turn Node gives the options of one that is over: what that one's signal says
 * is not meant.
 */
function unwantedOf({ unwanted }: VettedRequestOptions): AbortSignal {
  return unwanted.aborted ? new AbortController().signal : unwanted;
}

/** A connection to the first address that answers; rejects with the last address's error. */
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

/** The socket once it has emitted `event`; one that fails, takes too long or is no longer wanted is destroyed. */
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
    const stop = (): void => fail(new Error("the connection is no longer wanted"));
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
