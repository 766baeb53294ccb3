/**
 * Hostile pages: what a page can try against the extension, and that it gains nothing. Each check gets the browser with
 * the extension, two origins, `openPage` (a page at `home`) and `isCarried` (whether a page's request is carried).
 */
/* global window, document, XMLHttpRequest, MessagePort, CustomEvent, EventTarget, Response */
import assert from "node:assert/strict";
import { extensionId } from "./browser.mjs";

/** The number of messages of one kind that a hostile page sends, and how many of them may have an effect. */
const [FLOOD, HEEDED_MAX] = [100_000, 100];

export const HOSTILE_CHECKS = {
  "a hostile page gets nothing on its port": hostilePage,
  "a hostile page makes the background bring each script once": hostileCalls,
  "a page that the viewer turned off gets nothing through the frame": offSite,
  "a page that changes prototypes before the page script gains nothing": (setting) =>
    tamperedPage("evaluateOnNewDocument", setting),
  "a page that changes prototypes after the page script gains nothing": (setting) => tamperedPage("evaluate", setting),
};

/**
 * A page at `home` with `window.takePort`. Any script that knows the extension's id can take a port so: it places the
 * extension's frame in an empty frame of the page's own, where no page script runs.
 */
async function openTaker({ browser, openPage }) {
  const page = await openPage();
  await page.evaluate(
    (extension) => {
      window.takePort = () =>
        new Promise((resolve) => {
          const own = document.body.appendChild(document.createElement("iframe"));
          own.contentWindow.addEventListener("message", ({ ports }) => resolve(ports[0]));
          const frame = own.contentDocument.createElement("iframe");
          frame.src = `chrome-extension://${extension}/frame.html`;
          own.contentDocument.body.append(frame);
        });
    },
    await extensionId(browser),
  );
  return page;
}

/** Sends forbidden messages on a port that the page took. */
async function hostilePage({ browser, home, other, openPage }) {
  const page = await openTaker({ browser, openPage });
  const answers = await page.evaluate(
    async (there, mine, flood) => {
      const port = await window.takePort();
      const heard = [];
      port.onmessage = (event) => heard.push([event.data.type, event.data.id]);
      const get = (number, url, range = null) =>
        port.postMessage({ type: "get", id: number, url, range, patienceMs: 4000, targets: [] });
      get(1, "file:///etc/passwd.mp4");
      get(2, `${there}/media.mp4`);
      get(3, `${there}/secret.json?acao=*`);
      get(4, `${mine}/media.mp4`, { start: 5, end: 1 });
      get(5, "chrome-extension://x/y.mp4");
      for (let number = 100; number < 150; number++) get(number, `${mine}/media.mp4?wait=500`);
      const pongCount = () => heard.filter(([type]) => type === "pong").length;
      const pong = async (token) => {
        port.postMessage({ type: "ping", token });
        while (pongCount() < token) await new Promise((resolve) => setTimeout(resolve, 50));
      };
      await pong(1);
      const nativeCount = heard.filter(([type, number]) => type === "native" && number >= 100).length;
      for (let number = 0; number < flood; number++) port.postMessage({ type: "warm" });
      await pong(2);
      for (let number = 0; number < flood; number++) port.postMessage({ type: "nonsense", number });
      port.postMessage({ type: "ping", token: 3 });
      await new Promise((resolve) => setTimeout(resolve, 1500));
      return { heard: heard.filter(([, number]) => number < 100), nativeCount, pongCount: pongCount() };
    },
    other,
    home,
    FLOOD,
  );
  const last = (number) => answers.heard.findLast(([, known]) => known === number)?.[0];
  assert.deepEqual(
    [1, 2, 3, 4, 5].map(last),
    ["native", "native", "native", undefined, "native"],
    JSON.stringify(answers.heard),
  );
  assert.ok(
    answers.nativeCount >= 34,
    `at least 34 of 50 requests must be answered native, got ${answers.nativeCount}`,
  );
  assert.equal(answers.pongCount, 2, "a port with too many invalid messages is closed");
  const transport = await (await browser.waitForTarget((target) => target.url().endsWith("/transport.html"))).asPage();
  const warmCount = await transport.evaluate(() => globalThis.warmCount);
  assert.ok(
    warmCount >= 1 && warmCount <= HEEDED_MAX,
    `${FLOOD} warm messages open sessions 1 to ${HEEDED_MAX} times, got ${warmCount}`,
  );
  await page.close();
}

/** The page listens on a port that it took. */
async function offSite({ browser, openPage }) {
  const worker = await (await browser.waitForTarget((target) => target.type() === "service_worker")).worker();
  const heardWith = async (offSites) => {
    await worker.evaluate((sites) => globalThis.chrome.storage.local.set({ offSites: sites }), offSites);
    const page = await openTaker({ browser, openPage });
    const heard = await page.evaluate(async () => {
      const port = await window.takePort();
      const types = [];
      port.onmessage = (event) => types.push(event.data.type);
      await new Promise((resolve) => setTimeout(resolve, 2000));
      return types;
    });
    await page.close();
    return heard;
  };
  assert.deepEqual(await heardWith(["127.0.0.1"]), [], "off");
  assert.deepEqual(await heardWith([]), ["hello"], "on again");
}

/** Asks for the brought scripts again and again, as any script of the page can. */
async function hostileCalls({ openPage }) {
  const page = await openPage();
  const brought = await page.evaluate(async (flood) => {
    const counts = { carry: 0, plain: 0 };
    for (const script of Object.keys(counts)) document.addEventListener(`tby-${script}`, () => counts[script]++);
    for (let number = 0; number < flood; number++) {
      for (const name of ["need", "connected", "video"])
        document.dispatchEvent(
          new CustomEvent(`tby-${name}`, { detail: new URL("/media.mp4", document.baseURI).href }),
        );
      if (number % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
    return counts;
  }, 200);
  assert.deepEqual(brought, { carry: 1, plain: 1 });
  await page.close();
}

/**
 * The page listens on everything that the page script might use, and then asks for a file that it may not read. It must
 * overhear nothing of another origin, and a second page must work as before. With `when` "evaluateOnNewDocument" the
 * page changes the prototypes before the page script runs, with "evaluate" after it. After it the page meets no port.
 */
async function tamperedPage(when, { browser, home, other, openPage, isCarried }) {
  // On a busy machine the site can be faster all the time, so that the host rests.
  const isEverCarried = async (of) => (await isCarried(of)) || (await isCarried(of)) || isCarried(of);
  const page = await browser.newPage();
  const tamper = () => {
    const overheard = (window.overheard = []);
    const note = (value) => overheard.push(value);
    const wrap = (owner, name) => {
      const original = owner[name];
      owner[name] = function (...args) {
        note(this);
        note(args);
        const result = original.apply(this, args);
        note(result);
        return result;
      };
    };
    for (const [owner, name] of [
      [window, "fetch"],
      [MessagePort.prototype, "postMessage"],
      [XMLHttpRequest.prototype, "send"],
      [Array.prototype, "push"],
      [Response.prototype, "arrayBuffer"],
      [Promise.prototype, "then"],
      [Map.prototype, "get"],
      [EventTarget.prototype, "dispatchEvent"],
    ]) {
      if (owner === Array.prototype)
        owner[name] = function (...args) {
          for (const value of args) this[this.length] = value;
          return this.length;
        };
      else wrap(owner, name);
    }
    const onmessage = Object.getOwnPropertyDescriptor(MessagePort.prototype, "onmessage");
    Object.defineProperty(MessagePort.prototype, "onmessage", {
      ...onmessage,
      set(handler) {
        note(this);
        onmessage.set.call(this, (event) => {
          note(event.data);
          handler.call(this, event);
        });
      },
    });
  };
  if (when === "evaluateOnNewDocument") await page.evaluateOnNewDocument(tamper);
  await page.goto(`${home}/page.html`);
  if (when === "evaluate") await page.evaluate(tamper);
  const found = await page.evaluate(
    async (refused, own) => {
      const read = async (url) =>
        (
          await fetch(url).then(
            (response) => response.arrayBuffer(),
            () => null,
          )
        )?.byteLength ?? null;
      const results = [await read(refused), await read(own)];
      const urls = [...window.overheard].filter((value) => value?.type === "head").map(({ url }) => url);
      return { results, urls, isForeign: urls.some((url) => url.startsWith(refused)) };
    },
    `${other}/media.mp4`,
    `${home}/text.mp4`,
  );
  assert.equal(found.results[0], null, "an answer of another origin without CORS stays unreadable");
  assert.equal(found.isForeign, false, `the page overheard heads of: ${found.urls}`);
  if (when === "evaluate") {
    assert.equal(await isEverCarried(page), true, "the page itself is carried");
    const met = () => window.overheard.flat().filter((value) => value instanceof MessagePort).length;
    assert.equal(await page.evaluate(met), 0, "ports that the page met");
  }
  const beside = await openPage();
  assert.equal(await isEverCarried(beside), true, "a second page is still carried");
  await Promise.all([page.close(), beside.close()]);
}
