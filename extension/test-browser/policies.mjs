/**
 * Policies: documents with the same address in one tab have each the policy (CSP) that came with it. Each check gets
 * the browser with the extension and the origin `home`, whose pages have the policies of their address in turn.
 */
/* global document, localStorage, ask */
import assert from "node:assert/strict";

const [STRICT, FREE] = ["connect-src 'none'", ""];
/** The browser decides itself whether it keeps or prerenders a page. */
const TRIES_MAX = 4;
const WAIT_MS_MAX = 3000;

export const POLICY_CHECKS = {
  "a frame that shows its page again has a policy of its own": frames,
  "a page that loads again has a policy of its own": loadedAgain,
  "a page that is kept for back has a policy of its own": (setting) => untilTried(kept, setting),
  "a prerendered page has a policy of its own": (setting) => untilTried(prerendered, setting),
};

let count = 0;
const addressOf = (home, ...policies) => {
  const turns = policies.map((policy) => `&turn=${encodeURIComponent(policy)}`).join("");
  return new URL(`${home}/page.html?asks&count=${++count}${turns}`).href;
};

const answerTo = (frame) => frame.evaluate(() => ask());

/** Opens pages until the browser has done what the check is about. */
async function untilTried(run, { browser, home }) {
  for (let tries = 0, isTried = false; !isTried; tries++) {
    assert.ok(tries < TRIES_MAX, `the browser did not do it in ${TRIES_MAX} tries`);
    const page = await browser.newPage();
    isTried = await run(page, home);
    await page.close();
  }
}

async function addFrame(page, url) {
  const added = await page.evaluateHandle(
    (src) =>
      new Promise((resolve) => {
        const frame = Object.assign(document.createElement("iframe"), { src });
        frame.addEventListener("load", () => resolve(frame));
        document.body.append(frame);
      }),
    url,
  );
  return added.contentFrame();
}

async function frames({ browser, home }) {
  const page = await browser.newPage();
  const url = addressOf(home, STRICT, FREE, STRICT);
  await page.goto(url);
  const documents = [page, await addFrame(page, url), await addFrame(page, `${url}#part`)];
  assert.deepEqual(await Promise.all(documents.map(answerTo)), ["no", "anywhere", "no"]);
  await page.close();
}

async function loadedAgain({ browser, home }) {
  const page = await browser.newPage();
  await page.goto(addressOf(home, STRICT, FREE, STRICT));
  const answers = [await answerTo(page)];
  for (let times = 0; times < 2; times++) {
    await page.reload();
    answers.push(await answerTo(page));
  }
  assert.deepEqual(answers, ["no", "anywhere", "no"]);
  await page.close();
}

async function kept(page, home) {
  const url = addressOf(home, STRICT, FREE);
  await page.goto(url);
  await page.evaluate(() => (globalThis.isFirst = true));
  for (const next of [addressOf(home), url]) await page.goto(next);
  assert.equal(await answerTo(page), "anywhere");
  for (let times = 0; times < 2; times++) await page.goBack();
  const isKept = await page.evaluate(() => globalThis.isFirst === true);
  if (isKept) assert.equal(await answerTo(page), "no");
  return isKept;
}

/** The prerendered page tells another one of its origin, because the driver may lose a page that the browser swaps. */
async function prerendered(page, home) {
  const url = addressOf(home, STRICT, FREE);
  const other = await page.browser().newPage();
  for (const each of [other, page]) await each.goto(addressOf(home));
  // The browser prerenders nothing for a tab behind another one.
  await page.bringToFront();
  const told = async (what) => {
    const stored = other.waitForFunction(
      (key) => localStorage.getItem(key),
      { timeout: WAIT_MS_MAX, polling: 100 },
      `${what} ${url}`,
    );
    return stored.then((handle) => handle.jsonValue()).catch(() => null);
  };
  const frame = await addFrame(page, url);
  await page.evaluate((href) => {
    const rules = JSON.stringify({ prerender: [{ urls: [href] }] });
    document.head.append(Object.assign(document.createElement("script"), { type: "speculationrules", text: rules }));
    document.body.append(Object.assign(document.createElement("a"), { href, id: "link" }));
  }, url);
  const early = await told("prerendered");
  assert.equal(await answerTo(frame), "no");
  if (early !== null) await page.evaluate(() => document.getElementById("link").click());
  const late = early && (await told("shown"));
  await other.close();
  if (late === null) return false;
  assert.deepEqual([early, late], ["anywhere", "anywhere"]);
  return true;
}
