/**
 * A browser that gets a proxy while a page plays, and an add-on of Firefox that sets a proxy for the requests of tabs
 * alone. Our proxies announce ports of relays, which count the packets that go beside the browser's proxy.
 */
import dgram from "node:dgram";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import {
  inFirefoxWindow,
  installInFirefox,
  isByBrowser,
  openBrowser,
  startFleet,
  type Fleet,
  type OpenBrowser,
} from "@tributary/lab-stack";
import type { Page } from "puppeteer-core";
import { startSocks, type BrowserProxy } from "./browser-proxies";
import { accessLog, eventually } from "./support";
import { Relay } from "./transports/relay";

let [socks, fleet, folder]: [BrowserProxy?, Fleet?, string?] = [];
let relays: Relay[] = [];

async function freeUdpPort(): Promise<number> {
  const socket = dgram.createSocket("udp4");
  await new Promise<void>((done) => socket.bind(0, "127.0.0.1", done));
  const { port } = socket.address();
  await new Promise<void>((done) => socket.close(done));
  return port;
}

beforeAll(async () => {
  socks = await startSocks();
  relays = [await Relay.to(await freeUdpPort()), await Relay.to(await freeUdpPort())];
  fleet = await startFleet({
    proxyCount: 2,
    ports: "any",
    proxyEnv: (index): Record<string, string> => ({
      PUBLIC_ADDRESS: "127.0.0.1",
      WEBTRANSPORT_PORT: String(relays[index]!.targetPort),
      PUBLIC_WEBTRANSPORT_PORT: String(relays[index]!.port),
    }),
  });
  folder = await mkdtemp(path.join(os.tmpdir(), "tributary-add-on-"));
});
afterAll(async () => {
  await fleet?.stop();
  socks?.stop();
  for (const relay of relays) relay.close();
  if (folder !== undefined) await rm(folder, { recursive: true });
});

const packets = (): number => relays.reduce((sum, { received }) => sum + received, 0);

/** Fetches one segment more. Whether only proxies asked the origin for it, and how many packets went. */
async function askOne(page: Page): Promise<{ isCarried: boolean; packets: number }> {
  const before = packets();
  const startedMs = Date.now();
  const address = `/media/cmaf/segment-1-001.m4s?at=${startedMs}`;
  await page.evaluate(
    `fetch("${address}", { cache: "no-store" }).then((answer) => answer.arrayBuffer()).then(() => 0)`,
  );
  await new Promise((done) => setTimeout(done, 300));
  const asked = (await accessLog(fleet!, startedMs)).filter(({ path: at }) => at === address);
  return { isCarried: asked.length > 0 && !asked.some(isByBrowser), packets: packets() - before };
}

async function untilOne(page: Page, isSo: (one: { isCarried: boolean; packets: number }) => boolean): Promise<void> {
  expect(isSo(await eventually(() => askOne(page), isSo, 40))).toBe(true);
}

const defaults = () => ({ origoUrl: fleet!.origo.url, mode: "coded", connections: 2 });

async function addOnIn(where: string, manifest: object, script: string): Promise<string> {
  await writeFile(path.join(where, "manifest.json"), JSON.stringify({ name: "a proxy", version: "1", ...manifest }));
  await writeFile(path.join(where, "background.js"), script);
  return where;
}

/** Another extension sets the proxy. */
async function setInChromium({ browser }: OpenBrowser): Promise<void> {
  const manifest = { manifest_version: 3, permissions: ["proxy"], background: { service_worker: "background.js" } };
  const singleProxy = { scheme: "socks5", host: "127.0.0.1", port: socks!.port };
  const value = { mode: "fixed_servers", rules: { singleProxy, bypassList: ["<-loopback>"] } };
  const script = `chrome.proxy.settings.set({ value: ${JSON.stringify(value)} });`;
  const session = await browser.target().createCDPSession();
  await session.send("Extensions.loadUnpacked", { path: await addOnIn(folder!, manifest, script) });
  await session.detach();
}

/** Firefox sends nothing to its own machine through a proxy otherwise. */
const HIJACK = 'Services.prefs.setBoolPref("network.proxy.allow_hijacking_localhost", true);';

const setInFirefox = ({ browser }: OpenBrowser): Promise<unknown> =>
  inFirefoxWindow(
    browser,
    `${HIJACK}
     Services.prefs.setCharPref("network.proxy.socks", "127.0.0.1");
     Services.prefs.setIntPref("network.proxy.socks_port", ${socks!.port});
     Services.prefs.setIntPref("network.proxy.type", 1);`,
  );

test.each([
  ["chromium", setInChromium],
  ["firefox", setInFirefox],
] as const)("%s: a proxy that is set while a page plays carries the shares within 10 s", async (name, set) => {
  const open = await openBrowser({ name, headless: true, isDark: false, defaults: defaults() });
  try {
    const page = await open.newPage();
    await page.goto(fleet!.sample.url, { waitUntil: "domcontentloaded" });
    await untilOne(page, (one) => one.isCarried && one.packets > 0);
    await set(open);
    const setMs = Date.now();
    await untilOne(page, (one) => one.packets === 0);
    // The machine may be busy.
    expect(Date.now() - setMs).toBeLessThan(20_000);
    const before = packets();
    await untilOne(page, (one) => one.isCarried);
    for (let count = 0; count < 3; count++) await askOne(page);
    expect(packets() - before).toBe(0);
  } finally {
    await open.close();
  }
});

test("Firefox: an add-on's proxy for the requests of tabs alone carries the shares", async () => {
  const open = await openBrowser({ name: "firefox", headless: true, isDark: false, defaults: defaults() });
  try {
    const manifest = {
      manifest_version: 2,
      permissions: ["proxy", "<all_urls>"],
      background: { scripts: ["background.js"] },
    };
    const script = `browser.proxy.onRequest.addListener(
      ({ tabId }) => (tabId < 0 ? { type: "direct" } : { type: "socks", host: "127.0.0.1", port: ${socks!.port} }),
      { urls: ["<all_urls>"] });`;
    await inFirefoxWindow(open.browser, HIJACK);
    await installInFirefox(open.browser, await addOnIn(folder!, manifest, script), false);
    const page = await open.newPage();
    const { passed } = socks!;
    await page.goto(fleet!.sample.url, { waitUntil: "domcontentloaded" });
    const before = packets();
    await untilOne(page, (one) => one.isCarried);
    expect([packets() - before, socks!.passed > passed]).toEqual([0, true]);
  } finally {
    await open.close();
  }
});
