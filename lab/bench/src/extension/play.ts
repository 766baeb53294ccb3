/** What the parts share: a browser for a while, and a page that plays. */
import { setTimeout as pause } from "node:timers/promises";
import type { Browser, Page } from "puppeteer-core";
import { openBrowser, samplePageState, type OpenOptions } from "@tributary/lab-stack";

const PLAY_MS_MAX = 60_000;

export async function inChromium<Value>(
  options: Omit<OpenOptions, "headless">,
  run: (browser: Browser) => Promise<Value>,
): Promise<Value> {
  const open = await openBrowser({ headless: true, ...options });
  try {
    return await run(open.browser);
  } finally {
    await open.close();
  }
}

export async function playTo(page: Page, seconds: number): Promise<void> {
  for (
    const deadlineMs = Date.now() + PLAY_MS_MAX;
    (await samplePageState(page)).currentTime < seconds;
    await pause(100)
  ) {
    if (Date.now() > deadlineMs)
      throw new Error(`${page.url()} has not reached ${seconds} s in ${PLAY_MS_MAX / 1000} s`);
  }
}
