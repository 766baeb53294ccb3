/**
 * `npm run links`: does what set-up is left to do, without a word on standard output, then runs lab/links/dist/main.js
 * here.
 */
import { pathToFileURL } from "node:url";
import path from "node:path";
import { root, setUp, SetupError } from "../../infra/setup.mjs";

try {
  await setUp({ print: () => undefined });
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  console.error(error.message);
  process.exit(1);
}
await import(pathToFileURL(path.join(root, "lab/links/dist/main.js")).href);
