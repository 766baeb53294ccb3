/**
 * Browser proxy: whether the browser's settings put a proxy (SOCKS, HTTP, a PAC script) before one of our proxies.
 * WebRTC would send its packets beside the browser's proxy, and so show the address that the viewer hides; and open
 * sessions of either transport go on when a proxy is set later. No API tells a document about it. But browsers open no
 * WebTransport where a proxy is set: the attempt fails, and nothing is sent. So WebRTC is used only after an attempt
 * over WebTransport has shown that no proxy is set, and attempts are repeated while sessions are open.
 */
import type { ProxyInfo } from "../api";
import { openingOf } from "./webtransport-browser";

/** A verdict counts for this long. Chromium delays attempts for five minutes after each one that failed. */
const KNOWN_MS = 120_000;
/** A refusal that comes later is taken for a loss of packets. */
const REFUSED_MS_MAX = 2000;
/** Browsers refuse this port to everyone, and they send nothing. */
const PORT_REFUSED = 1;
/** Chromium's delay of an attempt is random, and it doubles with each attempt. */
const DELAY_SPREAD = 3;

let known: { isClear: Promise<boolean>; untilMs: number } | undefined;
/** By the id of a proxy without WebTransport: host and port for its packets. */
const addresses = new Map<string, string>();

/**
 * Whether no proxy of the browser stands before `proxy`. `answerSdp` is its answer to an offer, which names its UDP
 * port. One verdict counts for all proxies without WebTransport for a while.
 */
export function isPathClear(proxy: ProxyInfo, answerSdp: string): Promise<boolean> {
  if (typeof WebTransport !== "function") return Promise.resolve(false);
  if (proxy.webTransport !== undefined) return opens(openingOf(proxy));
  const address = addressOf(answerSdp);
  if (address === undefined) return Promise.resolve(false);
  addresses.set(proxy.id, address);
  return isClear(proxy, address);
}

/** Whether the browser refuses new connections to `proxy`, to which a session is open. */
export async function isPathShut(proxy: ProxyInfo): Promise<boolean> {
  if (typeof WebTransport !== "function") return false;
  if (proxy.webTransport !== undefined) return isRefused(openingOf(proxy), REFUSED_MS_MAX);
  const address = addresses.get(proxy.id);
  return address !== undefined && !(await isClear(proxy, address));
}

function isClear(proxy: ProxyInfo, address: string): Promise<boolean> {
  if (known === undefined || performance.now() > known.untilMs)
    known = { isClear: isSent(proxy, address), untilMs: performance.now() + KNOWN_MS };
  return known.isClear;
}

function opens(session: WebTransport): Promise<boolean> {
  session.closed.catch(() => undefined);
  return session.ready.then(
    () => {
      session.close();
      return true;
    },
    () => false,
  );
}

/** Whether the attempt fails within `ms`. Later it goes on, because Chromium delays the next ones after a close. */
async function isRefused(session: WebTransport, ms: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<boolean>((resolve) => (timer = setTimeout(resolve, ms, true)));
  const isOpen = await Promise.race([opens(session), late]);
  clearTimeout(timer);
  return !isOpen;
}

/**
 * Whether an attempt to the UDP port of a proxy without WebTransport stays without an answer. The browser would refuse
 * it before it answers two requests that begin later. It may delay the attempt first. So a second attempt, which fails
 * in any case, shows how long the delay is at least.
 */
async function isSent({ url }: ProxyInfo, address: string): Promise<boolean> {
  const startedMs = performance.now();
  const attempt = isRefused(new WebTransport(`https://${address}/`), DELAY_SPREAD * REFUSED_MS_MAX);
  const other = new WebTransport(`https://${address.replace(/:\d+$/, `:${PORT_REFUSED}`)}/`);
  if (!(await isRefused(other, REFUSED_MS_MAX))) return false;
  const delayMs = (DELAY_SPREAD - 1) * (performance.now() - startedMs);
  await new Promise((resolve) => setTimeout(resolve, delayMs));
  for (let requests = 0; requests < 2; requests++)
    await fetch(`${url}/v1/whoami`, { mode: "no-cors", credentials: "omit", cache: "no-store" }).catch(() => undefined);
  return !(await Promise.race([attempt, Promise.resolve(false)]));
}

/** Host and port of the last UDP candidate. A proxy names its public address last. */
function addressOf(sdp: string): string | undefined {
  const [, host, port] = [...sdp.matchAll(/^a=candidate:\S+ 1 udp \d+ (\S+) (\d+) typ host/gim)].at(-1) ?? [];
  if (host === undefined || port === undefined) return undefined;
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
