import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { SETTINGS_DEFAULT } from "./settings";

test("node: a program that does not close its client ends", async () => {
  const library = path.join(__dirname, "../dist/node.js");
  const program = `
    const client = require(${JSON.stringify(library)}).createNodeClient({ origoUrl: "http://127.0.0.1:9" });
    client.prepare().then(() => client.get("http://127.0.0.1:9/", { mode: "direct" }).record)
      .then(({ outcome }) => console.log(outcome));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["-e", program], { timeout: 20_000 });
  expect(stdout.trim()).toBe("failed");
}, 25_000);

test("node: a first byte after 35 s and a pause of 40 s are within the default patience", () => {
  expect(SETTINGS_DEFAULT.directSilenceMs).toBeGreaterThan(60_000);
  expect(SETTINGS_DEFAULT.retries).toBeGreaterThan(2);
});
