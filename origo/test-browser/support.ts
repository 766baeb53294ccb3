/**
 * Support for the dashboard's browser tests: an Origo process that requires login, downloads by the command line, and a
 * page that is watched. The page must not break its security policy, throw, or fail a rule of axe.
 */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { repoRoot, startService, type Service } from "@tributary/lab-stack";
import type { Browser, Page } from "puppeteer-core";

const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Calls `read` until it gives a value, and resolves to it. Throws an error with `what` after `msMax`. */
export async function until<T>(
  what: string,
  read: () => Promise<T | undefined | null | false>,
  msMax = 30_000,
): Promise<T> {
  for (const deadlineMs = Date.now() + msMax; ; await sleep(100)) {
    const value = await read();
    if (value) return value;
    if (Date.now() > deadlineMs) throw new Error(`waited ${msMax / 1000} s for this: ${what}`);
  }
}

export interface GuardedOrigo {
  service: Service;
  /** The one-time link that makes the first admin. */
  setupUrl: string;
  stop: () => Promise<void>;
}

/** Starts an Origo that requires login and has no proxies. */
export async function startGuardedOrigo(): Promise<GuardedOrigo> {
  const folder = await mkdtemp(path.join(os.tmpdir(), "tributary-login-"));
  const logFile = path.join(folder, "origo.log");
  const env = { HOST: "127.0.0.1", PORT: "0", DATA_DIR: folder, LOGIN: "required" };
  const service = await startService({
    name: "origo",
    script: path.join(repoRoot, "origo/dist/main.js"),
    env,
    logFile,
  });
  const setupUrl = await until(
    "the link for the first admin",
    async () => /http[^"]*#setup=[^"]+/.exec(await readFile(logFile, "utf8"))?.[0],
  );
  const stop = async (): Promise<void> => {
    await service.stop();
    await rm(folder, { recursive: true, force: true });
  };
  return { service, setupUrl, stop };
}

/** Downloads a URL by the command line and throws the bytes away. */
export function download(origoUrl: string, url: string, mode: string, ...words: string[]): Promise<void> {
  const command = [
    path.join(repoRoot, "client/dist/cli.js"),
    "get",
    url,
    "--origo",
    origoUrl,
    "--mode",
    mode,
    "--connections",
    "2",
    "--output",
    "/dev/null",
    ...words,
  ];
  return new Promise((resolve, reject) => {
    execFile(process.execPath, command, { timeout: 60_000 }, (error, _stdout, stderr) =>
      error ? reject(new Error(`${error.message}\n${stderr}`)) : resolve(),
    );
  });
}

export interface Watched {
  page: Page;
  /** Gives the errors in the console and the exceptions since the last call. */
  faults: () => string[];
}

/** The browser writes these answers to the console: 401 for a wrong password, 404 for a download without a trace. */
const EXPECTED = /status of 40[14]/;

export async function openPage(browser: Browser): Promise<Watched> {
  const page = await browser.newPage();
  const seen: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" && !EXPECTED.test(message.text())) seen.push(message.text());
  });
  page.on("pageerror", (error) => seen.push(String(error)));
  await page.setViewport({ width: 1280, height: 860 });
  return { page, faults: () => seen.splice(0) };
}

/** Waits until `text` is on the page. */
export async function sees(page: Page, text: string): Promise<void> {
  await until(`the page shows "${text}"`, () =>
    page.evaluate((wanted) => document.body.innerText.includes(wanted), text),
  );
}

/** Clicks the element with this role and name. */
export async function press(
  page: Page,
  role: "button" | "link" | "menuitem" | "option" | "radio",
  name: string,
): Promise<void> {
  await page.locator(`::-p-aria([role="${role}"][name="${name}"])`).click();
}

/** Replaces the text of the input with this accessible name. */
export async function fill(page: Page, name: string, value: string): Promise<void> {
  const input = await page.waitForSelector(`::-p-aria([role="textbox"][name="${name}"])`);
  await input?.focus();
  await page.keyboard.down("Control");
  await page.keyboard.press("KeyA");
  await page.keyboard.up("Control");
  await page.keyboard.type(value);
}

interface AxeViolation {
  id: string;
  nodes: { html: string }[];
}

/**
 * Gives the faults that axe finds in light and dark, at 1,280 px and on a phone, and says if the page is wider than the
 * screen.
 */
export async function layoutFaults(page: Page): Promise<string[]> {
  const faults: string[] = [];
  for (const scheme of ["light", "dark"]) {
    for (const width of [1280, 390]) {
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      await page.setViewport({ width, height: 860 });
      if (((await page.evaluate("document.documentElement.scrollWidth - window.innerWidth")) as number) > 0)
        faults.push(`${scheme} ${width}: wider than the screen`);
      await page.evaluate(AXE);
      const { violations } = (await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")) as {
        violations: AxeViolation[];
      };
      faults.push(
        ...violations.map(
          ({ id, nodes }) =>
            `${scheme} ${width}: ${id}: ${nodes
              .slice(0, 3)
              .map((node) => node.html)
              .join(" ")}`,
        ),
      );
    }
  }
  faults.push(...(await contrastFaults(page)));
  await page.setViewport({ width: 1280, height: 860 });
  return faults;
}

/**
 * In the viewer's own colours, at 1,000 px, on phones, at 200 % and from right to left: the page and its tables fit, no
 * tag is cut, and what only a colour shows stays visible.
 */
async function contrastFaults(page: Page): Promise<string[]> {
  const faults: string[] = [];
  const session = await page.createCDPSession();
  for (const [scheme, width, dir] of [
    ["dark", 1000, "ltr"],
    ["light", 1000, "rtl"],
    ["dark", 640, "ltr"],
    ["light", 400, "ltr"],
    ["dark", 320, "rtl"],
  ] as const) {
    const features = Object.entries({ "prefers-color-scheme": scheme, "forced-colors": "active" });
    await session.send("Emulation.setEmulatedMedia", { features: features.map(([name, value]) => ({ name, value })) });
    await page.setViewport({ width, height: 860 });
    const found = await page.evaluate(contrastFaultsHere, dir);
    faults.push(...found.map((fault) => `forced colours, ${scheme} ${width} ${dir}: ${fault}`));
  }
  await session.detach();
  return faults;
}

/** Runs in the page. */
function contrastFaultsHere(dir: string): string[] {
  const root = document.documentElement;
  root.dir = dir;
  const faults: string[] = [];
  const all = (selector: string): HTMLElement[] => [...document.querySelectorAll<HTMLElement>(selector)];
  const colour = (element: Element, name: string): string => getComputedStyle(element).getPropertyValue(name);
  const ground = colour(root, "background-color");
  const visible = (selector: string, name: string): void => {
    for (const element of all(selector))
      if ([ground, "rgba(0, 0, 0, 0)"].includes(colour(element, name))) faults.push(`${selector}: no ${name}`);
  };
  if (root.scrollWidth > window.innerWidth) faults.push(`${root.scrollWidth} px wide`);
  // The table of downloads has as many columns as its reader likes, so it scrolls. On phones tables of figures do, too.
  const fitting = window.innerWidth < 1000 ? ".table-wrap:has(.cards)" : ".table-wrap:not(:has(.downloads))";
  for (const wrap of all(fitting))
    if (wrap.scrollWidth > wrap.clientWidth) faults.push(`a table is ${wrap.scrollWidth} px in ${wrap.clientWidth} px`);
  for (const tag of all(".tag"))
    if (tag.scrollWidth > tag.clientWidth || (tag.closest("table") && tag.clientHeight > 22))
      faults.push(`the tag ${tag.innerText} is cut`);
  visible(".tag", "border-top-color");
  visible(".nav a[aria-current]", "border-bottom-color");
  visible(".bar i", "background-color");
  visible(".mantine-SegmentedControl-root", "border-top-color");
  visible(".mantine-SegmentedControl-indicator", "background-color");
  visible(".mantine-Switch-track", "border-top-color");
  visible(".mantine-Switch-thumb", "background-color");
  visible(".mantine-Modal-content", "border-top-color");
  root.dir = "ltr";
  return faults;
}
