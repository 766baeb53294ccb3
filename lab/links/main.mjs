/**
 * `npm run links`: builds what is not built yet, without output, and then runs lab/links/dist/main.js in this process.
 */
import { pathToFileURL } from "node:url";
import path from "node:path";
import { endWithNpm } from "../../infra/lifetime.mjs";
import { root, setUp, SetupError } from "../../infra/setup.mjs";

endWithNpm();
try {
  await setUp({ print: () => undefined });
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  console.error(error.message);
  process.exit(1);
}
await import(pathToFileURL(path.join(root, "lab/links/dist/main.js")).href);
