/**
 * Chromium with the extension loaded, driven by puppeteer. The extension is copied first, with its packaged defaults
 * (defaults.json) pointing at the fleet at hand, so that several browsers with different settings can run side by side.
 */
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import puppeteer from "puppeteer-core";
import type { Browser, Page } from "puppeteer-core";
import { findChromium } from "./chromium";
import { repoRoot } from "./fleet";

export const builtExtensionDir = path.join(repoRoot, "extension/dist/chromium");

export interface ExtensionDefaults {
  origoUrl: string;
  mode: string;
  connections: number;
  /** Default `auto`. */
  transport?: "auto" | "webtransport" | "webrtc";
}

/** Writes the settings that an extension with empty storage starts with. */
export async function writeExtensionDefaults(extensionDir: string, defaults: ExtensionDefaults): Promise<void> {
  await writeFile(path.join(extensionDir, "defaults.json"), `${JSON.stringify(defaults)}\n`);
}

export interface OpenBrowser {
  readonly browser: Browser;
  close(): Promise<void>;
}

export interface BrowserOptions {
  /** Of the extension; without them the browser opens without it. */
  defaults?: ExtensionDefaults;
  headless: boolean;
  flags?: readonly string[];
  /** What to run instead of the Chromium found on this machine, such as a script that starts it elsewhere. */
  executable?: string;
}

/** Opens Chromium. Throws a sentence when there is none. */
export async function openBrowser(options: BrowserOptions): Promise<OpenBrowser> {
  const executablePath = options.executable ?? findChromium();
  if (!executablePath) throw new Error("no Chromium found: install it, or name its path in the variable CHROMIUM");
  const folder = await mkdtemp(path.join(os.tmpdir(), "tributary-browser-"));
  const extensionDir = path.join(folder, "extension");
  if (options.defaults) {
    await cp(builtExtensionDir, extensionDir, { recursive: true });
    await writeExtensionDefaults(extensionDir, options.defaults);
  }
  const browser = await puppeteer.launch({
    executablePath,
    headless: options.headless,
    pipe: true,
    ignoreDefaultArgs: ["--enable-automation"],
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
    userDataDir: path.join(folder, "profile"),
    ...(options.defaults ? { enableExtensions: [extensionDir] } : {}),
    ...(options.headless ? {} : { defaultViewport: null }),
    args: [...browserFlags(), ...(options.flags ?? [])],
  });
  const close = async (): Promise<void> => {
    await browser.close().catch(() => undefined);
    await rm(folder, { recursive: true, force: true, maxRetries: 5 }).catch(() => undefined);
  };
  return { browser, close };
}

function browserFlags(): string[] {
  const flags = [
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--autoplay-policy=no-user-gesture-required", "--disable-dev-shm-usage",
  ];
  return process.getuid?.() === 0 ? [...flags, "--no-sandbox"] : flags;
}

/** What a player page of the sample origin tells about itself (lab/sample/pages/page.js). */
export interface SamplePageState {
  player: string;
  segments: { url: string; start?: number; end?: number; bytes: number; ms: number; sha256: string }[];
  errors: string[];
  currentTime: number;
  /** Seconds of media in the buffer ahead of the playhead. */
  bufferedSeconds: number;
  ended: boolean;
}

const READ_STATE = `(() => {
  const video = document.querySelector("video");
  const ranges = video ? video.buffered : { length: 0 };
  const last = ranges.length ? ranges.end(ranges.length - 1) : 0;
  return { ...window.tributarySample, currentTime: video ? video.currentTime : 0,
    bufferedSeconds: Math.max(0, last - (video ? video.currentTime : 0)), ended: video ? video.ended : false };
})()`;

export async function samplePageState(page: Page): Promise<SamplePageState> {
  return (await page.evaluate(READ_STATE)) as SamplePageState;
}
