/**
 * The pictures of a published video for the documents: the popup while its page plays with the extension, the page
 * without the extension, and Origo's page Library.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Page } from "puppeteer-core";
import { openBrowser } from "./browser";
import { repoRoot, startFleet } from "./fleet";
import type { Fleet } from "./fleet";
import { publisherCode } from "./publisher-code";
import { mediaDir } from "./sample/origin";
import { openPopupTab } from "./screenshots-extension";

/** Rate of each of four proxies. It is low enough that the chart fills while the video loads. */
const RATE_BYTES_PER_SEC = 70_000;
const CHART_MS = 7000;
const LOAD_MS = 6000;
/** What the command calls its publisher. The pictures name somebody else. */
const USER = `${os.userInfo().username}@${os.hostname()}`;
/** A switch in a tab that was behind another one comes to rest. */
const REST_MS = 500;

export async function publishedPictures(folder: string): Promise<void> {
  const fleet = await startFleet({ proxyCount: 4, ports: "any", rateBytesPerSec: RATE_BYTES_PER_SEC });
  const work = mkdtempSync(path.join(os.tmpdir(), "tributary-published-"));
  try {
    const address = await publish(fleet, path.join(work, "publisher.pem"));
    const file = (name: string) => path.join(folder, `${name}.png`) as `${string}.png`;
    await withExtension(fleet, address, file("publication-popup"));
    await withoutExtension(fleet, address, { page: file("publication-page"), library: file("origo-library") });
  } finally {
    await fleet.stop();
    rmSync(work, { recursive: true, force: true });
  }
}

/** The address of the page of the publication. */
async function publish({ origo }: Fleet, key: string): Promise<string> {
  const words = ["publish", path.join(mediaDir, "cmaf"), "--name", "holiday", "--origo", origo.url, "--key", key];
  const command = [path.join(repoRoot, "client/dist/cli.js"), ...words, "--code", await publisherCode(origo.url)];
  const printed = execFileSync(process.execPath, command, { encoding: "utf8" });
  const [, address] = /^embed +(\S+)$/m.exec(printed) ?? [];
  if (address === undefined) throw new Error(`the command printed no address: ${printed}`);
  return address;
}

async function withExtension(fleet: Fleet, address: string, file: `${string}.png`): Promise<void> {
  const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 4 };
  const open = await openBrowser({ headless: true, defaults });
  try {
    const playing = await open.newPage();
    await playing.goto(fleet.origo.url);
    const popup = await openPopupTab(open);
    await playing.bringToFront();
    await play(playing, address);
    await pause(CHART_MS);
    await popup.bringToFront();
    await pause(REST_MS);
    await popup.screenshot({ path: file, fullPage: true });
  } finally {
    await open.close();
  }
}

async function withoutExtension(
  { origo }: Fleet,
  address: string,
  files: { page: `${string}.png`; library: `${string}.png` },
): Promise<void> {
  const { newPage, close } = await openBrowser({ headless: true });
  try {
    const page = await newPage();
    await page.setViewport({ width: 960, height: 540 });
    await play(page, address);
    await pause(LOAD_MS);
    // A pointer over the video shows its controls.
    await page.mouse.move(480, 300);
    await pause(REST_MS);
    await page.screenshot({ path: files.page });
    const library = await newPage();
    await library.setViewport({ width: 1440, height: 900 });
    await library.goto(`${origo.url}/#/library`);
    await pause(LOAD_MS);
    await library.evaluate(`for (const { childNodes } of document.querySelectorAll("body *"))
      for (const node of childNodes) if (node.nodeValue === ${JSON.stringify(USER)}) node.nodeValue = "ada@laptop";`);
    await library.screenshot({ path: files.library, fullPage: true });
  } finally {
    await close();
  }
}

async function play(page: Page, address: string): Promise<void> {
  await page.goto(address);
  await page.evaluate("document.querySelector('video').play()");
}
