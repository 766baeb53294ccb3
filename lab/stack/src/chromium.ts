/** Finds the browsers on this machine. infra/setup.mjs installs them. Imports only node's own modules. */
import { accessSync, constants } from "node:fs";
import path from "node:path";

const FIXED_PLACES = [
  "/usr/lib/chromium/chromium",
  "/usr/lib/chromium-browser/chromium-browser",
  "/opt/google/chrome/chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
];
const NAMES_ON_PATH = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];

/** Path of Chromium: the variable CHROMIUM, then the usual places. undefined: there is none. */
export function findChromium(env: Readonly<Record<string, string | undefined>> = process.env): string | undefined {
  if (env["CHROMIUM"]) return isExecutable(env["CHROMIUM"]) ? env["CHROMIUM"] : undefined;
  return [...FIXED_PLACES, ...onPath(NAMES_ON_PATH, env)].find(isExecutable);
}

const FIREFOX_PLACES = [
  "/usr/bin/firefox-esr",
  "/usr/lib/firefox-esr/firefox-esr",
  "/Applications/Firefox.app/Contents/MacOS/firefox",
];
const FIREFOX_NAMES = ["firefox-esr", "firefox"];

/** The same for Firefox, with the variable FIREFOX. */
export function findFirefox(env: Readonly<Record<string, string | undefined>> = process.env): string | undefined {
  if (env["FIREFOX"]) return isExecutable(env["FIREFOX"]) ? env["FIREFOX"] : undefined;
  return [...FIREFOX_PLACES, ...onPath(FIREFOX_NAMES, env)].find(isExecutable);
}

function onPath(names: readonly string[], env: Readonly<Record<string, string | undefined>>): string[] {
  const folders = (env["PATH"] ?? "").split(path.delimiter).filter(Boolean);
  return names.flatMap((name) => folders.map((folder) => path.join(folder, name)));
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
