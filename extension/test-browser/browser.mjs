/** Starts headless Chromium, with an unpacked extension or without one. */
import puppeteer from "puppeteer-core";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--autoplay-policy=no-user-gesture-required",
];

export function launch(extensionDir, flags = []) {
  const executablePath = process.env.CHROMIUM ?? "/usr/lib/chromium/chromium";
  return puppeteer.launch({
    executablePath,
    headless: true,
    pipe: true,
    args: [...FLAGS, ...flags],
    ...(extensionDir ? { enableExtensions: [extensionDir] } : {}),
  });
}

/** The extension's id, from the address of its service worker. */
export async function extensionId(browser) {
  const target = await browser.waitForTarget(
    (candidate) => candidate.type() === "service_worker" && candidate.url().startsWith("chrome-extension://"),
  );
  return new URL(target.url()).host;
}
