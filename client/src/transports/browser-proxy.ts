/**
 * Browser proxy: whether the browser's settings put a proxy (SOCKS, HTTP, a PAC script) before one of our proxies.
 * WebRTC would send its packets beside the browser's proxy, and so show the address that the viewer hides. No API tells
 * a document about it. But browsers open no WebTransport where a proxy is set: the attempt fails at once, and nothing
 * is sent. So WebRTC is used only after an attempt over WebTransport has shown that no proxy is set.
 */
import type { ProxyInfo } from "../api";
import { openingOf } from "./webtransport-browser";

/** A verdict counts for this long. */
const KNOWN_MS = 120_000;
/** An attempt that is refused fails within milliseconds. */
const REFUSED_MS_MAX = 500;

let known: { isClear: Promise<boolean>; untilMs: number } | undefined;

/**
 * Whether no proxy of the browser stands before `proxy`. `answerSdp` is its answer to an offer, which names its UDP
 * port. Chromium delays attempts after others that got no answer, so one verdict counts for all proxies for a while.
 */
export function isPathClear(proxy: ProxyInfo, answerSdp: string): Promise<boolean> {
  if (known === undefined || performance.now() > known.untilMs)
    known = { isClear: examine(proxy, answerSdp), untilMs: performance.now() + KNOWN_MS };
  return known.isClear;
}

async function examine(proxy: ProxyInfo, answerSdp: string): Promise<boolean> {
  if (typeof WebTransport !== "function") return false;
  return proxy.webTransport === undefined ? isSent(proxy, answerSdp) : opens(proxy);
}

/** Whether a session opens. */
async function opens(proxy: ProxyInfo): Promise<boolean> {
  const session = openingOf(proxy);
  try {
    await session.ready;
    session.close();
    return true;
  } catch {
    return false;
  }
}

/**
 * Whether an attempt to the UDP port of a proxy without WebTransport stays without an answer. The browser would refuse
 * it before it answers two requests that begin later.
 */
async function isSent(proxy: ProxyInfo, answerSdp: string): Promise<boolean> {
  const address = addressOf(answerSdp);
  if (address === undefined) return false;
  const session = new WebTransport(`https://${address}/`);
  let isRefused = false;
  session.ready.then(
    () => session.close(),
    () => (isRefused = true),
  );
  session.closed.catch(() => undefined);
  await new Promise((resolve) => setTimeout(resolve, REFUSED_MS_MAX));
  for (let requests = 0; requests < 2; requests++)
    await fetch(`${proxy.url}/v1/whoami`, { mode: "no-cors", credentials: "omit", cache: "no-store" }).catch(
      () => undefined,
    );
  return !isRefused;
}

/** Host and port of the last UDP candidate. A proxy names its public address last. */
function addressOf(sdp: string): string | undefined {
  const [, host, port] = [...sdp.matchAll(/^a=candidate:\S+ 1 udp \d+ (\S+) (\d+) typ host/gim)].at(-1) ?? [];
  if (host === undefined || port === undefined) return undefined;
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
