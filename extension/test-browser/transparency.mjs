/**
 * Transparency: every scenario of scenarios.js runs in a browser without the extension and in one with it (stand-in
 * client), and must give the same; then the failures that only the extension has, and that it did carry the bytes.
 * Run: node extension/test-browser/transparency.mjs [part of a scenario's name]
 */
/* global window, document, XMLHttpRequest, MessageEvent, MessagePort, CustomEvent, EventTarget, MutationObserver, Response */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { extensionId, launch } from "./browser.mjs";
import { MEDIA_BYTES, startOrigin } from "./server.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.resolve(here, "../..");
const SCENARIO_MS = 15_000;
/** What a hostile page sends of a kind, and the most that may come of it. */
const [FLOOD, HEEDED_MAX] = [100_000, 100];
const only = process.argv[2] ?? "";

/** Scenarios whose every request stays native, and those of which a part does; all others must be carried. */
const NATIVE =
  /refused|other origin|no-cors|credentials|same-origin mode|40[034]$|416|beyond the end|sign-in|500|503|HEAD|POST|PUT|unusual|bad scheme|no server|aborted before|shape|open range|document|sync|at once|in loadstart/;

/**
 * The checks' samples (carry/checks.ts) are the page's own requests too: past the browser's cache, as no scenario asks.
 */
const isSample = ({ native, isUncached }) => native && isUncached;

const log = [];
const servers = [await startOrigin(0, log), await startOrigin(0, log)];
const [home, other] = servers.map((server) => `http://127.0.0.1:${server.address().port}`);
const problems = [];
let passedCount = 0;

execFileSync("npx", ["webpack", "--config", path.join(here, "webpack.config.js"), "--mode", "production"], {
  cwd: root,
  stdio: ["ignore", "ignore", "inherit"],
});
const plain = await launch();
const extended = await launch(path.join(root, "extension/dist/transparency"), [
  "--host-resolver-rules=MAP *.googlevideo.com 127.0.0.1",
]);
try {
  await compareScenarios();
  await check("failures of the transport are finished natively", transportFailures);
  await check("a lost offscreen document is noticed and replaced", lostTransport);
  await check("off and on again", offAndOn);
  await check("pages with strict policies", strictPolicies);
  await check("YouTube's GET requests are carried where experiments are on", youTube);
  await check("a hostile page gets nothing on its port", hostilePage);
  await check("a hostile page has each script brought once", hostileCalls);
  await check("a page that the viewer turned off gets nothing by our frame", offSite);
  await check("nothing in the page's document names the extension", unnamed);
  await check("a page that changed the prototypes before our script gains nothing", () =>
    tamperedPage("evaluateOnNewDocument"),
  );
  await check("a page that changed the prototypes after our script gains nothing", () => tamperedPage("evaluate"));
} finally {
  await Promise.all([plain.close(), extended.close()]);
  for (const server of servers) server.close();
}
console.log(`${passedCount} passed, ${problems.length} failed`);
process.exit(problems.length === 0 && passedCount > 0 ? 0 : 1);

async function check(name, action) {
  if (only !== "" && !name.includes(only)) return;
  const startedMs = Date.now();
  try {
    await action();
    passedCount++;
    console.log(`ok   ${name} (${Date.now() - startedMs} ms)`);
  } catch (error) {
    problems.push(name);
    console.log(
      `FAIL ${name}: ${error.message}\n     to repeat: node extension/test-browser/transparency.mjs "${name}"`,
    );
  }
}

async function openPage(browser, query = "") {
  const page = await browser.newPage();
  await page.goto(`${home}/page.html${query}`);
  return page;
}

async function compareScenarios() {
  const script = fs.readFileSync(path.join(here, "scenarios.js"), "utf8");
  const pages = await Promise.all([plain, extended].map((browser) => openPage(browser)));
  for (const page of pages) await page.evaluate(script);
  const names = await pages[0].evaluate((a, b) => Object.keys(window.scenarios(a, b)), home, other);
  await pages[1].evaluate((url) => fetch(url).then((response) => response.arrayBuffer()), `${home}/text.mp4`);
  for (const name of names) {
    await check(name, async () => {
      const native = await runScenario(pages[0], name);
      log.length = 0;
      const patched = await runScenario(pages[1], name);
      assert.deepEqual(patched, native);
      const natives = log.filter(
        (entry) => entry.native && entry.path !== "/favicon.ico" && entry.path !== "/page.html" && !isSample(entry),
      );
      if (!NATIVE.test(name)) assert.deepEqual(natives, [], "all of it is carried");
    });
  }
  await Promise.all(pages.map((page) => page.close()));
}

function runScenario(page, name) {
  const late = new Promise((resolve) => setTimeout(() => resolve("not finished in time"), SCENARIO_MS));
  const run = page.evaluate((a, b, wanted) => window.scenarios(a, b)[wanted](), home, other, name);
  return Promise.race([run, late]);
}

/** In the page: fetches `url` by fetch and by XHR and returns how many bytes came, or the error's name. */
async function both(page, url, headers = {}) {
  return page.evaluate(
    async (address, given) => {
      const byFetch = await fetch(address, { headers: given })
        .then((response) => response.arrayBuffer())
        .then(
          (body) => body.byteLength,
          (error) => error.name,
        );
      const byXhr = await new Promise((resolve) => {
        const request = new XMLHttpRequest();
        request.open("GET", address);
        request.responseType = "arraybuffer";
        for (const [name, value] of Object.entries(given)) request.setRequestHeader(name, value);
        request.onloadend = () => resolve(request.response?.byteLength ?? `error ${request.status}`);
        request.send();
      });
      return [byFetch, byXhr];
    },
    url,
    headers,
  );
}

/** Whether a small request of the page goes through the transport. */
async function isCarried(page) {
  log.length = 0;
  await page.evaluate((url) => fetch(url).then((response) => response.arrayBuffer()), `${home}/text.mp4`);
  return log.some((entry) => !entry.native);
}

async function transportFailures() {
  const page = await openPage(extended);
  for (const origin of [home, other]) {
    const media = `${origin}/media.mp4?acao=*`;
    assert.deepEqual(await both(page, `${media}&carry=dead`), [MEDIA_BYTES, MEDIA_BYTES], "no head");
    log.length = 0;
    assert.deepEqual(await both(page, `${media}&carry=dies:1000000`), [MEDIA_BYTES, MEDIA_BYTES], "dies in the middle");
    assert.deepEqual(
      log.filter((entry) => entry.native && !isSample(entry)).map((entry) => entry.range),
      ["bytes=1000000-", "bytes=1000000-"],
      "only the rest is fetched again",
    );
    log.length = 0;
    assert.deepEqual(
      await both(page, `${media}&carry=dies:500`, { Range: "bytes=1000-2999" }),
      [2000, 2000],
      "a range that dies",
    );
    assert.deepEqual(
      log.filter((entry) => entry.native && !isSample(entry)).map((entry) => entry.range),
      ["bytes=1500-2999", "bytes=1500-2999"],
    );
  }
  assert.deepEqual(
    await both(page, `${home}/media.mp4?carry=dies:70000&changing=1`),
    ["TypeError", "error 0"],
    "a changed file is an error",
  );
  assert.deepEqual(await both(page, `${home}/media.mp4?carry=hang`), [MEDIA_BYTES, MEDIA_BYTES], "no answer");
  await page.close();
}

async function lostTransport() {
  const page = await openPage(extended);
  assert.equal(await isCarried(page), true);
  const running = page.evaluate(
    (url) =>
      fetch(url)
        .then((response) => response.arrayBuffer())
        .then((body) => body.byteLength),
    `${home}/media.mp4?slow=100`,
  );
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const worker = await (await extended.waitForTarget((target) => target.type() === "service_worker")).worker();
  await worker.evaluate(() => globalThis.chrome.offscreen.closeDocument());
  assert.equal(await running, MEDIA_BYTES);
  assert.equal(await isCarried(page), true, "the next request is carried again");
  await page.close();
}

async function offAndOn() {
  const popup = await extended.newPage();
  await popup.goto(`chrome-extension://${await extensionId(extended)}/popup.html`);
  await popup.waitForFunction(() => document.querySelectorAll("#mode option").length > 0);
  const page = await openPage(extended);
  assert.equal(await isCarried(page), true);
  await popup.evaluate(() => document.getElementById("enabled").click());
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.equal(await isCarried(page), false, "off");
  await popup.evaluate(() => document.getElementById("enabled").click());
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.equal(await isCarried(page), true, "on again");
  await Promise.all([page.close(), popup.close()]);
}

async function strictPolicies() {
  for (const query of ["?csp=1", "?coep=1"]) {
    const page = await openPage(extended, query);
    log.length = 0;
    const bytes = await page.evaluate(
      (url) =>
        fetch(url)
          .then((response) => response.arrayBuffer())
          .then((body) => body.byteLength),
      `${home}/media.mp4`,
    );
    assert.equal(bytes, MEDIA_BYTES);
    assert.ok(
      log.some((entry) => !entry.native),
      `${query} is carried`,
    );
    await page.close();
  }
}

/** A server with the layout of its media addresses; what numbers a request is not in what the proxies are asked for. */
async function youTube() {
  const worker = await (await extended.waitForTarget((target) => target.type() === "service_worker")).worker();
  const turn = (on) =>
    worker
      .evaluate((experimental) => globalThis.chrome.storage.local.set({ experimental }), on)
      .then(() => new Promise((resolve) => setTimeout(resolve, 300)));
  const page = await openPage(extended);
  const video = `http://rr1---sn-test.googlevideo.com:${new URL(home).port}/videoplayback?expire=1&ip=192.0.2.1&itag=136&acao=*&sig=a%2Fb&rn=7&rbuf=0`;
  const asked = async () => {
    log.length = 0;
    assert.deepEqual(await both(page, video, { Range: "bytes=0-99999" }), [100_000, 100_000]);
    return log
      .filter((entry) => entry.path.startsWith("/videoplayback") && !isSample(entry))
      .map((entry) => [entry.native, /rn=7/.test(entry.path)]);
  };
  assert.deepEqual(
    await asked(),
    [
      [true, true],
      [true, true],
    ],
    "off",
  );
  await turn(true);
  assert.deepEqual(
    await asked(),
    [
      [false, false],
      [false, false],
    ],
    "on",
  );
  await turn(false);
  assert.deepEqual(
    await asked(),
    [
      [true, true],
      [true, true],
    ],
    "off again",
  );
  await page.close();
}

/** Takes a port as a script of the page could, and sends what it should not. */
async function hostilePage() {
  const page = await openPage(extended);
  const id = await extensionId(extended);
  const answers = await page.evaluate(
    async (extension, there, mine, flood) => {
      const port = await new Promise((resolve) => {
        const { port: getter } = { port: Object.getOwnPropertyDescriptor(MessageEvent.prototype, "ports").get };
        Object.defineProperty(MessageEvent.prototype, "ports", {
          get() {
            const ports = getter.call(this);
            if (ports[0]) resolve(ports[0]);
            return [];
          },
        });
        const frame = document.createElement("iframe");
        frame.src = `chrome-extension://${extension}/frame.html`;
        document.body.append(frame);
        document.dispatchEvent(new CustomEvent("tributary-need"));
        fetch(`${mine}/media.mp4`).catch(() => undefined);
      });
      const heard = [];
      port.onmessage = (event) => heard.push([event.data.type, event.data.id]);
      const get = (number, url, range = null) =>
        port.postMessage({ type: "get", id: number, url, range, patienceMs: 4000 });
      get(1, "file:///etc/passwd.mp4");
      get(2, `${there}/media.mp4`);
      get(3, `${there}/secret.json?acao=*`);
      get(4, `${mine}/media.mp4`, { start: 5, end: 1 });
      get(5, "chrome-extension://x/y.mp4");
      for (let number = 100; number < 150; number++) get(number, `${mine}/media.mp4?wait=500`);
      await new Promise((resolve) => setTimeout(resolve, 300));
      const nativeCount = heard.filter(([type, number]) => type === "native" && number >= 100).length;
      const pongCount = () => heard.filter(([type]) => type === "pong").length;
      for (let number = 0; number < flood; number++) port.postMessage({ type: "warm" });
      port.postMessage({ type: "ping", token: 1 });
      while (pongCount() === 0) await new Promise((resolve) => setTimeout(resolve, 50));
      for (let number = 0; number < flood; number++) port.postMessage({ type: "nonsense", number });
      port.postMessage({ type: "ping", token: 2 });
      await new Promise((resolve) => setTimeout(resolve, 1500));
      return { heard: heard.filter(([, number]) => number < 100), nativeCount, pongCount: pongCount() };
    },
    id,
    other,
    home,
    FLOOD,
  );
  const first = (number) => answers.heard.find(([, known]) => known === number)?.[0];
  assert.deepEqual(
    [1, 2, 3, 4, 5].map(first),
    ["native", "native", "native", undefined, "native"],
    JSON.stringify(answers.heard),
  );
  assert.ok(answers.nativeCount >= 34, `of 50 requests at once at least 34 are sent back, got ${answers.nativeCount}`);
  assert.equal(answers.pongCount, 1, "a port with too much nonsense on it is closed");
  const transport = await (await extended.waitForTarget((target) => target.url().endsWith("/transport.html"))).asPage();
  const warmCount = await transport.evaluate(() => globalThis.warmCount);
  assert.ok(
    warmCount >= 1 && warmCount <= HEEDED_MAX,
    `sessions are opened 1 to ${HEEDED_MAX} times for ${FLOOD} words, got ${warmCount}`,
  );
  await page.close();
}

/** Places our frame itself, as any page can, and listens on the port that it gives. */
async function offSite() {
  const worker = await (await extended.waitForTarget((target) => target.type() === "service_worker")).worker();
  const id = await extensionId(extended);
  const heardWith = async (offSites) => {
    await worker.evaluate((sites) => globalThis.chrome.storage.local.set({ offSites: sites }), offSites);
    const page = await openPage(extended);
    const heard = await page.evaluate(async (extension) => {
      const port = await new Promise((resolve) => {
        const { get } = Object.getOwnPropertyDescriptor(MessageEvent.prototype, "ports");
        Object.defineProperty(MessageEvent.prototype, "ports", {
          get() {
            const ports = get.call(this);
            if (ports[0]) resolve(ports[0]);
            return [];
          },
        });
        document.body.append(
          Object.assign(document.createElement("iframe"), { src: `chrome-extension://${extension}/frame.html` }),
        );
      });
      const types = [];
      port.onmessage = (event) => types.push(event.data.type);
      await new Promise((resolve) => setTimeout(resolve, 2000));
      return types;
    }, id);
    await page.close();
    return heard;
  };
  assert.deepEqual(await heardWith(["127.0.0.1"]), [], "off");
  assert.deepEqual(await heardWith([]), ["hello"], "on again");
}

async function unnamed() {
  const page = await openPage(extended);
  const seen = await page.evaluate(async (url) => {
    const added = [];
    const observer = new MutationObserver((records) =>
      added.push(...records.flatMap(({ addedNodes }) => [...addedNodes])),
    );
    observer.observe(document, { childList: true, subtree: true });
    await fetch(url).then((response) => response.arrayBuffer());
    return added.map(({ outerHTML, shadowRoot }) => `${outerHTML} ${shadowRoot}`);
  }, `${home}/text.mp4`);
  assert.ok(seen.length > 0, "the frame is placed");
  assert.deepEqual(
    seen.filter((text) => !text.endsWith(" null") || text.includes("extension:")),
    [],
  );
  assert.equal(await isCarried(page), true);
  await page.close();
}

/** Calls for what the background brings, as a script of the page can. */
async function hostileCalls() {
  const page = await openPage(extended);
  const brought = await page.evaluate(async (flood) => {
    const counts = { carry: 0, plain: 0 };
    for (const script of Object.keys(counts))
      document.addEventListener(`tributary-${script}-ready`, () => counts[script]++);
    for (let number = 0; number < flood; number++) {
      for (const name of ["need", "connected", "plain-need"])
        document.dispatchEvent(new CustomEvent(`tributary-${name}`));
      if (number % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
    return counts;
  }, 200);
  assert.deepEqual(brought, { carry: 1, plain: 1 });
  await page.close();
}

/**
 * Listens on everything that our script might use, `when` before it or after; then asks for what the page may not read.
 * Nothing of another origin is in what it overhears, and a page beside it goes on as ever.
 */
async function tamperedPage(when) {
  const page = await extended.newPage();
  const tamper = () => {
    const overheard = (window.overheard = []);
    const note = (value) => overheard.push(value);
    const wrap = (owner, name) => {
      const original = owner[name];
      owner[name] = function (...args) {
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
      const bytesIn = (value, depth = 0) => {
        if (value instanceof ArrayBuffer) return [value.byteLength];
        if (typeof value !== "object" || value === null || depth > 3) return [];
        return Object.values(value).flatMap((each) => bytesIn(each, depth + 1));
      };
      const urls = [...window.overheard].filter((value) => value?.type === "head").map(({ url }) => url);
      return {
        results,
        urls,
        isForeign: urls.some((url) => url.startsWith(refused)),
        bytes: window.overheard.flatMap((value) => bytesIn(value)).length,
      };
    },
    `${other}/media.mp4`,
    `${home}/text.mp4`,
  );
  assert.equal(found.results[0], null, "another origin's answer without CORS stays unreadable");
  assert.equal(found.isForeign, false, `heads that it overheard: ${found.urls}`);
  const beside = await openPage(extended);
  assert.equal(await isCarried(beside), true, "a page beside it is carried as ever");
  await Promise.all([page.close(), beside.close()]);
}
