/**
 * Addresses of the gateway. The path /https/HOST/PATH mirrors https://HOST/PATH, so relative addresses in playlists
 * work as they are. All other addresses are rewritten. No I/O.
 */

/** A mirrored address that the gateway cannot serve. `message` is for a person. */
export interface AddressFault {
  message: string;
}

/** The address has the form of a whole URL behind the gateway's, and `path` is the form that the gateway serves. */
export interface Misspelt {
  path: string;
}

const MIRRORED = /^\/(https?)\/([^/?#]+)(?:[/?].*)?$/i;
/** `/https://HOST/PATH`, also where a player has joined the two slashes. */
const WHOLE = /^\/(https?):\/{1,2}([^/].*)$/i;

/** Reads the path and query of a request, for example `/https/example.org/a.m3u8?token=1`. */
export function parseMirrored(path: string): URL | AddressFault | Misspelt {
  const whole = WHOLE.exec(path);
  if (whole) return { path: `/${whole[1]!.toLowerCase()}/${whole[2]!}` };
  const match = MIRRORED.exec(path);
  if (!match)
    return {
      message: `The path is not known: got ${shown(path)}, allowed: / or /https/HOST/PATH or /http/HOST:PORT/PATH.`,
    };
  const [, scheme, host] = match;
  const rest = path.slice(scheme!.length + host!.length + 2);
  const text = `${scheme}://${host}${rest.startsWith("/") ? "" : "/"}${rest}`;
  if (!URL.canParse(text)) return { message: `The host is not valid: got ${shown(host!)}.` };
  const url = new URL(text);
  if (url.username || url.password)
    return { message: "The host is not valid: a user name goes before the gateway's own host, as in http://USER@..." };
  return url;
}

/** The path and query under which the gateway serves `url`. */
export function mirroredPath(url: URL): string {
  return `/${url.protocol.slice(0, -1)}/${url.host}${url.pathname}${queryOf(url)}`;
}

/** The query string with its question mark. URL.search omits the mark of an empty query. */
function queryOf({ href, search }: URL): string {
  return search === "" && href.replace(/#.*$/, "").endsWith("?") ? "?" : search;
}

/**
 * The gateway's address for `url`. `gateway` is its own address without a slash at the end. A user name and a password
 * stay in the address, so that the player sends them.
 */
export function gatewayAddress(url: URL, gateway: string): string {
  const address = new URL(gateway);
  const user = url.username === "" ? "" : `${url.username}${url.password === "" ? "" : `:${url.password}`}@`;
  const prefix = address.pathname.replace(/\/$/, "");
  return `${address.protocol}//${user}${address.host}${prefix}${mirroredPath(url)}`;
}

/** Where a document is, at its origin and at the gateway. */
export interface Mirror {
  base: URL;
  mirrored: URL;
  /** The gateway's own address, without a slash at the end. */
  gateway: URL;
}

export function mirrorAt(base: URL, gateway: string): Mirror {
  return { base, mirrored: new URL(gatewayAddress(base, gateway)), gateway: new URL(gateway) };
}

/**
 * What the document must say in place of `reference`, which leads to `target`, so that the player asks the gateway for
 * it. A reference that leads to the right address through the gateway stays as it is. One to another origin becomes a
 * whole address: a password of the player's address is for its own origin only.
 */
export function rewritten(
  reference: string,
  { base, mirrored, gateway }: Mirror,
  target = resolved(reference, base),
): string {
  if (!target || !isHttp(target)) return reference;
  const isForeign = target.origin !== base.origin || target.username !== "";
  if (isForeign) return gatewayAddress(target, gateway.href);
  const path = `${gateway.pathname.replace(/\/$/, "")}${mirroredPath(target)}`;
  const through = resolved(reference, mirrored);
  const isRight = through?.host === gateway.host && `${through.pathname}${queryOf(through)}` === path;
  return isRight ? reference : path;
}

/** The absolute address without its fragment. Undefined if the reference gives no address. */
export function resolved(reference: string, base: URL): URL | undefined {
  try {
    const url = new URL(reference, base);
    if (url.href.includes("#")) url.hash = "";
    return url;
  } catch {
    return undefined;
  }
}

export function isHttp({ protocol }: URL): boolean {
  return protocol === "http:" || protocol === "https:";
}

export function shown(text: string): string {
  return JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}...` : text);
}
