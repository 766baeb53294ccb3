/**
 * Reads the family, major version and system of a browser from its User-Agent. It reads nothing else, because more
 * detail would tell people apart.
 */

const BROWSERS: readonly [RegExp, string][] = [
  [/\bEdg(?:A|iOS)?\/(\d+)/, "edge"],
  [/\bOPR\/(\d+)/, "opera"],
  [/\b(?:Firefox|FxiOS)\/(\d+)/, "firefox"],
  [/\b(?:HeadlessChrome|Chrome|CriOS)\/(\d+)/, "chrome"],
  [/\bVersion\/(\d+).*\bSafari\//, "safari"],
];
const SYSTEMS: readonly [RegExp, string][] = [
  [/\bAndroid\b/, "android"],
  [/\b(?:iPhone|iPad)\b/, "ios"],
  [/\bWindows\b/, "windows"],
  [/\bCrOS\b/, "chromeos"],
  [/\bMac OS X\b/, "macos"],
  [/\bLinux\b/, "linux"],
];

/** Leaves out what it does not recognise. */
export function describeAgent(userAgent: string): { agent?: string; os?: string } {
  const browser = BROWSERS.find(([pattern]) => pattern.test(userAgent));
  const os = SYSTEMS.find(([pattern]) => pattern.test(userAgent))?.[1];
  const major = browser?.[0].exec(userAgent)?.[1];
  return { ...(browser ? { agent: `${browser[1]}/${major}` } : {}), ...(os ? { os } : {}) };
}
