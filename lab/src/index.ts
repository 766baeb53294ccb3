/** Door of the lab: a local fleet, the sample origin, a browser with the extension, and the questions to ask afterwards. */
export { openBrowser, samplePageState } from "./browser";
export type { ExtensionDefaults, OpenBrowser, SamplePageState } from "./browser";
export { findChromium } from "./chromium";
export { repoRoot, startFleet } from "./fleet";
export type { Fleet, FleetOptions } from "./fleet";
export { LinksError } from "./links/core";
export { startLinks } from "./links/links";
export type { HostStats, Links, LinksStats, PipeSample, PipeStats } from "./links/links";
export { parseScenarioText, ScenarioError } from "./links/scenario";
export type { LinkChangeInput, Scenario, ScenarioInput } from "./links/scenario";
export type { AccessLogEntry } from "./sample/accessLog";
export { sizeBytes } from "./sample/bytes";
export { startService } from "./services";
export type { Service } from "./services";
export { mediaFetchedByBrowser, notThroughProxies, segmentMismatch, totalsOf } from "./verify";
