/**
 * Settings check: a container of infra/compose.yaml that ends at once. Compose passes over misspelt names in `.env`, so
 * this program is given all of them. It names those that are probably misspelt, without values, and then ends with 1.
 *
 *   node settings-check.js COMPOSE_FILE
 */
import { readFileSync } from "node:fs";
import { misspeltVariables } from "@tributary/contract/environment";

/** Variables with these prefixes look like the compose file's own. */
const PREFIXES = ["ORIGO_", "PROXY_", "TRIBUTARY_"];

const compose = readFileSync(process.argv[2] ?? "compose.yaml", "utf8");
const known = [...compose.matchAll(/\$\{(\w+)/g)].map(([, name]) => name!);
const misspelt = misspeltVariables(process.env, known, PREFIXES, "compose.yaml");
for (const line of misspelt) console.error(line);
process.exitCode = misspelt.length > 0 ? 1 : 0;
