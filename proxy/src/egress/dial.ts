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
}

type OnSocket = (error: Error | null, socket?: Duplex) => void;

const CONNECT_MS_MAX = 4000;
const AGENT = { keepAlive: true, scheduling: "lifo", maxFreeSockets: 16, maxSockets: 128, timeout: 20_000 } as const;

export class VettedAgents {
  private readonly plain = new VettedHttpAgent(AGENT);
  private readonly secure: VettedHttpsAgent;

  /** `tlsOptions`: e.g. a CA of one's own. */
  constructor(tlsOptions: tls.SecureContextOptions = {}) {
    this.secure = new VettedHttpsAgent({ ...AGENT, ...tlsOptions });
  }

  of(protocol: string): http.Agent {
    return protocol === "https:" ? this.secure : this.plain;
  }

  destroy(): void {
    this.plain.destroy();
    this.secure.destroy();
  }
}

class VettedHttpAgent extends http.Agent {
  override getName(options?: Parameters<http.Agent["getName"]>[0]): string {
    return `${super.getName(options)}|${vettedOf(options).join(",")}`;
  }
  override createConnection(options: VettedRequestOptions, onSocket: OnSocket): undefined {
    dial(vettedOf(options), Number(options.port)).then((socket) => onSocket(null, socket), onSocket);
  }
}

class VettedHttpsAgent extends https.Agent {
  override getName(options?: https.RequestOptions): string {
    return `${super.getName(options)}|${vettedOf(options).join(",")}`;
  }
  override createConnection(options: VettedRequestOptions, onSocket: OnSocket): undefined {
    dial(vettedOf(options), Number(options.port))
      .then((socket) => secured(socket, options))
      .then((socket) => onSocket(null, socket), onSocket);
  }
}

function vettedOf(options: object | undefined): readonly string[] {
  return (options as Partial<VettedRequestOptions> | undefined)?.vettedAddresses ?? [];
}

/** A connection to the first address that answers; rejects with the last address's error. */
async function dial(addresses: readonly string[], port: number): Promise<net.Socket> {
  let failure: unknown = new Error("no address was vetted");
  for (const address of addresses) {
    try {
      return await connect(address, port);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

function connect(address: string, port: number): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ host: address, port, noDelay: true });
    const fail = (error: Error): void => {
      clearTimeout(timer);
      socket.destroy();
      reject(error);
    };
    const timer = setTimeout(() => fail(new Error(`no connection within ${CONNECT_MS_MAX} ms`)), CONNECT_MS_MAX);
    socket.once("error", fail);
    socket.once("connect", () => {
      const reached = canonicalAddress(socket.remoteAddress ?? "");
      if (reached === undefined || reached !== canonicalAddress(address)) return fail(new Error("the connection reached another address"));
      clearTimeout(timer);
      socket.off("error", fail);
      resolve(socket);
    });
  });
}

function secured(socket: net.Socket, options: VettedRequestOptions): Promise<tls.TLSSocket> {
  return new Promise((resolve, reject) => {
    const host = options.servername ?? options.hostname ?? "";
    const servername = net.isIP(host) === 0 ? host : "";
    const secure = tls.connect({ ...(options as tls.ConnectionOptions), socket, servername, host, ALPNProtocols: ["http/1.1"] });
    const fail = (error: Error): void => {
      secure.destroy();
      reject(error);
    };
    secure.once("error", fail);
    secure.once("secureConnect", () => {
      secure.off("error", fail);
      resolve(secure);
    });
  });
}
