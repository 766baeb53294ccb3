/** The door of the stack: a local fleet, the sample site, browsers with the extension, and checks of what they did. */
export {
  builtExtensionDir,
  FIREFOX_ADD_ON,
  FIREFOX_UUID,
  inFirefoxWindow,
  installInFirefox,
  openBrowser,
  samplePageState,
  writeExtensionDefaults,
} from "./browser";
export type { BrowserName, ExtensionDefaults, OpenBrowser, OpenOptions, SamplePageState } from "./browser";
export { findChromium, findFirefox } from "./chromium";
export { openStorePackage, type StorePackage } from "./store-package";
export { DEFAULT_PORTS, freePort, repoRoot, startFleet } from "./fleet";
export type { Fleet, FleetOptions } from "./fleet";
export { publisherCode } from "./publisher-code";
export { recordsOf, recordsSince } from "./records";
export type { AccessLogEntry } from "./sample/access-log";
export { sizeBytes } from "./sample/bytes";
export { LONG_LEVELS, LongVideo } from "./sample/long";
export { mediaDir } from "./sample/origin";
export { startService } from "./services";
export type { Service } from "./services";
export {
  carriedSegments,
  carryFaults,
  formatTable,
  isByBrowser,
  mediaFetchedByBrowser,
  segmentMismatch,
  totalsOf,
} from "./verify";
export type { PlayedSegment } from "./verify";
