/**
 * Mixed content in Firefox: a page over https whose player asks for segments over http. The browser blocks them, or
 * asks over https if the page's policy says so. The proxies must ask for nothing in the clear.
 */
import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import net from "node:net";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import {
  inFirefoxWindow,
  isByBrowser,
  openBrowser,
  startFleet,
  type Fleet,
  type OpenBrowser,
} from "@tributary/lab-stack";
import type { Page } from "puppeteer-core";
import { eventually } from "./support";

const BODY = Buffer.alloc(200_000, "a segment");
const UPGRADE = "upgrade-insecure-requests";
/** For the proxies: names under .test are on this machine. */
const RESOLVER = `
  const dns = require("node:dns/promises");
  const { lookup } = dns;
  const here = { address: "127.0.0.1", family: 4 };
  dns.lookup = (host, options) =>
    host.endsWith(".test") ? Promise.resolve(options?.all ? [here] : here) : lookup(host, options);`;
const TRUST = `
  Services.prefs.setCharPref("network.dns.localDomains", "page.test,media.test");
  Cc["@mozilla.org/security/certoverride;1"].getService(Ci.nsICertOverrideService)
    .setDisableAllSecurityChecksAndLetAttackersInterceptMyData(true);`;

interface Asked {
  who: "browser" | "proxy";
  scheme: string;
  at: string;
}

let folder: string;
let port: number;
let [fleet, open]: [Fleet?, OpenBrowser?] = [];
const servers: { close(): void }[] = [];
let asked: Asked[] = [];

const answer =
  (scheme: string) =>
  ({ url = "", headers }: IncomingMessage, response: ServerResponse): void => {
    if (url.startsWith("/page.html")) {
      if (url.includes("?")) response.setHeader("content-security-policy", UPGRADE);
      response.setHeader("content-type", "text/html").end("<!doctype html><title>a page over https</title>");
      return;
    }
    const who = isByBrowser({ userAgent: headers["user-agent"] ?? "" }) ? "browser" : "proxy";
    asked.push({ who, scheme, at: url });
    response.setHeader("access-control-allow-origin", "*");
    response.setHeader("content-type", "video/mp2t").end(BODY);
  };

/** One port that speaks http, and https with who begins a TLS handshake. */
async function startBoth(key: string, cert: string): Promise<number> {
  const plain = createServer(answer("http"));
  const secure = createSecureServer({ key: await readFile(key), cert: await readFile(cert) }, answer("https"));
  const server = net.createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.once("readable", () => {
      const first = socket.read() as Buffer | null;
      if (first === null) return;
      socket.unshift(first);
      (first[0] === 22 ? secure : plain).emit("connection", socket);
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  servers.push(server);
  return (server.address() as AddressInfo).port;
}

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), "tributary-mixed-"));
  const [key, cert, resolver] = ["key.pem", "cert.pem", "resolver.cjs"].map((name) => path.join(folder, name));
  const subject = ["-subj", "/CN=page.test", "-addext", "subjectAltName=DNS:page.test,DNS:media.test"];
  const made = [
    "req",
    "-x509",
    "-newkey",
    "rsa:2048",
    "-nodes",
    "-days",
    "2",
    ...subject,
    "-keyout",
    key!,
    "-out",
    cert!,
  ];
  execFileSync("openssl", made, { stdio: "ignore" });
  await writeFile(resolver!, RESOLVER);
  port = await startBoth(key!, cert!);
  const hosts = `media.test:${port},page.test:${port}`;
  fleet = await startFleet({
    proxyCount: 2,
    ports: "any",
    proxyEnv: () => ({
      ALLOW_HOSTS: hosts,
      ALLOW_PRIVATE_HOSTS: hosts,
      NODE_OPTIONS: `--require ${resolver}`,
      NODE_EXTRA_CA_CERTS: cert!,
    }),
  });
  const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 2 };
  open = await openBrowser({ name: "firefox", headless: true, isDark: false, defaults });
  await inFirefoxWindow(open.browser, TRUST);
});
afterAll(async () => {
  await open?.close();
  await fleet?.stop();
  for (const server of servers) server.close();
  await rm(folder, { recursive: true });
});

/** The length of the answer, or the error's name. */
const fetched = (page: Page, url: string): Promise<unknown> =>
  page.evaluate(`fetch("${url}").then(async (got) => (await got.arrayBuffer()).byteLength, ({ name }) => name)`);

let count = 0;

/** Fetches until only the proxies asked for a segment. */
async function untilCarried(page: Page): Promise<boolean> {
  const isCarried = async (): Promise<boolean> => {
    const at = `/seg/${++count}.ts`;
    await fetched(page, `https://media.test:${port}${at}`);
    const own = asked.filter((each) => each.at === at);
    return own.length > 0 && own.every(({ who }) => who === "proxy");
  };
  return eventually(isCarried, Boolean, 40);
}

test.each([
  ["blocked by the browser", "", "TypeError", [] as string[]],
  ["asked over https, as the page's policy says", "?upgrade", BODY.length, ["https"]],
])("Firefox: segments over http in a page over https are %s", async (_, query, result, schemes) => {
  const page = await open!.newPage();
  await page.goto(`https://page.test:${port}/page.html${query}`, { waitUntil: "domcontentloaded" });
  expect(await untilCarried(page)).toBe(true);
  asked = [];
  // The first files of a folder are never carried.
  for (let number = 0; number < 8; number++) {
    expect(await fetched(page, `http://media.test:${port}/seg/clear-${number}.ts`)).toBe(result);
    await new Promise((done) => setTimeout(done, 100));
  }
  expect([...new Set(asked.map(({ scheme }) => scheme))]).toEqual(schemes);
  await page.close();
});
