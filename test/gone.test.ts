/** The extension is disabled, updated or removed while a page plays. The page must not wait for what is gone. */
import {
  FIREFOX_ADD_ON,
  inFirefoxWindow,
  isByBrowser,
  openBrowser,
  samplePageState,
  startFleet,
  type Fleet,
  type OpenBrowser,
} from "@tributary/lab-stack";
import type { Page } from "puppeteer-core";
import { accessLog, eventually } from "./support";

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startFleet({ proxyCount: 2, ports: "any" });
});
afterAll(() => fleet.stop());

const carriedSince = async (startedMs: number): Promise<number> =>
  (await accessLog(fleet, startedMs)).filter((entry) => entry.path.endsWith(".m4s") && !isByBrowser(entry)).length;

/** Loads the page and waits until it is carried. */
async function playCarried(page: Page): Promise<void> {
  const startedMs = Date.now();
  await page.goto(`${fleet.sample.url}/hls.html`, { waitUntil: "domcontentloaded" });
  await eventually(
    async () => (await carriedSince(startedMs)) > 0 && (await samplePageState(page)).currentTime > 2,
    Boolean,
    60,
  );
  expect(await carriedSince(startedMs)).toBeGreaterThan(0);
}

/** How long 20 requests take, one after the other. */
const askTwentyMs = async (page: Page): Promise<number> =>
  (await page.evaluate(`(async () => {
    const startedMs = performance.now();
    for (let at = 0; at < 20; at++) {
      const response = await fetch("/media/cmaf/segment-1-00" + (1 + at % 9) + ".m4s", { cache: "no-store" });
      await response.arrayBuffer();
    }
    return performance.now() - startedMs;
  })()`)) as number;

const withAddOn = (open: OpenBrowser, call: string): Promise<unknown> =>
  inFirefoxWindow(
    open.browser,
    `const { AddonManager } = ChromeUtils.importESModule("resource://gre/modules/AddonManager.sys.mjs");
     await (await AddonManager.getAddonByID("${FIREFOX_ADD_ON}")).${call}();`,
  );

async function withSession(open: OpenBrowser, method: string): Promise<void> {
  const worker = await open.browser.waitForTarget((target) => target.type() === "service_worker");
  const session = await open.browser.target().createCDPSession();
  const { send } = session as unknown as { send(method: string, params: object): Promise<unknown> };
  await send.call(session, method, { id: new URL(worker.url()).host });
}

/** Chromium cuts requests in flight when an extension that watches requests goes. The player asks again. */
const MAY_BE_CUT = /^hls\.js: (frag|level)Load(Error|TimeOut)$/;

type Act = [name: string, act: (open: OpenBrowser) => Promise<unknown>, heal?: (open: OpenBrowser) => Promise<unknown>];
const UPDATE: Act = ["update", (open) => open.update()];
const ACTS: Record<"firefox" | "chromium", Act[]> = {
  firefox: [
    ["disable", (open) => withAddOn(open, "disable"), (open) => withAddOn(open, "enable")],
    UPDATE,
    ["removal", (open) => withAddOn(open, "uninstall")],
  ],
  chromium: [UPDATE, ["removal", (open) => withSession(open, "Extensions.uninstall")]],
};

test.each(["firefox", "chromium"] as const)(
  "%s: after a disable, an update or a removal in mid-play no request waits; a reload heals",
  async (name) => {
    const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 2 };
    const open = await openBrowser({ name, headless: true, isDark: false, defaults });
    try {
      const page = await open.newPage();
      for (const [what, act, heal] of ACTS[name]) {
        await playCarried(page);
        await act(open);
        const { currentTime } = await samplePageState(page);
        // If each waits half a second for an answer of the extension, they take 10 s.
        expect([what, (await askTwentyMs(page)) < 8000]).toEqual([what, true]);
        await heal?.(open);
        expect([what, (await askTwentyMs(page)) < 8000]).toEqual([what, true]);
        const later = await eventually(
          () => samplePageState(page),
          (state) => state.currentTime > currentTime + 2,
        );
        const errors = later.errors.filter((error) => !MAY_BE_CUT.test(error));
        expect([what, errors, later.currentTime > currentTime + 2]).toEqual([what, [], true]);
      }
    } finally {
      await open.close();
    }
  },
);
