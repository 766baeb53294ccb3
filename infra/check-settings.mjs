/**
 * `npm run check:settings -- FILE`: names what a file of settings for compose.yaml sets that the compose file does not
 * know. Docker Compose passes over such names in silence. Exit status 0 all are known, 1 some are not, 2 no such file.
 * It needs node alone, and no build.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Compose and Docker read these themselves. */
const OF_DOCKER = /^(?:COMPOSE|DOCKER|BUILDKIT)_/;

const compose = readFileSync(fileURLToPath(new URL("compose.yaml", import.meta.url)), "utf8");
const known = new Set([...compose.matchAll(/\$\{(\w+)/g)].map(([, name]) => name));

function check(file) {
  const text = readFileSync(file, "utf8");
  const names = [...text.matchAll(/^[^\S\n]*(?:export\s+)?([^\s#=:]+)[^\S\n]*[=:]/gm)].map(([, name]) => name);
  const unknown = names.filter((name) => !known.has(name) && !OF_DOCKER.test(name));
  for (const name of unknown) console.error(`${file}: ${name} is not a setting of compose.yaml, so it has no effect`);
  if (unknown.length > 0) console.error(`the settings are: ${[...known].sort().join(", ")}`);
  else console.log(`${file}: all ${names.length} names are settings of compose.yaml`);
  return unknown.length > 0 ? 1 : 0;
}

const [file, ...more] = process.argv.slice(2);
try {
  if (file === undefined || more.length > 0) throw new Error("usage: npm run check:settings -- FILE");
  process.exitCode = check(file);
} catch (error) {
  console.error(error.message);
  process.exitCode = 2;
}
