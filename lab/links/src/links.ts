/**
 * Hosts with links on one machine, and the product's services in them. `startLinks` brings them up. `close` ends every
 * process in them. They also end when this process ends.
 */
import { Core } from "./core";
import { bringUp } from "./network";
import type { Network } from "./network";
import { parseScenario } from "./scenario";
import type { Scenario, ScenarioInput } from "./scenario";
import { startLinkServices } from "./services";
import type { LinkServices } from "./services";

/** With services, `env` also has ORIGIN_URL, ORIGO_URL, ORIGO_COOKIE and PROXY_URLS. */
export interface Links extends Network {
  /** Undefined if the scenario asks for none. */
  readonly services: LinkServices | undefined;
}

interface StartOptions {
  /** A folder for the output of the services. */
  logFolder?: string;
}

/** `scenario`: a parsed one, or an object as YAML gives it. Rejects with ScenarioError or LinksError. */
export async function startLinks(scenario: Scenario | ScenarioInput, options: StartOptions = {}): Promise<Links> {
  const parsed = Array.isArray(scenario.hosts) ? (scenario as Scenario) : parseScenario(scenario);
  const core = await Core.start();
  try {
    const network = await bringUp(core, parsed);
    const services = parsed.services ? await startLinkServices(network, options.logFolder ?? null) : undefined;
    Object.assign(network.env, services?.env);
    return Object.assign(network, { services });
  } catch (error) {
    await core.end();
    throw error;
  }
}
