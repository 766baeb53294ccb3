/**
 * Containers of Firefox: each has its own cookies. A page whose host has a login must get the same bytes there as
 * without the extension, and records from two containers must not show that they are of one person.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import {
  installInFirefox,
  isByBrowser,
  openBrowser,
  recordsSince,
  startFleet,
  type Fleet,
  type OpenBrowser,
} from "@tributary/lab-stack";
import type { Page } from "puppeteer-core";
import { eventually } from "./support";

const BYTES = 300_000;
/** `open` is for everyone. The others need the cookie: by name, by the same name in Vary, or by Cache-Control. */
const KINDS = ["open", "login", "vary", "private"] as const;

/** The body for this visitor: the same for everyone, or the visitor's own. */
const bodyOf = (kind: string, visitor: string): Buffer =>
  Buffer.alloc(
    BYTES,
    createHash("sha256")
      .update(kind === "open" ? kind : `${kind} ${visitor}`)
      .digest(),
  );
const digestOf = (body: Buffer): string => createHash("sha256").update(body).digest("hex");

let fleet: Fleet;
let origin: Server;
let base: string;
let open: OpenBrowser;
let folder: string;
const asked: { at: string; byBrowser: boolean }[] = [];
/** The cookie stores of the tabs, as an add-on sees them. */
const stores = new Set<string>();

function answer(request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? "/", "http://origin");
  const kind = url.pathname.slice(1).split(".")[0] ?? "";
  if (kind === "page") {
    response.setHeader("set-cookie", `visitor=${url.searchParams.get("visitor") ?? ""}; HttpOnly; SameSite=Strict`);
    response.setHeader("content-type", "text/html").end("<!doctype html><title>a page with a login</title>");
    return;
  }
  if (kind === "store") {
    stores.add(url.search.slice(1));
    response.end();
    return;
  }
  asked.push({ at: request.url ?? "", byBrowser: isByBrowser({ userAgent: request.headers["user-agent"] ?? "" }) });
  const visitor = /visitor=(\w+)/.exec(request.headers.cookie ?? "")?.[1];
  response.setHeader("content-type", "video/mp4");
  if (kind === "vary") response.setHeader("vary", "Cookie");
  if (kind === "private") response.setHeader("cache-control", "private, max-age=60");
  if (kind === "login" && visitor === undefined) response.writeHead(403).end("log in first");
  else response.end(bodyOf(kind, visitor ?? "a stranger"));
}

beforeAll(async () => {
  origin = createServer(answer);
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  const host = `127.0.0.1:${(origin.address() as AddressInfo).port}`;
  base = `http://${host}`;
  fleet = await startFleet({ proxyCount: 2, ports: "any", allow: [host] });
  const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 2 };
  open = await openBrowser({ name: "firefox", headless: true, defaults });
  folder = await mkdtemp(path.join(os.tmpdir(), "tributary-add-on-"));
  await installInFirefox(open.browser, await addOnIn(folder), false);
});

/** Only an add-on sees in which container a tab is. */
async function addOnIn(where: string): Promise<string> {
  const manifest = {
    manifest_version: 2,
    name: "containers",
    version: "1",
    permissions: ["contextualIdentities", "cookies", "tabs", "http://127.0.0.1/*"],
    background: { scripts: ["background.js"] },
  };
  const tell = `browser.tabs.onUpdated.addListener((_id, _change, tab) =>
    fetch("${base}/store.?" + tab.cookieStoreId));`;
  await writeFile(path.join(where, "manifest.json"), JSON.stringify(manifest));
  await writeFile(path.join(where, "background.js"), tell);
  return where;
}
afterAll(async () => {
  await open.close();
  await fleet.stop();
  origin.closeAllConnections();
  origin.close();
  await rm(folder, { recursive: true });
});

/** The digest of what the page gets, or the error that it sees. */
const fetched = (page: Page, at: string): Promise<string> =>
  page.evaluate(
    `fetch(${JSON.stringify(at)}).then(async (answer) => {
      const digest = await crypto.subtle.digest("SHA-256", await answer.arrayBuffer());
      return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    }, String)`,
  ) as Promise<string>;

/** Opens the page as this visitor. Every segment has the visitor's own bytes, from the first on. */
async function watch(page: Page, visitor: string): Promise<void> {
  await page.goto(`${base}/page.html?visitor=${visitor}`, { waitUntil: "domcontentloaded" });
  let round = 0;
  /** Whether proxies alone asked for the segment that is for everyone. */
  const askNext = async (kinds: readonly string[]): Promise<boolean> => {
    round++;
    const addresses = kinds.map((kind) => `/${kind}.m4s?${visitor}=${round}`);
    const got = await Promise.all(addresses.map((each) => fetched(page, each)));
    expect(got).toEqual(kinds.map((kind) => digestOf(bodyOf(kind, visitor))));
    const requests = asked.filter(({ at }) => at === addresses[0]);
    return requests.length > 0 && requests.every(({ byBrowser }) => !byBrowser);
  };
  expect(await eventually(() => askNext(["open"]), Boolean, 60)).toBe(true);
  for (let count = 0; count < 3; count++) await askNext(KINDS);
}

test("Firefox: a page with a login plays in each container, and the containers have different client ids", async () => {
  const clients = async (): Promise<Set<string>> =>
    new Set((await recordsSince(fleet, 0)).map(({ clientId }) => clientId));
  await watch(await open.newPage(), "ada");
  expect((await eventually(clients, ({ size }) => size > 0)).size).toBe(1);
  // A user context of WebDriver BiDi is a container of Firefox.
  const container = await open.browser.createBrowserContext();
  await watch(await container.newPage(), "bob");
  expect((await eventually(clients, ({ size }) => size > 1)).size).toBe(2);
  const isContainer = (store: string): boolean => /^firefox-container-\d+$/.test(store);
  expect(await eventually(() => [...stores].some(isContainer), Boolean)).toBe(true);
  expect([...stores]).toContain("firefox-default");
}, 120_000);
