/** Tests the settings check as compose runs it, with the real compose file. It needs the compiled program. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const COMPOSE = join(__dirname, "../../infra/compose.yaml");
const PROGRAM = join(__dirname, "../dist/settings-check.js");
/** What the image and Docker set. */
const OF_IMAGE = { PATH: process.env.PATH, NODE_ENV: "production", HOST: "0.0.0.0", PORT: "7600", DATA_DIR: "/data" };

const check = (env: Record<string, string>): { status: number | null; stderr: string } =>
  spawnSync(process.execPath, [PROGRAM, COMPOSE], {
    env: { ...OF_IMAGE, HOSTNAME: "0f5a11", HOME: "/", ...env },
    encoding: "utf8",
  });

test.each([
  ["RETENTION_DAY", "did you mean RETENTION_DAYS?\n"],
  ["ALLOW_HOST", "did you mean ALLOW_HOSTS?\n"],
  ["ORIGO_PASWORD", "so it has no effect\n"],
  ["PROXY_NAME", "so it has no effect\n"],
  ["TRIBUTARY_CODERS", "did you mean TRIBUTARY_CODER?\n"],
])("settings check: %s is told without its value", (name, end) => {
  const { status, stderr } = check({ [name]: "hush" });
  expect([status, stderr.startsWith(`${name} is not a variable of compose.yaml`)]).toEqual([1, true]);
  expect(stderr).toMatch(new RegExp(`${end.replace("?", "\\?")}$`));
  expect(stderr).not.toContain("hush");
});

test("settings check: the compose file's variables and foreign ones pass", () => {
  const names = [...readFileSync(COMPOSE, "utf8").matchAll(/\$\{(\w+)/g)].map(([, name]) => [name!, "1"] as const);
  expect(names.length).toBeGreaterThan(20);
  const foreign = {
    POSTGRES_PASSWORD: "hush",
    COMPOSE_PROJECT_NAME: "x",
    HTTP_PROXY: "http://10.0.0.1",
    NO_PROXY: "a",
  };
  expect(check({ ...Object.fromEntries(names), ...foreign })).toMatchObject({ status: 0, stderr: "" });
});
