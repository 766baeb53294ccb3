/**
 * Door of the lab: a local fleet, the sample origin, a browser with the extension, and the questions to ask afterwards.
 */
export { linksOf, makeBox } from "./bench/campaign/boxes";
export type { Box } from "./bench/campaign/boxes";
export { goodputOf } from "./bench/campaign/rows";
export type { Sample } from "./bench/campaign/rows";
export { startStack } from "./bench/campaign/stack";
export type { Stack } from "./bench/campaign/stack";
export { FIREFOX_UUID, openBrowser, samplePageState, writeExtensionDefaults } from "./browser";
export type { BrowserName, ExtensionDefaults, OpenBrowser, SamplePageState } from "./browser";
export { findChromium, findFirefox } from "./chromium";
export { repoRoot, startFleet } from "./fleet";
export type { Fleet, FleetOptions } from "./fleet";
export { LinksError } from "./links/core";
export { startLinks } from "./links/links";
export type { HostStats, Links, LinksStats, PipeSample, PipeStats } from "./links/links";
export { parseScenarioText, ScenarioError } from "./links/scenario";
export type { LinkChangeInput, Scenario, ScenarioInput } from "./links/scenario";
export type { AccessLogEntry } from "./sample/access-log";
export { sizeBytes } from "./sample/bytes";
export { recordsOf, recordsSince } from "./records";
export { clockOff, DAY_SEC } from "./skew";
export { startService } from "./services";
export type { Service } from "./services";
export { isCheck, mediaFetchedByBrowser, notThroughProxies, segmentMismatch, totalsOf } from "./verify";
