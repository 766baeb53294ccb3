/**
 * Opens a browser with the extension: Chromium, or Firefox over BiDi, driven by puppeteer. The extension is copied
 * first, and its packaged defaults (defaults.json) point at the given fleet. So several browsers with different
 * settings can run at the same time.
 */
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import puppeteer from "puppeteer-core";
import type { Browser, Page } from "puppeteer-core";
import { findChromium, findFirefox } from "./chromium";
import { repoRoot } from "./fleet";

export type BrowserName = "chromium" | "firefox";

/** The package that webpack made: a folder of extension/dist. */
export const builtExtensionDir = (name: string): string => path.join(repoRoot, "extension/dist", name);

export interface ExtensionDefaults {
  origoUrl: string;
  /** Asked in turn when the first Origo does not answer. */
  otherOrigoUrls?: readonly string[];
  mode: string;
  connections: number;
  /** Default `auto`. */
  transport?: "auto" | "webtransport" | "webrtc";
}

/**
 * Writes the settings that an extension with empty storage starts with. In the lab, it sends records to the lab's
 * Origo.
 */
export async function writeExtensionDefaults(
  extensionDir: string,
  { origoUrl, otherOrigoUrls = [], ...defaults }: ExtensionDefaults,
): Promise<void> {
  const settings = { ...defaults, origoUrls: [origoUrl, ...otherOrigoUrls], sendRecords: true };
  await writeFile(path.join(extensionDir, "defaults.json"), `${JSON.stringify(settings)}\n`);
}

export interface OpenBrowser {
  readonly browser: Browser;
  /** Opens a tab, in a private window if the browser was opened with one. */
  newPage(): Promise<Page>;
  /** Installs the extension again, like an update. */
  update(): Promise<void>;
  close(): Promise<void>;
}

export interface OpenOptions {
  /** Default chromium. */
  name?: BrowserName;
  /** Opens with the demo package, with these settings. */
  defaults?: ExtensionDefaults;
  /** Opens with this package as it is, a folder or for Firefox a zip. Without `defaults` and `packed`: no extension. */
  packed?: string;
  headless: boolean;
  /** For Chromium only. */
  flags?: readonly string[];
  /** Runs this in place of the browser that was found, such as a script that starts the browser elsewhere. */
  executable?: string;
  /** Folder of extension/dist. The default is the browser's name. */
  build?: string;
  /** Changes the copied package before it is loaded. */
  prepare?: (extensionDir: string) => Promise<void>;
  /** Tabs in private windows, with the extension allowed there. */
  isPrivate?: boolean;
  /** For pictures in Firefox: dark colours. */
  isDark?: boolean;
  /**
   * In Firefox: a host whose pages count as secure although they come over plain HTTP, as in lab/links. The transport
   * runs in their frames.
   */
  secureHost?: string;
}

const hasExtension = ({ defaults, packed }: OpenOptions): boolean => defaults !== undefined || packed !== undefined;

/** Throws if the browser is not on this machine. */
export async function openBrowser(options: OpenOptions): Promise<OpenBrowser> {
  const name = options.name ?? "chromium";
  const executablePath = options.executable ?? (name === "firefox" ? findFirefox() : findChromium());
  const spoken = name === "firefox" ? "Firefox" : "Chromium";
  if (!executablePath)
    throw new Error(`no ${spoken} found: install it, or name its path in the variable ${name.toUpperCase()}`);
  const folder = await mkdtemp(path.join(os.tmpdir(), "tributary-browser-"));
  const extensionDir = options.packed ?? path.join(folder, "extension");
  if (options.defaults) {
    await cp(builtExtensionDir(options.build ?? name), extensionDir, { recursive: true });
    await writeExtensionDefaults(extensionDir, options.defaults);
    await options.prepare?.(extensionDir);
  }
  const isFirefox = name === "firefox";
  const browser = await (isFirefox ? launchFirefox : launchChromium)(
    executablePath,
    path.join(folder, "profile"),
    options,
  );
  const update = async (): Promise<void> => {
    await (isFirefox ? installInFirefox : installInChromium)(browser, extensionDir, options.isPrivate === true);
    // A page that loads before the background listens is not noted (extension/src/background/policies.ts).
    const listens = isFirefox ? inFirefoxWindow(browser, BACKGROUND_RUNS) : untilListening(browser);
    await Promise.race([listens.catch(() => undefined), pause(LISTEN_MS_MAX, undefined, { ref: false })]);
  };
  if (hasExtension(options)) await update();
  const windows = options.isPrivate === true && !isFirefox ? await browser.createBrowserContext() : browser;
  const close = async (): Promise<void> => {
    await browser.close().catch(() => undefined);
    await rm(folder, { recursive: true, force: true, maxRetries: 5 }).catch(() => undefined);
  };
  return { browser, newPage: () => windows.newPage(), update, close };
}

async function installInChromium(browser: Browser, extensionDir: string, isPrivate: boolean): Promise<void> {
  const session = await browser.target().createCDPSession();
  await session.send("Extensions.loadUnpacked", { path: extensionDir, enableInIncognito: isPrivate });
  await session.detach();
}

/** A browser that does not tell by then goes on without. */
const LISTEN_MS_MAX = 5000;

async function untilListening(browser: Browser): Promise<void> {
  const target = await browser.waitForTarget((each) => each.type() === "service_worker");
  const worker = await target.worker();
  while ((await worker?.evaluate("chrome.webRequest.onResponseStarted.hasListeners()")) === false) await pause(20);
}

/** Installs a folder or a zip. puppeteer has no option for either Firefox's private windows or archives. */
export async function installInFirefox(browser: Browser, extension: string, isPrivate: boolean): Promise<void> {
  const { connection } = browser as unknown as {
    connection: { send(method: string, params: object): Promise<unknown> };
  };
  await connection.send("webExtension.install", {
    extensionData: { type: extension.endsWith(".zip") ? "archivePath" : "path", path: extension },
    "moz:allowPrivateBrowsing": isPrivate,
  });
}

const COMMON = { handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false } as const;

function launchChromium(executablePath: string, userDataDir: string, options: OpenOptions): Promise<Browser> {
  return puppeteer.launch({
    ...COMMON,
    executablePath,
    userDataDir,
    headless: options.headless,
    pipe: true,
    ignoreDefaultArgs: ["--enable-automation"],
    enableExtensions: hasExtension(options),
    ...(options.headless ? {} : { defaultViewport: null }),
    args: [...browserFlags(), ...(options.flags ?? [])],
  });
}

async function launchFirefox(executablePath: string, userDataDir: string, options: OpenOptions): Promise<Browser> {
  await mkdir(userDataDir);
  return puppeteer.launch({
    ...COMMON,
    browser: "firefox",
    executablePath,
    userDataDir,
    headless: options.headless,
    args: hasExtension(options) ? ["--remote-allow-system-access"] : [],
    extraPrefsFirefox: {
      ...FIREFOX_PREFS,
      "browser.privatebrowsing.autostart": options.isPrivate === true,
      "layout.css.prefers-color-scheme.content-override": options.isDark === true ? 0 : 1,
      "dom.securecontext.allowlist": options.secureHost ?? "",
    },
  });
}

/** The add-on's id in the manifest, and the address that the tests give it. */
export const FIREFOX_ADD_ON = "{6d3c1b5e-9f0a-4b7e-8a51-3f2f0c9d7e64}";
export const FIREFOX_UUID = "2f1d9c7a-5b1e-4a64-9c8e-0a4d5e6f7081";

const BACKGROUND_RUNS = `
  const { extension } = WebExtensionPolicy.getByID("${FIREFOX_ADD_ON}");
  while (extension.backgroundState !== "running") await new Promise((done) => setTimeout(done, 20));`;

/**
 * Proxies on loopback need the last three. Firefox pairs only its loopback address with 127.0.0.1, and a proxy cannot
 * look up the mDNS names that Firefox offers in place of addresses. Other proxies need none of them.
 */
const FIREFOX_PREFS = {
  "extensions.webextensions.uuids": JSON.stringify({ [FIREFOX_ADD_ON]: FIREFOX_UUID }),
  "media.autoplay.default": 0,
  "media.autoplay.blocking_policy": 0,
  "media.peerconnection.ice.loopback": true,
  "media.peerconnection.ice.default_address_only": false,
  "media.peerconnection.ice.obfuscate_host_addresses": false,
};

/** Runs the body of a function in Firefox's own window. */
export async function inFirefoxWindow(browser: Browser, body: string): Promise<unknown> {
  const { connection } = browser as unknown as {
    connection: { send(method: string, params: object): Promise<{ result: Record<string, unknown> }> };
  };
  const tree = await connection.send("browsingContext.getTree", { "moz:scope": "chrome" });
  const [{ context }] = tree.result.contexts as [{ context: string }];
  const { result } = await connection.send("script.evaluate", {
    expression: `(async () => {${body}})()`,
    target: { context },
    awaitPromise: true,
  });
  const told = result as { type: string; result?: { value?: unknown }; exceptionDetails?: { text: string } };
  if (told.type === "exception") throw new Error(told.exceptionDetails?.text);
  return told.result?.value;
}

function browserFlags(): string[] {
  const flags = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--autoplay-policy=no-user-gesture-required",
    "--disable-dev-shm-usage",
  ];
  return process.getuid?.() === 0 ? [...flags, "--no-sandbox"] : flags;
}

/** What a player page of the sample origin reports (lab/stack/sample/pages/page.js). */
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
