/** Back and forward: the browser keeps a page whose video was carried, with what was typed there. */
import { openBrowser, startFleet, type BrowserName, type Fleet } from "@tributary/lab-stack";
import type { Page } from "puppeteer-core";
import { eventually, untilCarried } from "./support";

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startFleet({ proxyCount: 2, ports: "any" });
});
afterAll(() => fleet.stop());

/** Waits until the plain video plays through the proxies. */
async function untilHeld(page: Page): Promise<boolean> {
  const look = `(({ currentTime }, src) => currentTime > 2 && src?.startsWith("blob:") === true)(
    document.querySelector("video"), document.querySelector("video").getAttribute("src"))`;
  return (await eventually(() => page.evaluate(look), Boolean, 40)) as boolean;
}

/** Leaves the page, comes back, and tells what is in its text field; null if the page was loaded again. */
async function leaveAndReturn(page: Page): Promise<unknown> {
  await page.evaluate(`
    window.field = document.body.appendChild(document.createElement("input"));
    window.field.value = "typed";
    location.href = location.pathname + "?other";`);
  const address = (): Promise<unknown> => page.evaluate("location.search").catch(() => undefined);
  await eventually(address, (search) => search === "?other", 20);
  await page.evaluate("setTimeout(() => history.back())");
  await eventually(address, (search) => search === "", 20);
  return eventually(
    () => page.evaluate("window.field?.value ?? null").catch(() => undefined),
    (it) => it !== undefined,
  );
}

test.each<BrowserName>(["firefox", "chromium"])(
  "%s keeps a page that was carried, and it is carried again",
  async (name) => {
    const open = await openBrowser({
      name,
      headless: true,
      defaults: { origoUrl: fleet.origo.url, mode: "coded", connections: 2 },
    });
    try {
      const page = await open.newPage();
      await page.goto(fleet.sample.url);
      expect(await untilCarried(page, fleet)).toBe(true);
      expect(await leaveAndReturn(page)).toBe("typed");
      expect(await untilCarried(page, fleet)).toBe(true);
      const plain = await open.newPage();
      await plain.goto(`${fleet.sample.url}/plain.html`);
      expect(await untilHeld(plain)).toBe(true);
      expect(await leaveAndReturn(plain)).toBe("typed");
    } finally {
      await open.close();
    }
  },
);
