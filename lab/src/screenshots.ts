/**
 * `npm run screenshots`: the README's pictures, taken off a real screen. A Chromium window on a virtual display (Xvfb) plays
 * the sample page through a fleet of four proxies with the extension's popup open; then Origo's page shows the same downloads.
 * Needs Xvfb, openbox and ImageMagick (Debian: xvfb, openbox, imagemagick).
 */
import { spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { mkdirSync } from "node:fs";
import path from "node:path";
import type { Browser } from "puppeteer-core";
import { openBrowser } from "./browser";
import { repoRoot, startFleet } from "./fleet";

const DISPLAY = ":97";
const RATE_BYTES_PER_SEC = 896_000;
const PLAY_MS = 12_000;
const images = path.join(repoRoot, "docs/images");

async function main(): Promise<void> {
  for (const program of ["Xvfb", "openbox", "import"]) {
    if (spawnSync("which", [program]).status !== 0) throw new Error(`${program} is missing: apt-get install xvfb openbox imagemagick`);
  }
  mkdirSync(images, { recursive: true });
  process.env["DISPLAY"] = DISPLAY;
  const screen: ChildProcess[] = [spawn("Xvfb", [DISPLAY, "-screen", "0", "1280x860x24"], { stdio: "ignore" })];
  await pause(1000);
  screen.push(spawn("openbox", [], { stdio: "ignore" }));
  const fleet = await startFleet({ proxyCount: 4, rateBytesPerSec: RATE_BYTES_PER_SEC, ports: "any" });
  const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 4 };
  const { browser, close } = await openBrowser({ headless: false, defaults, flags: ["--test-type", "--window-position=0,0", "--window-size=1280,860"] });
  try {
    const page = (await browser.pages())[0] ?? (await browser.newPage());
    await page.goto(`${fleet.sample.url}/hls.html`);
    await pause(PLAY_MS - 4000);
    await openPopup(browser);
    await pause(4000);
    capture("playing.png");
    const origo = await browser.newPage();
    await origo.setViewport({ width: 1280, height: 860 });
    await origo.goto(fleet.origo.url);
    await pause(3000);
    await origo.screenshot({ path: path.join(images, "origo.png") });
  } finally {
    await close();
    await fleet.stop();
    for (const child of screen.reverse()) child.kill();
  }
}

async function openPopup(browser: Browser): Promise<void> {
  const target = await browser.waitForTarget((candidate) => candidate.type() === "service_worker");
  const worker = await target.worker();
  await worker?.evaluate("chrome.action.openPopup()");
}

function capture(file: string): void {
  const { status, stderr } = spawnSync("import", ["-window", "root", path.join(images, file)], { encoding: "utf8" });
  if (status !== 0) throw new Error(`the screen could not be captured: ${stderr}`);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  },
);
