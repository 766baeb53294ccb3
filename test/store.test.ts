/** The packages that the stores get, used as a viewer uses them, in both browsers. */
import { readFile } from "node:fs/promises";
import path from "node:path";
import {
  isByBrowser,
  openBrowser,
  openStorePackage,
  repoRoot,
  samplePageState,
  segmentMismatch,
  startFleet,
  type Fleet,
  type SamplePageState,
  type StorePackage,
} from "@tributary/lab-stack";
import type { Page } from "puppeteer-core";
import { accessLog, eventually } from "./support";

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startFleet({ proxyCount: 2, ports: "any" });
});
afterAll(() => fleet.stop());

/** Plays at four times the normal speed. */
async function playedTo(page: Page, second: number): Promise<SamplePageState> {
  await page.evaluate("document.querySelector('video').playbackRate = 4");
  return eventually(
    () => samplePageState(page),
    (state) => state.currentTime >= second,
    60,
  );
}

/** The popup, in a tab, about the tab that shows the site. `options` is another page of the extension. */
async function openPopupAbout({ base, newPage }: StorePackage, options: Page): Promise<Page> {
  const isSite = `({ url }) => url?.startsWith("${fleet.sample.url}")`;
  const tabId = (await options.evaluate(`chrome.tabs.query({}).then((tabs) => tabs.find(${isSite}).id)`)) as number;
  const popup = await newPage();
  // In Firefox no end of loading is told of such a page.
  void popup.goto(`${base}/popup.html?tab=${tabId}`).catch(() => undefined);
  return popup;
}

/** The segments that the proxies asked the origin for. */
const carriedSince = async (startedMs: number): Promise<string[]> =>
  (await accessLog(fleet, startedMs))
    .filter((entry) => entry.path.includes(".m4s") && !isByBrowser(entry))
    .map(({ path: at }) => at);

/** The page script hears by it that the extension is off (extension/src/shared/names.ts). */
const SWITCH_EVENT = "tby-switch";
const SITE_OFF = "false Off. If you turn it on, the browser asks whether Tributary may access this site.";

/** A page plays a live stream through proxies until `revoke` takes the access to it away. Then it plays on directly. */
async function expectDirectWithoutAccess(
  open: StorePackage,
  page: Page,
  options: Page,
  revoke: () => Promise<unknown>,
): Promise<void> {
  const startedMs = Date.now();
  const carried = (): Promise<string[]> => carriedSince(startedMs);
  await page.goto(`${fleet.sample.url}/hls.html?source=/live/master.m3u8`, { waitUntil: "domcontentloaded" });
  expect((await eventually(carried, ({ length }) => length > 1, 40)).length).toBeGreaterThan(1);
  const popup = await openPopupAbout(open, options);
  const shown = (): Promise<unknown> =>
    popup
      .evaluate('document.querySelector("#site").ariaChecked + " " + document.querySelector("#site-state").textContent')
      .catch(() => undefined);
  expect(await eventually(shown, (text) => text === "true On")).toBe("true On");
  await page.bringToFront();
  const before = await samplePageState(page);
  await page.evaluate(`document.addEventListener("${SWITCH_EVENT}", ({ detail }) => (window.switched = detail))`);
  await revoke();
  await page.bringToFront();
  const heard = await eventually(
    () => page.evaluate("window.switched"),
    (told) => told === "off",
  );
  expect(heard).toBe("off");
  const count = (await carried()).length;
  const isOn = ({ currentTime }: SamplePageState): boolean => currentTime > before.currentTime + 6;
  const later = await eventually(() => samplePageState(page), isOn, 30);
  expect([isOn(later), later.errors]).toEqual([true, before.errors]);
  expect(await carried()).toHaveLength(count);
  expect(await eventually(shown, (text) => text === SITE_OFF)).toBe(SITE_OFF);
}

test.each(["chromium", "firefox"] as const)(
  "%s: the packed store package carries on a site from when the viewer turns it on until access is taken away",
  async (name) => {
    const open = await openStorePackage(name);
    try {
      const options = await open.newPage();
      // In Firefox no end of loading is told of such a page.
      void options.goto(`${open.base}/options.html`).catch(() => undefined);
      await eventually(() => options.$("#origo").catch(() => null), Boolean);
      const records = (): Promise<boolean> => options.$eval("#records", (box) => (box as HTMLInputElement).checked);
      expect(await records()).toBe(false);
      await options.$eval(
        "#origo",
        (box, url) => {
          (box as HTMLTextAreaElement).value = url;
          box.dispatchEvent(new Event("change"));
        },
        fleet.origo.url,
      );
      const page = await open.newPage();
      const startedMs = Date.now();
      await page.goto(`${fleet.sample.url}/hls.html`, { waitUntil: "domcontentloaded" });
      expect((await playedTo(page, 3)).currentTime).toBeGreaterThanOrEqual(3);
      expect(await carriedSince(startedMs)).toEqual([]);

      await open.allowSite(page);
      await page.goto(`${fleet.sample.url}/hls.html`, { waitUntil: "domcontentloaded" });
      const { currentTime, segments, errors } = await playedTo(page, 6);
      expect(errors).toEqual([]);
      expect(currentTime).toBeGreaterThanOrEqual(6);
      expect(segments.map((segment) => segmentMismatch(segment)).filter(Boolean)).toEqual([]);
      // hls.js may have the whole sample before the first comparison has ended.
      let number = 0;
      const askNext = async (): Promise<string[]> => {
        const address = `/media/cmaf/segment-1-001.m4s?again=${++number}`;
        await page.evaluate(`fetch("${address}").then((response) => response.arrayBuffer()).then(() => undefined)`);
        return carriedSince(startedMs);
      };
      expect((await eventually(askNext, (carried) => carried.length > 0)).length).toBeGreaterThan(0);

      await expectDirectWithoutAccess(open, page, options, () =>
        options.evaluate(async () => {
          const { origins = [] } = await chrome.permissions.getAll();
          await chrome.permissions.remove({ origins });
        }),
      );
      await open.allowSite(page);
      await expectDirectWithoutAccess(open, page, options, () => open.revokeSite(page));
    } finally {
      await open.close();
    }
  },
);

test("the demo and the store packages differ only in what they may read", async () => {
  const demo = JSON.parse(await readFile(path.join(repoRoot, "extension/dist/chromium/manifest.json"), "utf8")) as {
    permissions: string[];
    content_scripts?: unknown;
  };
  expect(demo.permissions).toEqual(["activeTab", "scripting", "storage", "webRequest", "offscreen"]);
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
      (await accessLog(own, startedMs)).some((entry) => entry.path.includes(part) && !isByBrowser(entry));
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
