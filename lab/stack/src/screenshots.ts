/**
 * `npm run screenshots`: takes the README's pictures off a real screen. A Chromium window on a virtual display (Xvfb)
 * plays the sample page through four proxies with the extension's popup open. Then the command line downloads in
 * several modes, and Origo's dashboard shows these downloads. Needs Xvfb, openbox and ImageMagick (Debian: xvfb,
 * openbox, imagemagick). `npm run screenshots -- extension` takes only the extension's pictures
 * (screenshots-extension.ts), `-- terminal` only the command line's (screenshots-terminal.ts), `-- gateway` only the
 * gateway's page (screenshots-gateway.ts, needs ffmpeg and mpv), `-- published` only those of a published video
 * (screenshots-published.ts), `-- dashboard` only the dashboard's. None of these needs them.
 */
import { execFile, spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { mkdirSync } from "node:fs";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Browser, Page } from "puppeteer-core";
import { openBrowser } from "./browser";
import { repoRoot, startFleet } from "./fleet";
import { extensionPictures } from "./screenshots-extension";
import { gatewayPicture } from "./screenshots-gateway";
import { publishedPictures } from "./screenshots-published";
import { terminalPicture } from "./screenshots-terminal";
import type { Fleet } from "./fleet";

const DISPLAY = ":97";
const RATE_BYTES_PER_SEC = 896_000;
const PLAY_MS = 12_000;
const WORK_MS = 30_000;
/** Places of the proxies on the fleet's map. In truth all are on this machine. */
const PLACES = ["47.5,19.05", "40.7,-74", "1.35,103.8", "-23.5,-46.6"];
const MODES = ["parallel-http", "uncoded-mutp", "coded-mutp", "coded"];
const CONNECTIONS = ["2", "4"];
const RUNS = 6;
const PAIR = ["parallel-http", "coded"];
const images = path.join(repoRoot, "docs/images");

async function main(): Promise<void> {
  mkdirSync(images, { recursive: true });
  const only = process.argv[2];
  if (only === undefined || only === "terminal") await terminalPicture(images);
  if (only === undefined || only === "gateway") await gatewayPicture(images);
  if (only === undefined || only === "extension") await extensionPictures(images);
  if (only === undefined || only === "published") await publishedPictures(images);
  if (only === "dashboard") await playing({ headless: true });
  if (only === undefined) await onScreen();
}

/** What needs a screen: the picture of the playing page, and the dashboard on the same fleet. */
async function onScreen(): Promise<void> {
  for (const program of ["Xvfb", "openbox", "import"]) {
    if (spawnSync("which", [program]).status !== 0)
      throw new Error(`${program} is missing: apt-get install xvfb openbox imagemagick`);
  }
  process.env["DISPLAY"] = DISPLAY;
  const screen: ChildProcess[] = [spawn("Xvfb", [DISPLAY, "-screen", "0", "1280x860x24"], { stdio: "ignore" })];
  await pause(1000);
  screen.push(spawn("openbox", [], { stdio: "ignore" }));
  try {
    await playing({ headless: false });
  } finally {
    for (const child of screen.reverse()) child.kill();
  }
}

/** Plays the sample, then takes the dashboard's pictures. With a window, it takes the playing page's picture, too. */
async function playing({ headless }: { headless: boolean }): Promise<void> {
  const fleet = await startFleet({
    proxyCount: PLACES.length,
    rateBytesPerSec: RATE_BYTES_PER_SEC,
    ports: "any",
    proxyEnv: (index) => ({ PLACE: PLACES[index] ?? "" }),
  });
  const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 4 };
  const { browser, close } = await openBrowser({
    headless,
    defaults,
    flags: headless ? [] : ["--test-type", "--window-position=0,0", "--window-size=1280,860"],
  });
  try {
    const page = (await browser.pages())[0] ?? (await browser.newPage());
    await page.goto(`${fleet.sample.url}/hls.html`);
    await pause(PLAY_MS - 4000);
    if (!headless) await openPopup(browser);
    await pause(4000);
    if (!headless) capture("playing.png");
    await dashboard(browser, fleet);
  } finally {
    await close();
    await fleet.stop();
  }
}

/** Pictures of the fleet at work, then of what Origo recorded. */
async function dashboard(browser: Browser, fleet: Fleet): Promise<void> {
  const page = await browser.newPage();
  await page.setViewport({ width: 1440, height: 900 });
  const picture = async (name: string, hash: string, fullPage = false): Promise<void> => {
    await show(page, `${fleet.origo.url}/${hash}`);
    await page.screenshot({ path: path.join(images, `origo-${name}.png`), fullPage });
  };
  await show(page, `${fleet.origo.url}/#/fleet`);
  await traceAll(fleet);
  const campaign = runCampaign(fleet);
  await pause(WORK_MS);
  await page.screenshot({ path: path.join(images, "origo-fleet.png"), fullPage: true });
  await campaign;
  await picture("downloads", "#/downloads");
  const { records } = (await (await fetch(`${fleet.origo.url}/v1/records?limit=200`)).json()) as {
    records: { id: string; mode: string; netBytes: number }[];
  };
  const largest = records.filter((record) => record.mode === "coded").sort((a, b) => b.netBytes - a.netBytes)[0];
  if (largest === undefined) throw new Error("no download in mode coded was recorded");
  await picture("download", `#/downloads/${largest.id}`, true);
  const state = {
    chart: "box",
    metric: "goodputBytesPerSec",
    groupBy: ["connections", "mode"],
    where: [{ field: "source", op: "=", value: "cli" }],
    difference: { field: "mode", a: PAIR[0], b: PAIR[1] },
  };
  await picture("analysis", `#/analysis?${encodeURIComponent(JSON.stringify(state))}`, true);
}

/** Lets Origo keep the packets of each download, so that it can draw them. */
async function traceAll(fleet: Fleet): Promise<void> {
  const { csrfToken } = (await (await fetch(`${fleet.origo.url}/v1/login`)).json()) as { csrfToken: string };
  const response = await fetch(`${fleet.origo.url}/v1/config`, {
    method: "PUT",
    headers: { "content-type": "application/json", "x-csrf-token": csrfToken },
    body: JSON.stringify({ baseVersion: 0, values: { "client.tracePerMille": 1000 }, reason: "a campaign" }),
  });
  if (!response.ok) throw new Error(`Origo refused the configuration: ${await response.text()}`);
}

async function show(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await pause(3000);
}

/** The command line downloads the same megabyte in each mode over two and four proxies, one after another. */
async function runCampaign(fleet: Fleet): Promise<void> {
  const url = `${fleet.sample.url}/media/progressive.mp4`;
  for (let run = 0; run < RUNS; run++) {
    for (const connections of CONNECTIONS) {
      for (const mode of MODES) {
        const words = [
          "get",
          url,
          "--range",
          "0-999999",
          "--mode",
          mode,
          "--connections",
          connections,
          "--origo",
          fleet.origo.url,
          "--comment",
          `run ${run + 1}`,
          "--output",
          "/dev/null",
        ];
        await new Promise<void>((resolve, reject) => {
          execFile(process.execPath, [path.join(repoRoot, "client/dist/cli.js"), ...words], (error) =>
            error ? reject(error) : resolve(),
          );
        });
      }
    }
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

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  },
);
