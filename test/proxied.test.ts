/**
 * A browser behind a proxy of its own (SOCKS5, HTTP, PAC), or with a policy that forbids UDP to pages.
 * Our proxies announce UDP ports of this test, which counts what arrives there: nothing may go beside the browser's
 * proxy. Shares come over HTTP.
 */
import dgram from "node:dgram";
import {
  inFirefoxWindow,
  openBrowser,
  recordsSince,
  samplePageState,
  startFleet,
  type Fleet,
  type OpenBrowser,
} from "@tributary/lab-stack";
import { startHttpProxy, startSocks, type BrowserProxy } from "./browser-proxies";
import { eventually } from "./support";

/** A UDP port that never answers. */
interface Sink {
  port: number;
  packets: number;
  close(): void;
}

async function openSink(): Promise<Sink> {
  const socket = dgram.createSocket("udp4");
  await new Promise<void>((done) => socket.bind(0, "127.0.0.1", done));
  const sink: Sink = { port: socket.address().port, packets: 0, close: () => socket.close() };
  socket.on("message", () => sink.packets++);
  return sink;
}

let [socks, web]: BrowserProxy[] = [];
let sinks: Sink[];
let fleet: Fleet;
beforeAll(async () => {
  [socks, web] = [await startSocks(), await startHttpProxy()];
  sinks = [await openSink(), await openSink()];
  // The first proxy is reached by WebTransport, the second one by WebRTC alone.
  fleet = await startFleet({
    proxyCount: 2,
    ports: "any",
    proxyEnv: (index): Record<string, string> => {
      const port = String(sinks[index]!.port);
      return index === 0
        ? { PUBLIC_ADDRESS: "127.0.0.1", PUBLIC_WEBTRANSPORT_PORT: port, PUBLIC_UDP_PORT: port }
        : { PUBLIC_ADDRESS: "127.0.0.1", WEBTRANSPORT_PORT: "off", PUBLIC_UDP_PORT: port };
    },
  });
});
afterAll(async () => {
  await fleet.stop();
  for (const sink of sinks) sink.close();
  for (const proxy of [socks, web]) proxy?.stop();
});

const packets = (): number => sinks.reduce((sum, each) => sum + each.packets, 0);

interface Played {
  modes: string[];
  transports: string[];
  packets: number;
  passed: number;
}

/** Plays until three downloads went through our proxies. */
async function play(open: OpenBrowser): Promise<Played> {
  const startedMs = Date.now();
  const before = { packets: packets(), passed: (socks?.passed ?? 0) + (web?.passed ?? 0) };
  const page = await open.newPage();
  await page.goto(`${fleet.sample.url}/hls.html`, { waitUntil: "domcontentloaded" });
  const records = await eventually(
    async () => (await recordsSince(fleet, startedMs)).filter(({ proxies }) => proxies.some(({ bytes }) => bytes > 0)),
    (found) => found.length >= 3,
    90,
  );
  expect((await samplePageState(page)).errors).toEqual([]);
  expect(records.length).toBeGreaterThanOrEqual(3);
  await page.close();
  return {
    modes: [...new Set(records.map(({ mode }) => mode))],
    transports: records.flatMap(({ proxies }) => proxies.flatMap(({ transport }) => transport ?? [])),
    packets: packets() - before.packets,
    passed: (socks?.passed ?? 0) + (web?.passed ?? 0) - before.passed,
  };
}

const defaults = () => ({ origoUrl: fleet.origo.url, mode: "coded", connections: 2 });

test.each([
  ["no proxy", () => []],
  ["SOCKS5", () => [`--proxy-server=socks5://127.0.0.1:${socks!.port}`, "--proxy-bypass-list=<-loopback>"]],
  ["HTTP", () => [`--proxy-server=http://127.0.0.1:${web!.port}`, "--proxy-bypass-list=<-loopback>"]],
  ["a policy", () => ["--webrtc-ip-handling-policy=disable_non_proxied_udp"]],
])("Chromium with %s", async (name, flags) => {
  const open = await openBrowser({ headless: true, defaults: defaults(), flags: flags() });
  try {
    const played = await play(open);
    expect(played.packets > 0).toBe(name === "no proxy");
    if (name !== "no proxy") expect(played.transports).toEqual([]);
    expect(played.passed > 0).toBe(name === "SOCKS5" || name === "HTTP");
    if (name === "a policy") expect(played.modes).toEqual(["split-http"]);
  } finally {
    await open.close();
  }
});

const USE_SOCKS = `
  Services.prefs.setBoolPref("network.proxy.allow_hijacking_localhost", true);
  Services.prefs.setCharPref("network.proxy.socks", "127.0.0.1");
  Services.prefs.setIntPref("network.proxy.socks_port", SOCKS);
  Services.prefs.setIntPref("network.proxy.type", 1);`;
const USE_PAC = `
  const script = 'function FindProxyForURL() { return "PROXY 127.0.0.1:HTTP"; }';
  Services.prefs.setCharPref("network.proxy.autoconfig_url", "data:text/plain," + encodeURIComponent(script));
  Services.prefs.setIntPref("network.proxy.type", 2);`;
const FORBID = `
  Services.prefs.setIntPref("network.proxy.type", 0);
  Services.prefs.setBoolPref("media.peerconnection.ice.proxy_only", true);`;

test("Firefox with SOCKS5, with HTTP by PAC, with a policy, and with neither", async () => {
  const open = await openBrowser({ name: "firefox", headless: true, isDark: false, defaults: defaults() });
  const set = (script: string): Promise<unknown> =>
    inFirefoxWindow(open.browser, script.replace("SOCKS", String(socks!.port)).replace("HTTP", String(web!.port)));
  try {
    for (const script of [USE_SOCKS, USE_PAC]) {
      await set(script);
      const { packets, transports, passed } = await play(open);
      expect([packets, transports, passed > 0]).toEqual([0, [], true]);
    }
    await set(FORBID);
    expect(await play(open)).toEqual({ modes: ["split-http"], transports: [], packets: 0, passed: 0 });
    await set(`Services.prefs.clearUserPref("media.peerconnection.ice.proxy_only");`);
    expect((await play(open)).packets).toBeGreaterThan(0);
  } finally {
    await open.close();
  }
});
