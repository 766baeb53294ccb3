/**
 * The extension's pictures for the documents: popup, options and first run, in Chromium and Firefox, light and dark.
 * Each browser plays the sample through four proxies meanwhile. The pages are opened in tabs, because both browsers can
 * only take pictures of tabs. The popup is told which tab it is about.
 */
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Page } from "puppeteer-core";
import { FIREFOX_UUID, openBrowser } from "./browser";
import type { BrowserName, OpenBrowser } from "./browser";
import { repoRoot, startFleet } from "./fleet";
import type { Fleet } from "./fleet";

const SCHEMES = ["light", "dark"] as const;
type Scheme = (typeof SCHEMES)[number];
/** Rate of each of four proxies. It is low enough that the chart fills while the sample's 24 s load. */
const RATE_BYTES_PER_SEC = 70_000;
const CHART_MS = 15_000;
const LOAD_MS = 1500;
const PAGES = [
  ["options", 720, 400],
  ["welcome", 720, 560],
  ["popup", 360, 400],
] as const;

export async function extensionPictures(folder: string): Promise<void> {
  for (const browser of ["chromium", "firefox"] as const) {
    for (const scheme of SCHEMES) {
      // Its own each time: what an earlier run left in the proxies' caches and the popup's totals would be in the
      // picture.
      const fleet = await startFleet({ proxyCount: 4, ports: "any", rateBytesPerSec: RATE_BYTES_PER_SEC });
      const open = await openBrowser({
        name: browser,
        headless: true,
        defaults: { origoUrl: fleet.origo.url, mode: "coded", connections: 4 },
        isDark: scheme === "dark",
      });
      try {
        await picturesOf(open, { browser, scheme, fleet, folder });
      } finally {
        await open.close();
        await fleet.stop();
      }
    }
  }
}

interface Taken {
  browser: BrowserName;
  scheme: Scheme;
  fleet: Fleet;
  folder: string;
}

async function picturesOf(open: OpenBrowser, { browser, scheme, fleet, folder }: Taken): Promise<void> {
  const base = browser === "firefox" ? `moz-extension://${FIREFOX_UUID}` : await chromiumBase(open);
  const playing = await open.newPage();
  await playing.goto(fleet.sample.url);
  const pages = new Map<string, Page>();
  for (const [name, width, height] of PAGES) {
    const page = await open.newPage();
    pages.set(name, page);
    await page.setViewport({ width, height, deviceScaleFactor: 2 });
    if (browser === "chromium") await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    const tabId =
      name === "popup" ? ((await pages.get("options")?.evaluate(PLAYING_TAB)) as number | undefined) : undefined;
    // In Firefox no end of loading is told of such a page.
    void page.goto(`${base}/${name}.html${tabId === undefined ? "" : `?tab=${tabId}`}`).catch(() => undefined);
    await pause(LOAD_MS);
  }
  await playing.bringToFront();
  await playing.goto(`${fleet.sample.url}/hls.html`, { waitUntil: "domcontentloaded" });
  await pause(CHART_MS);
  for (const [name] of PAGES) {
    const file = path.join(folder, `extension-${browser}-${name}-${scheme}.png`) as `${string}.png`;
    await pages.get(name)?.bringToFront();
    await pages.get(name)?.screenshot({ path: file, fullPage: true });
    console.log(path.relative(repoRoot, file));
  }
}

/** The popup of Chromium in a tab, about the tab that shows a site. */
export async function openPopupTab(open: OpenBrowser): Promise<Page> {
  const [address, popup] = [`${await chromiumBase(open)}/popup.html`, await open.newPage()];
  const [, width, height] = PAGES.find(([name]) => name === "popup")!;
  await popup.setViewport({ width, height, deviceScaleFactor: 2 });
  await popup.goto(address);
  await popup.goto(`${address}?tab=${(await popup.evaluate(PLAYING_TAB)) as number}`);
  return popup;
}

async function chromiumBase({ browser }: OpenBrowser): Promise<string> {
  const worker = await browser.waitForTarget(
    (target) => target.type() === "service_worker" && target.url().startsWith("chrome-extension://"),
  );
  return `chrome-extension://${new URL(worker.url()).host}`;
}

const PLAYING_TAB = `chrome.tabs.query({}).then((tabs) => tabs.find(({ url }) => url?.startsWith("http:")).id)`;
