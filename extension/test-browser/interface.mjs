/**
 * Interface: opens popup, options and welcome page in a real Chromium, light and dark. axe-core must find no fault, and
 * the site's switch must work. In the viewer's own colours, in a narrow window and from right to left everything must
 * stay visible. In Firefox, where each page has its own transport, the popup must show that transport's
 * figures, and a setting must reach it.
 * Run after node infra/setup.mjs --browser --firefox: node extension/test-browser/interface.mjs
 */
/* global window, document, chrome, getComputedStyle */
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { extensionId } from "./browser.mjs";

const require = createRequire(import.meta.url);
const { FIREFOX_UUID, openBrowser, startFleet } = require("@tributary/lab-stack");
const { source: axeSource } = require("axe-core");
const PAGES = [
  ["popup", 360, 620],
  ["options", 760, 900],
  ["welcome", 760, 620],
];

export async function checkInterface() {
  const results = [];
  const fleet = await startFleet({ proxyCount: 4, ports: "any", rateBytesPerSec: 150_000 });
  const open = await openBrowser({
    headless: true,
    defaults: { origoUrl: fleet.origo.url, mode: "coded", connections: 4 },
  });
  try {
    const id = await extensionId(open.browser);
    const playing = await open.browser.newPage();
    await playing.goto(`${fleet.sample.url}/hls.html`);
    for (const scheme of ["light", "dark"]) {
      for (const page of PAGES)
        results.push(...(await checkPage(open.browser, `chrome-extension://${id}`, page, scheme)));
    }
    for (const scheme of ["light", "dark"])
      results.push(await checkForcedColours(open.browser, `chrome-extension://${id}`, scheme));
    for (const width of [200, 280, 320, 359])
      for (const [name] of PAGES)
        results.push(await checkNarrow(open.browser, `chrome-extension://${id}`, name, width));
    results.push(...(await checkSiteSwitch(open.browser, `chrome-extension://${id}`)));
    results.push(...(await checkFirefox(fleet)));
  } finally {
    await open.close();
    await fleet.stop();
  }
  return results;
}

/** Opens a page of the extension. The popup asks for the active tab, which is itself here, so it gets a made-up one. */
async function opened(browser, address, width, height, scheme) {
  const page = await browser.newPage();
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.evaluateOnNewDocument(() => {
    if (globalThis.chrome?.tabs) chrome.tabs.query = async () => [{ id: 1, url: "https://video.example.org/watch" }];
  });
  await page.goto(address);
  await page.waitForFunction(
    () => document.querySelectorAll("#mode option").length > 0 || document.getElementById("begin") !== null,
  );
  return page;
}

async function checkPage(browser, base, [name, width, height], scheme) {
  const page = await opened(browser, `${base}/${name}.html`, width, height, scheme);
  await page.evaluate(axeSource);
  const violations = await page.evaluate(async () => {
    const found = await window.axe.run(document, { resultTypes: ["violations"] });
    return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(" | ")}`);
  });
  await page.close();
  return [{ name: `${name}, ${scheme}: no accessibility violation`, faults: violations }];
}

/** In forced colours the browser takes a page's colours away, so a switch or a dot could vanish in its ground. */
async function checkForcedColours(browser, base, scheme) {
  const page = await opened(browser, `${base}/popup.html`, 360, 620, scheme);
  const session = await page.createCDPSession();
  const features = [
    { name: "prefers-color-scheme", value: scheme },
    { name: "forced-colors", value: "active" },
  ];
  await session.send("Emulation.setEmulatedMedia", { features });
  await page.waitForSelector("#streams .good .dot");
  const faults = await page.evaluate(() => {
    const found = [];
    const colour = (element, name) => getComputedStyle(element)[name];
    const differ = (what, one, other) => one === other && found.push(`${what}: both are ${one}`);
    const ground = colour(document.body.parentElement, "backgroundColor");
    const knobs = [];
    for (const button of document.querySelectorAll(".switch")) {
      button.style.transition = button.firstElementChild.style.transition = "none";
      for (const checked of ["true", "false"]) {
        button.setAttribute("aria-checked", checked);
        const what = `${button.id}, ${checked}`;
        differ(
          `${what}: knob and track`,
          colour(button.firstElementChild, "backgroundColor"),
          colour(button, "backgroundColor"),
        );
        differ(`${what}: border and page`, colour(button, "borderTopColor"), ground);
        if (parseFloat(colour(button, "borderTopWidth")) === 0) found.push(`${what}: no border`);
        knobs.push(button.firstElementChild.getBoundingClientRect().x);
      }
    }
    differ("knob when on and off", knobs[0], knobs[1]);
    const dots = [...document.querySelectorAll("#streams .dot")];
    for (const dot of dots) differ("dot and page", colour(dot, "backgroundColor"), ground);
    for (const dot of dots) differ("dot's border and page", colour(dot, "borderTopColor"), ground);
    const shield = document.querySelector(".vouched");
    for (const isSure of [true, false]) {
      shield.classList.toggle("sure", isSure);
      differ("shield and page", getComputedStyle(shield, "::before").backgroundColor, ground);
    }
    if (new Set(dots.map((dot) => colour(dot, "backgroundColor"))).size < dots.length) found.push("dots look alike");
    return found;
  });
  await page.close();
  return { name: `popup, forced colours, ${scheme}: switches and dots are visible`, faults };
}

/** 200 px is a popup at 400 %. Nothing may lie outside, and the switch keeps its knob from right to left, too. */
async function checkNarrow(browser, base, name, width) {
  const page = await opened(browser, `${base}/${name}.html`, width, 620, "light");
  if (name === "popup") await page.waitForSelector("#streams .stream");
  const faults = await page.evaluate(() => {
    const found = [];
    for (const dir of ["ltr", "rtl"]) {
      document.documentElement.dir = dir;
      const root = document.documentElement;
      if (root.scrollWidth > root.clientWidth) found.push(`${dir}: ${root.scrollWidth} px in ${root.clientWidth} px`);
      for (const figure of document.querySelectorAll("dd"))
        if (["left", "right"].includes(getComputedStyle(figure).textAlign) !== (dir === "rtl"))
          found.push(`${dir}: a figure is not below its label`);
      for (const row of document.querySelectorAll(".stream")) {
        const [name, figure] = [".name", ".figure"].map((part) => row.querySelector(part).getBoundingClientRect());
        const gap = dir === "rtl" ? name.right - figure.right : name.left - figure.left;
        if (Math.abs(gap) > 1) found.push(`${dir}: a rate is not below its proxy's name`);
        if (getComputedStyle(row.querySelector(".label")).direction !== "ltr")
          found.push(`${dir}: a name is cut in front`);
      }
      for (const knob of document.querySelectorAll(".switch span")) {
        const [inner, outer] = [knob.getBoundingClientRect(), knob.parentElement.getBoundingClientRect()];
        if (inner.left < outer.left || inner.right > outer.right) found.push(`${dir}: the knob is outside its switch`);
      }
    }
    return found;
  });
  await page.close();
  return { name: `${name}, ${width} px wide: nothing is cut off`, faults };
}

async function checkFirefox(fleet) {
  const open = await openBrowser({
    name: "firefox",
    headless: true,
    isDark: false,
    defaults: { origoUrl: fleet.origo.url, mode: "coded", connections: 4 },
  });
  const faults = [];
  try {
    const [playing, popup] = [await open.newPage(), await open.newPage()];
    // Firefox never reports the end of loading for such a page.
    void popup.goto(`moz-extension://${FIREFOX_UUID}/popup.html`).catch(() => undefined);
    const until = async (what, isTrue) => {
      for (
        const deadlineMs = Date.now() + 30_000;
        !(await popup.evaluate(isTrue).catch(() => false));
        await new Promise((resolve) => setTimeout(resolve, 200))
      ) {
        if (Date.now() > deadlineMs) throw new Error(what);
      }
    };
    await until("the popup has no settings", () => document.querySelectorAll("#mode option").length > 0);
    await playing.bringToFront();
    await playing.goto(`${fleet.sample.url}/hls.html`, { waitUntil: "domcontentloaded" });
    await until(
      "the popup shows no stream",
      () =>
        document.querySelectorAll("#streams li").length === 4 &&
        document.getElementById("delivered").textContent !== "0 B",
    );
    await popup.evaluate(() => chrome.storage.local.set({ mode: "direct" }));
    await until(
      "the popup counts no direct bytes in mode direct",
      () => document.getElementById("direct").textContent !== "0 B",
    );
  } catch (error) {
    faults.push(error.message);
  } finally {
    await open.close();
  }
  return [{ name: "Firefox: the popup shows the figures of the page's transport, and a setting reaches it", faults }];
}

async function checkSiteSwitch(browser, base) {
  const page = await opened(browser, `${base}/popup.html`, 360, 620, "light");
  const faults = [];
  try {
    const state = () => page.$eval("#site", (button) => button.getAttribute("aria-checked"));
    const stored = () => page.evaluate(() => chrome.storage.local.get("offSites"));
    await page.waitForFunction(() => document.getElementById("site-name").textContent !== "");
    assert.equal(await state(), "true");
    await page.focus("#site");
    await page.keyboard.press("Space");
    await page.waitForFunction(() => document.getElementById("site").getAttribute("aria-checked") === "false");
    assert.deepEqual(await stored(), { offSites: ["video.example.org"] });
    await page.keyboard.press("Space");
    await page.waitForFunction(() => document.getElementById("site").getAttribute("aria-checked") === "true");
    assert.deepEqual(await stored(), { offSites: [] });
  } catch (error) {
    faults.push(error.message);
  }
  await page.close();
  return [{ name: "the site's switch works by keyboard, and its state is stored", faults }];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const results = await checkInterface();
  for (const { name, faults } of results)
    console.log(`${faults.length === 0 ? "ok  " : "FAIL"} ${name}${faults.map((fault) => `\n     ${fault}`).join("")}`);
  const failed = results.filter(({ faults }) => faults.length > 0).length;
  console.log(`${results.length - failed} passed, ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
}
