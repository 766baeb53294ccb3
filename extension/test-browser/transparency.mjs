/**
 * Transparency: runs every scenario of scenarios.js in a browser without the extension and in one with it, and compares
 * the results. The extension has a stand-in client here, and it must carry the bytes where it should. Then come the
 * failures that only the extension can have, and hostile pages (hostile.mjs).
 * Run: node extension/test-browser/transparency.mjs [part of a scenario's name]
 */
/* global window, document, XMLHttpRequest, MutationObserver */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { extensionId, launch } from "./browser.mjs";
import { DOOR_CHECKS } from "./doors.mjs";
import { HOSTILE_CHECKS } from "./hostile.mjs";
import { POLICY_CHECKS } from "./policies.mjs";
import { MEDIA_BYTES, startDualOrigin, startOrigin } from "./server.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.resolve(here, "../..");
const SCENARIO_MS = 15_000;
const only = process.argv[2] ?? "";

/** Scenarios with at least one native request. All requests of the others must be carried. */
const NATIVE = new RegExp(
  "refused|other origin|no-cors|credentials|same-origin mode|40[034]$|416|beyond the end|sign-in|500|503|HEAD|POST|" +
    "PUT|unusual|bad scheme|xhr: text|untyped|json$|" +
    "no server|aborted before|shape|open range|document|sync|at once|in loadstart|" +
    "nothing there|past its end|again and again|while waiting|timeout signal|timeout$|while under way|while it arrives",
);

/** Addresses whose answers have the headers of the scenario's ones: they are compared before the scenario runs. */
const LIKE = {
  "fetch: every header of the own origin": () => [`${home}/text.mp4?more=1`],
  "fetch: every exposed header": () => [`${other}/media.mp4?acao=*&more=1&expose=x-more,Age`],
  "fetch: type of a blob": () =>
    ["video/MP4", "video/mp4; codecs=avc1", "nonsense"].map(
      (type) => `${home}/text.mp4?type=${encodeURIComponent(type)}`,
    ),
};

const log = [];
const servers = [await startOrigin(0, log), await startOrigin(0, log), await startDualOrigin(log)];
const [home, other] = servers.map((server) => `http://127.0.0.1:${server.address().port}`);
const dualPort = servers[2].address().port;
const problems = [];
let passedCount = 0;
let askedCount = 0;
let connections = 4;

execFileSync("npx", ["webpack", "--config", path.join(here, "webpack.config.js"), "--mode", "production"], {
  cwd: root,
  stdio: ["ignore", "ignore", "inherit"],
});
const plain = await launch();
const extended = await launch(path.join(root, "extension/dist/transparency"), [
  "--host-resolver-rules=MAP *.googlevideo.com 127.0.0.1, MAP *.test 127.0.0.1",
  "--ignore-certificate-errors",
]);
try {
  await compareScenarios();
  await check("a request that the transport fails is finished natively", transportFailures);
  await check("a lost offscreen document is noticed and replaced", lostTransport);
  await check("the extension can be turned off and on again", offAndOn);
  await check("media are carried in pages with strict policies", strictPolicies);
  await check("YouTube's GET requests are carried only with experiments on", youTube);
  await check("nothing in the page's document names the extension", unnamed);
  const setting = {
    browser: extended,
    home,
    other,
    dualPort,
    log,
    openPage: (query) => openPage(extended, query),
    isCarried,
  };
  for (const [name, run] of Object.entries({ ...DOOR_CHECKS, ...POLICY_CHECKS, ...HOSTILE_CHECKS }))
    await check(name, () => run(setting));
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

/** Has the page ask for a file of each folder, because the browser itself asks for the first one. */
async function permit(page, origins = [home, other]) {
  const files = origins.map((origin) => `${origin}/first.mp4?acao=*`);
  await page.evaluate((urls) => Promise.all(urls.map((url) => fetch(url).then((answer) => answer.text()))), files);
}

async function compareScenarios() {
  const [observe, script] = ["observe.js", "scenarios.js"].map((name) =>
    fs.readFileSync(path.join(here, name), "utf8"),
  );
  const pages = await Promise.all([plain, extended].map((browser) => openPage(browser)));
  for (const page of pages) {
    await page.evaluate(observe);
    await page.evaluate(script);
    await permit(page);
  }
  await isCarried(pages[1]);
  const names = await pages[0].evaluate((a, b) => Object.keys(window.scenarios(a, b)), home, other);
  let isFresh = false;
  for (const name of names) {
    await check(name, async () => {
      const native = await runScenario(pages[0], name);
      if (!isFresh) await freshTrust(pages[1]);
      isFresh = !NATIVE.test(name);
      for (const url of LIKE[name]?.() ?? [])
        assert(await untilCarried(pages[1], url), "a comparison makes it carried");
      log.length = 0;
      const patched = await runScenario(pages[1], name);
      assert.deepEqual(patched, native);
      const natives = log.filter(
        (entry) => entry.native && entry.path !== "/favicon.ico" && entry.path !== "/page.html",
      );
      if (isFresh) assert.deepEqual(natives, [], "all of it is carried");
    });
  }
  await Promise.all(pages.map((page) => page.close()));
}

/** Has the transport forget what it learned of hosts, by another setting. */
async function forget() {
  connections = connections === 4 ? 3 : 4;
  const worker = await (await extended.waitForTarget((target) => target.type() === "service_worker")).worker();
  await worker.evaluate((count) => globalThis.chrome.storage.local.set({ connections: count }), connections);
  await new Promise((resolve) => setTimeout(resolve, 100));
}

/** Has each kind of request compared anew. */
async function freshTrust(page) {
  await forget();
  for (const path of ["/media.mp4", "/text.mp4", "/empty.mp4"]) await untilCarried(page, `${home}${path}`);
  await untilCarried(page, `${other}/media.mp4?acao=*`);
  for (const origin of [home, other]) await untilCarried(page, `${origin}/media.mp4?acao=*`, "bytes=0-999");
}

/** Asks for files of one kind until one comes through the transport. False if none does. */
async function untilCarried(page, url, range) {
  for (let attempt = 0; attempt < 30; attempt++) {
    log.length = 0;
    // The browser asks again for what it has loaded before.
    const address = `${url}${url.includes("?") ? "&" : "?"}count=${++askedCount}`;
    await page.evaluate(
      (given, headers) => fetch(given, { headers }).then((response) => response.arrayBuffer().then(() => undefined)),
      address,
      range === undefined ? {} : { Range: range },
    );
    if (!log.some(({ native, path }) => native && address.endsWith(path))) return true;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return false;
}

function runScenario(page, name) {
  const late = new Promise((resolve) => setTimeout(() => resolve("not finished in time"), SCENARIO_MS));
  const run = page.evaluate((a, b, wanted) => window.scenarios(a, b, wanted)[wanted](), home, other, name);
  return Promise.race([run, late]);
}

/** Gets `url` in the page by fetch and by XHR. Returns the number of bytes or the error's name for each. */
async function both(page, url, headers = {}) {
  return page.evaluate(
    async (address, given) => {
      const byFetch = await fetch(`${address}&by=fetch`, { headers: given })
        .then((response) => response.arrayBuffer())
        .then(
          (body) => body.byteLength,
          (error) => error.name,
        );
      const byXhr = await new Promise((resolve) => {
        const request = new XMLHttpRequest();
        request.open("GET", `${address}&by=xhr`);
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

/** Whether small requests of the page go through the transport, after the first ones and a comparison. */
async function isCarried(page) {
  // On a busy machine the host may rest, because the site was faster. A changed setting ends that.
  await forget();
  await permit(page, [home]);
  return untilCarried(page, `${home}/text.mp4`);
}

async function transportFailures() {
  const page = await openPage(extended);
  await permit(page);
  await freshTrust(page);
  for (const origin of [home, other]) {
    const media = `${origin}/media.mp4?acao=*`;
    assert.deepEqual(await both(page, `${media}&carry=dead`), [MEDIA_BYTES, MEDIA_BYTES], "no head");
    log.length = 0;
    assert.deepEqual(await both(page, `${media}&carry=dies:1000000`), [MEDIA_BYTES, MEDIA_BYTES], "dies in the middle");
    assert.deepEqual(
      log.filter((entry) => entry.native).map((entry) => entry.range),
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
      log.filter((entry) => entry.native).map((entry) => entry.range),
      ["bytes=1500-2999", "bytes=1500-2999"],
    );
  }
  assert.deepEqual(
    await both(page, `${home}/media.mp4?carry=dies:70000&validators=other`),
    [MEDIA_BYTES, MEDIA_BYTES],
    "a file with other validators",
  );
  assert.deepEqual(
    await both(page, `${home}/media.mp4?carry=dies:70000&validators=other&rewritten=1`),
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
    await isCarried(page);
    assert.ok(await untilCarried(page, `${home}/media.mp4`), `${query} is carried`);
    assert.deepEqual(await both(page, `${home}/media.mp4`), [MEDIA_BYTES, MEDIA_BYTES]);
    await page.close();
  }
}

/**
 * The server's media addresses have YouTube's layout, without a key, so that no limit holds (allowance.ts). The carried
 * address must not have the request's number.
 */
async function youTube() {
  const worker = await (await extended.waitForTarget((target) => target.type() === "service_worker")).worker();
  const turn = (on) =>
    worker
      .evaluate((experimental) => globalThis.chrome.storage.local.set({ experimental }), on)
      .then(() => new Promise((resolve) => setTimeout(resolve, 300)));
  const page = await openPage(extended);
  const query = "itag=136&acao=*&name=a%2Fb&rn=7&rbuf=0";
  const video = `http://rr1---sn-test.googlevideo.com:${new URL(home).port}/videoplayback?${query}`;
  const asked = async () => {
    log.length = 0;
    assert.deepEqual(await both(page, video, { Range: "bytes=0-99999" }), [100_000, 100_000]);
    return log
      .filter((entry) => entry.path.startsWith("/videoplayback"))
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
  // The browser itself asks for the first, and the second is compared.
  await isCarried(page);
  await untilCarried(page, video, "bytes=0-99999");
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

async function unnamed() {
  const page = await openPage(extended);
  const seen = await page.evaluate(async (url) => {
    const added = [];
    const observer = new MutationObserver((records) =>
      added.push(...records.flatMap(({ addedNodes }) => [...addedNodes])),
    );
    observer.observe(document, { childList: true, subtree: true });
    await fetch(url).then((response) => response.arrayBuffer());
    for (const untilMs = Date.now() + 10_000; added.length === 0 && Date.now() < untilMs;)
      await new Promise((resolve) => setTimeout(resolve, 50));
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
