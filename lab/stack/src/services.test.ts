/** Child processes that get ready, die too early or do not end. Scripts of a line or two stand in for services. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { readyUrl, startService } from "./services";

let folder = "";
beforeEach(() => (folder = mkdtempSync(path.join(os.tmpdir(), "tributary-services-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const READY = 'console.log(JSON.stringify({ ready: true, url: "http://127.0.0.1:1" }));';

function start(script: string, env: Record<string, string> = {}) {
  const file = path.join(folder, "script.cjs");
  writeFileSync(file, script);
  return startService({ name: "stand-in", script: file, env, logFile: path.join(folder, "log") });
}

test("a service is started with its environment, becomes ready, is stopped, and has left its log", async () => {
  const service = await start(`console.error("hello " + process.env.WHO); ${READY} setInterval(() => {}, 1000);`, {
    WHO: "world",
  });
  expect(service.url).toBe("http://127.0.0.1:1");
  await service.stop();
  expect(service.stopping).toBe(true);
  expect(await service.ended).toEqual({ code: null, signal: "SIGTERM" });
  expect(readFileSync(path.join(folder, "log"), "utf8")).toContain("hello world");
});

test("a service that ends before it is ready: its last lines and its exit status", async () => {
  await expect(start('console.error("PORT is not a number"); process.exit(2);')).rejects.toThrow(
    /stand-in ended before it was ready \(exit code 2\):\nPORT is not a number/,
  );
});

test("a service that dies later ends without stopping", async () => {
  const service = await start(`${READY} setTimeout(() => process.exit(3), 20);`);
  expect(await service.ended).toEqual({ code: 3, signal: null });
  expect(service.stopping).toBe(false);
});

test.each([
  ['{"ready":true,"url":"http://h:1"}', "http://h:1"],
  ['{"ready":false,"url":"http://h:1"}', undefined],
  ['{"ready":true}', undefined],
  ["null", undefined],
  ["listening on 1", undefined],
])("ready line %s", (line, url) => expect(readyUrl(line)).toBe(url));
