/**
 * The store package: it has no content script until the viewer allows a site. A test cannot answer the browser's
 * prompt, so a changed manifest grants the sample's site. Nothing else is changed.
 */
import { readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { openBrowser, repoRoot, samplePageState, segmentMismatch, startFleet, type Fleet } from "@tributary/lab-stack";
import { accessLog, eventually } from "./support";

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startFleet({ proxyCount: 2, ports: "any" });
});
afterAll(() => fleet.stop());

/** Turns a copy of the demo package into the store package. */
const asStorePackage =
  (granted: string[]) =>
  async (folder: string): Promise<void> => {
    // eslint-disable-next-line @typescript-eslint/no-require-imports
    const { manifestText } = require(path.join(repoRoot, "extension/manifest.js")) as {
      manifestText(browser: string, access: string): string;
    };
    const manifest = JSON.parse(manifestText("chromium", "asked")) as Record<string, unknown>;
    await writeFile(path.join(folder, "manifest.json"), JSON.stringify({ ...manifest, host_permissions: granted }));
  };

const defaults = (): { origoUrl: string; mode: string; connections: number } => ({
  origoUrl: fleet.origo.url,
  mode: "coded",
  connections: 2,
});
const REGISTERED = "chrome.scripting.getRegisteredContentScripts().then((scripts) => scripts.length)";

test("the media of an allowed site are carried with right bytes", async () => {
  const open = await openBrowser({
    headless: true,
    defaults: defaults(),
    prepare: asStorePackage(["*://127.0.0.1/*"]),
  });
  try {
    const worker = await (await open.browser.waitForTarget((target) => target.type() === "service_worker")).worker();
    expect(
      await eventually(
        () => worker?.evaluate(REGISTERED),
        (count) => count === 2,
      ),
    ).toBe(2);
    const startedMs = Date.now();
    const page = await open.browser.newPage();
    await page.goto(`${fleet.sample.url}/hls.html`);
    const { currentTime, segments, errors } = await eventually(
      () => samplePageState(page),
      (state) => state.currentTime >= 4,
      60,
    );
    expect(errors).toEqual([]);
    expect(currentTime).toBeGreaterThanOrEqual(4);
    expect(segments.map((segment) => segmentMismatch(segment)).filter(Boolean)).toEqual([]);
    expect(
      (await accessLog(fleet, startedMs)).filter(
        ({ path: at, userAgent }) => at.endsWith(".m4s") && !/mozilla/i.test(userAgent),
      ).length,
    ).toBeGreaterThan(0);
  } finally {
    await open.close();
  }
});

test("without an allowed site the extension is in no page, and records are off", async () => {
  const withoutDefaults = async (folder: string): Promise<void> => {
    await asStorePackage([])(folder);
    await rm(path.join(folder, "defaults.json"));
  };
  const open = await openBrowser({ headless: true, defaults: defaults(), prepare: withoutDefaults });
  try {
    const welcome = await open.browser.waitForTarget((target) => target.url().endsWith("/welcome.html"));
    expect(await (await welcome.page())?.$$eval("main p", (sentences) => sentences.length)).toBe(3);
    const options = await open.browser.newPage();
    await options.goto(welcome.url().replace("welcome.html", "options.html"));
    await options.waitForSelector("#mode option");
    expect(await options.$eval("#records", (box) => (box as HTMLInputElement).checked)).toBe(false);
    const page = await open.browser.newPage();
    const startedMs = Date.now();
    await page.goto(`${fleet.sample.url}/hls.html`);
    expect(
      (
        await eventually(
          () => samplePageState(page),
          ({ currentTime }) => currentTime >= 3,
          60,
        )
      ).currentTime,
    ).toBeGreaterThanOrEqual(3);
    expect(
      (await accessLog(fleet, startedMs)).filter(
        ({ path: at, userAgent }) => at.endsWith(".m4s") && !/mozilla/i.test(userAgent),
      ),
    ).toEqual([]);
  } finally {
    await open.close();
  }
});

test("the demo and the store packages differ only in what they may read", async () => {
  const demo = JSON.parse(await readFile(path.join(repoRoot, "extension/dist/chromium/manifest.json"), "utf8")) as {
    permissions: string[];
    content_scripts?: unknown;
  };
  expect(demo.permissions).toEqual(["activeTab", "scripting", "storage", "offscreen"]);
  expect(demo.content_scripts).toBeDefined();
});

test("media that Origo's site rules name are carried, and a manifest is never carried", async () => {
  const own = await startFleet({
    proxyCount: 2,
    ports: "any",
    siteRules: [{ host: "127.0.0.1", path: "/*", carried: true }],
  });
  const open = await openBrowser({
    headless: true,
    defaults: { origoUrl: own.origo.url, mode: "coded", connections: 2 },
  });
  try {
    const page = await open.browser.newPage();
    await page.goto(own.sample.url);
    const startedMs = Date.now();
    const ask = (address: string): Promise<unknown> =>
      page.evaluate(`fetch("${address}").then((response) => response.arrayBuffer()).then((body) => body.byteLength)`);
    const carried = async (part: string): Promise<boolean> =>
      (await accessLog(own, startedMs)).some(
        ({ path: at, userAgent }) => at.includes(part) && !/mozilla/i.test(userAgent),
      );
    expect(await ask("/media/cmaf/segment-1-001.m4s")).toBeGreaterThan(0);
    let bytes = 200_000;
    const askNext = async (): Promise<boolean> => {
      expect(await ask(`/__size/${++bytes}`)).toBe(bytes);
      return carried("/__size/");
    };
    expect(await eventually(askNext, Boolean)).toBe(true);
    await ask("/media/cmaf/master.m3u8");
    expect(await carried("master.m3u8")).toBe(false);
  } finally {
    await open.close();
    await own.stop();
  }
});
