/**
 * Doors: what the browser does not let a page fetch, or gives to the page's own service worker, the transport is not
 * asked for. Each check gets the browser with the extension, two origins, the port of a third one that speaks http and
 * https, the log of all, `openPage` (a page at `home` with a query) and `isCarried` (whether a page's request is
 * carried).
 */
/* global document, navigator, XMLHttpRequest */
import assert from "node:assert/strict";

export const DOOR_CHECKS = {
  "the page's own service worker has its requests first": pageWorker,
  "a service worker that hears no requests changes nothing": deafWorker,
  "what a page's policy forbids is not fetched": forbidden,
  "what a policy allows by file or by folder is fetched as it says": byFile,
  "a policy that the page adds counts from then on": addedPolicy,
  "what a policy reports stays with the browser": reportedPolicy,
  "a redirect to where the page's policy forbids is not followed for it": forbiddenRedirect,
  "what the browser asks over https is not fetched in the clear": upgraded,
  "what the browser has or preloads is not fetched again": knownFiles,
};

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const addressOf = (origin, path, count) => `${origin}${path}?acao=*&count=${count}`;

/** Fetches `url` by fetch and by XHR. The number of bytes or the error for each. */
function both(page, url) {
  return page.evaluate(async (address) => {
    const byFetch = await fetch(`${address}&by=fetch`).then(
      (response) => response.arrayBuffer().then((body) => body.byteLength),
      (error) => error.name,
    );
    const byXhr = await new Promise((resolve) => {
      const request = new XMLHttpRequest();
      request.open("GET", `${address}&by=xhr`);
      request.responseType = "arraybuffer";
      request.onloadend = () => resolve(request.response?.byteLength ?? "error");
      request.send();
    });
    return [byFetch, byXhr];
  }, url);
}

const carriedOf = (log, path) => log.filter((entry) => !entry.native && entry.path.startsWith(path)).length;

/** Waits until the worker controls the page. */
async function register(page, query = "") {
  await page.evaluate(async (address) => {
    const container = navigator.serviceWorker;
    const controlled = new Promise((resolve) => container.addEventListener("controllerchange", resolve));
    await container.register(address);
    if (container.controller === null) await controlled;
  }, `/worker.js${query}`);
}

async function unregister(page) {
  await page.evaluate(async () => {
    for (const registration of await navigator.serviceWorker.getRegistrations()) await registration.unregister();
  });
  await page.close();
}

async function pageWorker({ home, other, log, openPage, isCarried }) {
  const page = await openPage();
  assert.equal(await isCarried(page), true, "before");
  await register(page, "?answers=/own.mp4");
  log.length = 0;
  assert.deepEqual(await both(page, addressOf(home, "/own.mp4", 1)), [6, 6], "the worker answers");
  assert.deepEqual(log, []);
  assert.equal(await isCarried(page), false, "what the worker leaves to the network, it may keep");
  await both(page, addressOf(other, "/text.mp4", 1));
  assert.equal(carriedOf(log, "/text.mp4"), 0, "files of another host, too");
  await unregister(page);
}

async function deafWorker({ openPage, isCarried }) {
  const page = await openPage();
  await register(page);
  assert.equal(await isCarried(page), true);
  await unregister(page);
}

async function forbidden({ home, other, log, openPage, isCarried }) {
  for (const policy of [`connect-src ${home} ${other}/allowed/`, `default-src 'self' ${other}/allowed/`]) {
    const page = await openPage(`?content-security-policy=${encodeURIComponent(policy)}`);
    assert.equal(await isCarried(page), true, policy);
    await both(page, addressOf(other, "/allowed/text.mp4", 1));
    log.length = 0;
    await both(page, addressOf(other, "/allowed/text.mp4", 2));
    assert.equal(carriedOf(log, "/allowed/"), 2, policy);
    for (const path of ["/text.mp4", "/denied/text.mp4", "/allowed/../text.mp4"])
      assert.deepEqual(await both(page, addressOf(other, path, 3)), ["TypeError", "error"], `${policy} ${path}`);
    assert.equal(carriedOf(log, "/text.mp4") + carriedOf(log, "/denied/"), 0, policy);
    await page.close();
  }
}

/** The policy names a file, and three folders side by side. The browser has fetched of each. */
async function byFile({ home, other, log, openPage, isCarried }) {
  const folders = ["x/a", "x/b", "x/c"].map((folder) => `${other}/${folder}/`);
  for (const of of [fromHeader, fromMeta]) {
    const page = await of(`connect-src ${home} ${other}/one/text.mp4 ${folders.join(" ")}`, openPage);
    assert.equal(await isCarried(page), true);
    const allowed = ["/one/text.mp4", "/x/a/text.mp4", "/x/b/text.mp4", "/x/c/text.mp4"];
    for (const path of allowed) await both(page, addressOf(other, path, 9));
    log.length = 0;
    for (const path of allowed) await both(page, addressOf(other, path, 10));
    assert.equal(carriedOf(log, "/"), 2 * allowed.length);
    log.length = 0;
    for (const path of ["/one/other/text.mp4", "/one/more-text.mp4", "/x/d/text.mp4"])
      assert.deepEqual(await both(page, addressOf(other, path, 11)), ["TypeError", "error"], path);
    assert.deepEqual(log, []);
    await page.close();
  }
}

const fromHeader = (policy, openPage) => openPage(`?content-security-policy=${encodeURIComponent(policy)}`);

async function fromMeta(policy, openPage) {
  const page = await openPage();
  await addMeta(page, policy);
  return page;
}

function addMeta(page, policy) {
  return page.evaluate((content) => {
    const meta = Object.assign(document.createElement("meta"), { httpEquiv: "Content-Security-Policy", content });
    document.head.append(meta);
  }, policy);
}

async function addedPolicy({ home, other, log, openPage, isCarried }) {
  const page = await openPage();
  assert.equal(await isCarried(page), true);
  await both(page, addressOf(other, "/text.mp4", 4));
  await addMeta(page, `connect-src ${home}`);
  log.length = 0;
  assert.deepEqual(await both(page, addressOf(other, "/text.mp4", 5)), ["TypeError", "error"]);
  assert.equal(carriedOf(log, "/text.mp4"), 0);
  assert.equal(await isCarried(page), true, "what it allows is carried again");
  await page.close();
}

async function reportedPolicy({ openPage, isCarried }) {
  const page = await openPage("?content-security-policy-report-only=connect-src%20'none'");
  assert.equal(await isCarried(page), false);
  await page.close();
}

async function forbiddenRedirect({ home, other, openPage, isCarried }) {
  const page = await openPage(`?content-security-policy=${encodeURIComponent(`connect-src ${home}`)}`);
  assert.equal(await isCarried(page), true);
  const target = encodeURIComponent(addressOf(other, "/text.mp4", 6));
  assert.deepEqual(await both(page, `${home}/text.mp4?redirect=${target}`), ["TypeError", "error"]);
  await page.close();
}

/** With the policy the browser asks for an http address over https, and the `Response` keeps the address. */
async function upgraded({ browser, dualPort, log }) {
  const media = (count) => addressOf(`http://media.test:${dualPort}`, "/text.mp4", count);
  const policy = encodeURIComponent("upgrade-insecure-requests");
  for (const [scheme, query] of [
    ["https", `?content-security-policy=${policy}`],
    ["https", ""],
    ["http", `?content-security-policy=${policy}`],
    ["http", ""],
  ]) {
    const page = await browser.newPage();
    await page.goto(`${scheme}://page.test:${dualPort}/page.html${query}`);
    const isAsWritten = scheme === "http" && query === "";
    log.length = 0;
    for (let count = 0; count < 30 && carriedOf(log, "/text.mp4") === 0; count++) {
      await both(page, media(count));
      if (!isAsWritten && count === 3) break;
      await pause(100);
    }
    const inTheClear = log.filter(({ isSecure, native }) => !isSecure && !native).length;
    assert.equal(inTheClear > 0, isAsWritten, `${scheme} ${query}`);
    await page.close();
  }
}

async function knownFiles({ home, log, openPage, isCarried }) {
  const page = await openPage();
  const [loaded, preloaded] = ["/loaded/text.mp4", "/preloaded/text.mp4"].map((path) => addressOf(home, path, 7));
  assert.equal(await isCarried(page), true);
  for (const url of [loaded, addressOf(home, "/preloaded/text.mp4", 8)])
    await page.evaluate((address) => fetch(address).then((response) => response.text()), url);
  await page.evaluate((href) => {
    document.head.append(Object.assign(document.createElement("link"), { rel: "preload", as: "fetch", href }));
  }, preloaded);
  await pause(300);
  log.length = 0;
  for (const url of [loaded, preloaded])
    await page.evaluate((address) => fetch(address).then((response) => response.text()), url);
  assert.deepEqual([carriedOf(log, "/loaded/"), carriedOf(log, "/preloaded/")], [0, 0]);
  await page.close();
}
