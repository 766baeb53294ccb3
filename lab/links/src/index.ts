/** Emulated links between programs of this machine. Format of a scenario: docs/use/researcher.md. */
export { LinksError } from "./core";
export { startLinks } from "./links";
export type { Links } from "./links";
export type { HostStats, LinksStats, PipeSample, PipeStats } from "./network";
export { recordsOnLinks } from "./records";
export { parseScenario, parseScenarioText, ScenarioError } from "./scenario";
export type { LinkChangeInput, Scenario, ScenarioInput } from "./scenario";
