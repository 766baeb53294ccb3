/**
 * The packages that the stores get, each in its browser, used as a viewer does: the popup opens from the toolbar, and
 * its switch asks the browser for the site. The browser's own question cannot be clicked without a screen, so each
 * browser is told to say yes to it.
 */
import { execFileSync } from "node:child_process";
import { readdir } from "node:fs/promises";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Browser, Page } from "puppeteer-core";
import { FIREFOX_ADD_ON, FIREFOX_UUID, inFirefoxWindow, openBrowser } from "./browser";
import type { BrowserName, OpenBrowser } from "./browser";
import { repoRoot } from "./fleet";

export interface StorePackage extends OpenBrowser {
  /** The base of the extension's own pages. */
  readonly base: string;
  /** Turns the site of this tab on with the popup's switch. The host is the tab's, without a port. */
  allowSite(tab: Page): Promise<void>;
  /** Takes the access to that site away in the browser's own list of extensions. */
  revokeSite(tab: Page): Promise<void>;
}

let isPacked = false;

/** Packs the extension, once in a process, and installs the package that the browser's store would get. */
export async function openStorePackage(name: BrowserName): Promise<StorePackage> {
  if (!isPacked) execFileSync(process.execPath, ["extension/pack.mjs"], { cwd: repoRoot, stdio: "ignore" });
  isPacked = true;
  return name === "firefox" ? openInFirefox() : openInChromium();
}

/** Chromium takes no archive that no store has signed, so it gets the archive's files. */
async function openInChromium(): Promise<StorePackage> {
  const open = await openBrowser({ headless: true, packed: path.join(repoRoot, "extension/dist/store-chromium") });
  const worker = await open.browser.waitForTarget((target) => target.type() === "service_worker");
  const id = new URL(worker.url()).host;
  const allowSite = async (tab: Page): Promise<void> => {
    await inExtensionsPage(open.browser, `addHostPermission("${id}", "*://${new URL(tab.url()).hostname}/*"`);
    await tab.bringToFront();
    const popup = await openPopupInChromium(open.browser, id, tab.url());
    await popup.click("#site[aria-checked=false]:enabled");
    await popup.waitForSelector("#site[aria-checked=true]");
    await popup.close();
  };
  const revokeSite = (tab: Page): Promise<void> =>
    inExtensionsPage(open.browser, `removeHostPermission("${id}", "*://${new URL(tab.url()).hostname}/*"`);
  return { ...open, base: `chrome-extension://${id}`, allowSite, revokeSite };
}

/** Calls a function of Chromium's own page of extensions. It has the list of sites, and asks for none that is in it. */
async function inExtensionsPage(browser: Browser, call: string): Promise<void> {
  const page = await browser.newPage();
  await page.goto("chrome://extensions");
  await page.evaluate(`new Promise((done) => chrome.developerPrivate.${call}, done))`);
  await page.close();
}

async function openPopupInChromium(browser: Browser, id: string, url: string): Promise<Page> {
  const session = await browser.target().createCDPSession();
  const { targetInfos } = await session.send("Target.getTargets", { filter: [{ type: "tab" }] });
  const targetId = targetInfos.find((info) => info.url === url)?.targetId;
  const { send } = session as unknown as { send(method: string, params: object): Promise<unknown> };
  await send.call(session, "Extensions.triggerAction", { id, targetId });
  await session.detach();
  const target = await browser.waitForTarget((each) => each.url().endsWith("/popup.html"));
  return target.asPage();
}

async function openInFirefox(): Promise<StorePackage> {
  const dist = path.join(repoRoot, "extension/dist");
  const archive = (await readdir(dist)).find((file) => /^tributary-firefox-.*\.zip$/.test(file)) ?? "";
  const packed = path.join(dist, archive);
  const open = await openBrowser({ name: "firefox", headless: true, isDark: false, packed });
  const allowSite = async (tab: Page): Promise<void> => {
    await tab.bringToFront();
    await inFirefoxWindow(open.browser, OPEN_POPUP);
    for (let tries = 0; (await inFirefoxWindow(open.browser, CLICK_SWITCH)) !== "on"; tries++) {
      if (tries === 50) throw new Error("the switch of the popup did not go on within 10 s");
      await pause(200);
    }
  };
  const revokeSite = async (): Promise<void> => {
    await inFirefoxWindow(open.browser, REVOKE);
  };
  return { ...open, base: `moz-extension://${FIREFOX_UUID}`, allowSite, revokeSite };
}

/** What the switch of a site in the list of extensions does. */
const REVOKE = `
  const { ExtensionPermissions } = ChromeUtils.importESModule("resource://gre/modules/ExtensionPermissions.sys.mjs");
  const { extension } = WebExtensionPolicy.getByID("${FIREFOX_ADD_ON}");
  const { origins } = await ExtensionPermissions.get("${FIREFOX_ADD_ON}");
  const removed = { origins, permissions: [], data_collection: [] };
  await ExtensionPermissions.remove("${FIREFOX_ADD_ON}", removed, extension);`;

const OPEN_POPUP = `
  if ([...document.querySelectorAll("browser")].some((each) => each.currentURI.spec.endsWith("/popup.html"))) return;
  Services.prefs.setBoolPref("extensions.webextOptionalPermissionPrompts", false);
  const { ExtensionParent } = ChromeUtils.importESModule("resource://gre/modules/ExtensionParent.sys.mjs");
  const { extension } = WebExtensionPolicy.getByID("${FIREFOX_ADD_ON}");
  await ExtensionParent.apiManager.global.browserActionFor(extension).openPopup(window);`;

/** Clicks while the switch is off, and tells the state. A script in the popup's process counts as the viewer's hand. */
const CLICK_SWITCH = `
  const popup = [...document.querySelectorAll("browser")].find((each) => each.currentURI.spec.endsWith("/popup.html"));
  if (!popup) return "closed";
  const script = () => {
    const button = content.document.getElementById("site");
    const hand = content.windowUtils.setHandlingUserInput(true);
    if (content.document.getElementById("site-name")?.textContent && button.ariaChecked === "false") button.click();
    hand.destruct();
    sendAsyncMessage("tributary:state", button?.ariaChecked === "true" ? "on" : "off");
  };
  const state = new Promise((done) => {
    popup.messageManager.addMessageListener("tributary:state", function hear({ data }) {
      popup.messageManager.removeMessageListener("tributary:state", hear);
      done(data);
    });
  });
  popup.messageManager.loadFrameScript("data:," + encodeURIComponent("(" + script + ")()"), false);
  return await state;`;
