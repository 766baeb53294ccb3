/**
 * Guard: refuses requests that a web page causes, so that no page can read a site through the gateway or make it
 * download. Players send none of these headers. Pure. Rules: docs/spec/threat-model.md.
 */
import { isIP } from "node:net";
import { hostname } from "node:os";
import { shown } from "./addresses";

export interface GuardedRequest {
  method: string;
  /** The request target as it came. */
  target: string;
  host: string | undefined;
  origin: string | undefined;
  fetchSite: string | undefined;
}

export interface Guarding {
  port: number;
  /** The host that `--host` names. Undefined: the gateway is on loopback only. */
  publicHost: string | undefined;
}

export interface Refusal {
  status: number;
  message: string;
}

const LOOPBACK_NAMES = new Set(["127.0.0.1", "localhost", "[::1]"]);

export function refusalOf(request: GuardedRequest, guarding: Guarding): Refusal | undefined {
  const { method, target, host, origin, fetchSite } = request;
  if (!target.startsWith("/"))
    return refuse(400, `The gateway is not a proxy for ${shown(target)}: ask for /https/HOST/PATH.`);
  // A page whose own name leads to this machine is of the same origin for the browser (DNS rebinding). Its name shows.
  if (!isOwnHost(host, guarding))
    return refuse(421, `The header Host is not the gateway's: got ${shown(host ?? "")}. Web pages are not served.`);
  if (fetchSite !== undefined && fetchSite !== "none" && fetchSite !== "same-origin")
    return refuse(403, `Web pages are not served: got Sec-Fetch-Site ${shown(fetchSite)}.`);
  if (origin !== undefined && origin !== `http://${host}`)
    return refuse(403, `Web pages are not served: got Origin ${shown(origin)}. A player must not send that header.`);
  if (method !== "GET" && method !== "HEAD")
    return refuse(405, `The method is not served: got ${shown(method)}, allowed: GET, HEAD.`);
  return undefined;
}

/** The name of the host in a Host header, and its port. */
export function splitHost(host: string | undefined): { name: string; port: number } | undefined {
  const [, name, port] = /^(\[[0-9a-f:.]+\]|[^:[\]]+)(?::(\d{1,5}))?$/i.exec(host ?? "") ?? [];
  return name === undefined ? undefined : { name: name.toLowerCase(), port: port === undefined ? 80 : Number(port) };
}

/** A page never has an address as its name unless the machine at that address serves it. */
function isOwnHost(host: string | undefined, { port, publicHost }: Guarding): boolean {
  const split = splitHost(host);
  if (!split || split.port !== port) return false;
  if (LOOPBACK_NAMES.has(split.name)) return true;
  const literal = split.name.replace(/^\[|\]$/g, "");
  return publicHost !== undefined && (isIP(literal) !== 0 || ownNames(publicHost).includes(split.name));
}

/** No page can take these names: its own would have to be one of them. */
function ownNames(publicHost: string): string[] {
  const name = hostname().toLowerCase();
  return [publicHost.toLowerCase(), name, `${name.split(".")[0]}.local`];
}

function refuse(status: number, message: string): Refusal {
  return { status, message };
}
