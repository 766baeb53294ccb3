/**
 * Other extensions beside ours that wrap what a page asks with, before ours or after it. They must see what the page
 * itself asks and no other request, although the extension compares what the proxies bring with the site's answers.
 */
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import {
  installInFirefox,
  isByBrowser,
  openBrowser,
  startFleet,
  type BrowserName,
  type OpenBrowser,
} from "@tributary/lab-stack";
import type { Page } from "puppeteer-core";
import { accessLog, eventually } from "./support";

const SEGMENT = "/media/cmaf/segment-1-001.m4s";
const WATCHERS = 4;

/** A watcher's script. `window.watchers[name]` has what it saw, and whether it came before the extension. */
const scriptOf = (name: string): string => `(() => {
  const isFirst = document.dispatchEvent(new CustomEvent("tby-second", { cancelable: true }));
  const watcher = { isFirst, seen: [] };
  (window.watchers ??= {})["${name}"] = watcher;
  const checksum = (buffer) => new Uint8Array(buffer).reduce((sum, byte) => (31 * sum + byte) >>> 0, 0);
  const note = (how, address, range, status, buffer) =>
    watcher.seen.push([how, new URL(address, location).href, range ?? "", status, checksum(buffer)].join(" "));

  const { fetch, XMLHttpRequest } = window;
  window.fetch = async (...args) => {
    const asked = new Request(...args);
    const answer = await fetch(...args);
    const copy = answer.clone();
    void copy.arrayBuffer().then((buffer) =>
      note("fetch", asked.url, asked.headers.get("range"), answer.status, buffer), () => undefined);
    return answer;
  };

  const { open, send, setRequestHeader } = XMLHttpRequest.prototype;
  const asked = new WeakMap();
  XMLHttpRequest.prototype.open = function (...args) {
    asked.set(this, { address: args[1] });
    return open.apply(this, args);
  };
  XMLHttpRequest.prototype.setRequestHeader = function (header, value) {
    if (header.toLowerCase() === "range") asked.get(this).range = value;
    return setRequestHeader.call(this, header, value);
  };
  XMLHttpRequest.prototype.send = function (...args) {
    this.addEventListener("load", () => {
      const { address, range } = asked.get(this);
      note("xhr", address, range, this.status, this.response);
    });
    return send.apply(this, args);
  };
  window.XMLHttpRequest = new Proxy(XMLHttpRequest, { construct: (target, args) => new target(...args) });
})();`;

/** Asks by fetch and by XMLHttpRequest, whole and by a range, and tells what the page got as a watcher does. */
const ASK = `(async (address) => {
  const got = [];
  const checksum = (buffer) => new Uint8Array(buffer).reduce((sum, byte) => (31 * sum + byte) >>> 0, 0);
  for (const range of ["", "bytes=100-30000"]) {
    const headers = range === "" ? {} : { range };
    const url = new URL(address + (range && "-part"), location).href;
    const answer = await fetch(url + "-fetch", { headers });
    got.push(["fetch", url + "-fetch", range, answer.status, checksum(await answer.arrayBuffer())].join(" "));
    const xhr = new XMLHttpRequest();
    xhr.open("GET", url + "-xhr");
    for (const name in headers) xhr.setRequestHeader(name, headers[name]);
    xhr.responseType = "arraybuffer";
    await new Promise((done) => {
      xhr.onloadend = done;
      xhr.send();
    });
    got.push(["xhr", url + "-xhr", range, xhr.status, checksum(xhr.response)].join(" "));
  }
  return got;
})`;

/** Of an unpacked extension of Chromium, made from its folder. Scripts come into a page in the order of the ids. */
const idOf = (folder: string): string =>
  [...createHash("sha256").update(folder).digest("hex").slice(0, 32)]
    .map((digit) => String.fromCharCode(97 + parseInt(digit, 16)))
    .join("");

/** Installs watchers. In Chromium some come before the extension and some after it. Firefox has no such order. */
async function installWatchers(open: OpenBrowser, name: BrowserName, folder: string): Promise<void> {
  const worker = await (name === "chromium"
    ? open.browser.waitForTarget((each) => each.type() === "service_worker")
    : null);
  const own = worker === null ? "" : new URL(worker.url()).host;
  const isFirst = (watcher: string): boolean => idOf(path.join(folder, watcher)) < own;
  let count = 0;
  for (let at = 0; at < WATCHERS; at++) {
    while (name === "chromium" && isFirst(`watcher-${count}`) !== (at % 2 === 0)) count++;
    const watcher = `watcher-${count++}`;
    const manifest = {
      manifest_version: 3,
      name: watcher,
      version: "1",
      host_permissions: ["http://*/*"],
      content_scripts: [{ matches: ["http://*/*"], js: ["watch.js"], run_at: "document_start", world: "MAIN" }],
      ...(name === "firefox" ? { browser_specific_settings: { gecko: { id: `${watcher}@test` } } } : {}),
    };
    await mkdir(path.join(folder, watcher));
    await writeFile(path.join(folder, watcher, "manifest.json"), JSON.stringify(manifest));
    await writeFile(path.join(folder, watcher, "watch.js"), scriptOf(watcher));
    if (name === "firefox") await installInFirefox(open.browser, path.join(folder, watcher), false);
    else await loadUnpacked(open, path.join(folder, watcher));
  }
}

async function loadUnpacked({ browser }: OpenBrowser, folder: string): Promise<void> {
  const session = await browser.target().createCDPSession();
  await session.send("Extensions.loadUnpacked", { path: folder });
  await session.detach();
}

const watchersIn = async (page: Page): Promise<{ isFirst: boolean; seen: string[] }[]> =>
  Object.values((await page.evaluate("window.watchers")) as Record<string, { isFirst: boolean; seen: string[] }>);

test.each<BrowserName>(["chromium", "firefox"])(
  "%s: other extensions that wrap fetch and XMLHttpRequest see the page's own answers alone, and answers are compared",
  async (name) => {
    const fleet = await startFleet({ proxyCount: 2, ports: "any" });
    const folder = await mkdtemp(path.join(os.tmpdir(), "tributary-beside-"));
    const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 2 };
    const open = await openBrowser({ name, headless: true, defaults });
    try {
      await installWatchers(open, name, folder);
      const page = await open.newPage();
      await page.goto(fleet.sample.url);
      const startedMs = Date.now();
      const got: string[] = [];
      const requests = (): Promise<Awaited<ReturnType<typeof accessLog>>> => accessLog(fleet, startedMs);
      /** Whether the proxies alone brought all four of the latest answers. */
      const areCarried = async (): Promise<boolean> => {
        const address = `${SEGMENT}?n=${got.length}`;
        got.push(...((await page.evaluate(`${ASK}("${address}")`)) as string[]));
        return !(await requests()).some((each) => each.path.startsWith(address) && isByBrowser(each));
      };
      expect(await eventually(areCarried, Boolean, 40)).toBe(true);
      // What the browser asked, it asked for the page: each address at most once.
      const asked = (await requests()).filter((each) => isByBrowser(each) && each.path.startsWith(SEGMENT));
      expect(new Set(asked.map((each) => each.path)).size).toBe(asked.length);

      const areWhole = async (): Promise<boolean> =>
        (await watchersIn(page)).every(({ isFirst, seen }) => isFirst || seen.length === got.length);
      await eventually(areWhole, Boolean, 5);
      const watchers = await watchersIn(page);
      expect(watchers).toHaveLength(WATCHERS);
      if (name === "chromium") expect(watchers.filter(({ isFirst }) => isFirst)).toHaveLength(WATCHERS / 2);
      for (const { isFirst, seen } of watchers) {
        // One that came first stands behind the extension, and sees what the browser itself answers.
        if (isFirst) expect(got).toEqual(expect.arrayContaining(seen));
        else expect([...seen].sort()).toEqual([...got].sort());
        expect(new Set(seen).size).toBe(seen.length);
        expect(seen.length).toBeGreaterThanOrEqual(isFirst ? 1 : got.length);
      }
    } finally {
      await open.close();
      await fleet.stop();
      await rm(folder, { recursive: true, force: true });
    }
  },
);
