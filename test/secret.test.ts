/**
 * infra/docker/secret.js, which the images load before a service starts. It runs as a user without rights, as in the
 * images.
 */
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { repoRoot } from "@tributary/lab-stack";

const NOBODY = 65_534;
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "tributary-secret-"));
  chmodSync(folder, 0o777);
});
afterEach(() => {
  chmodSync(folder, 0o777);
  rmSync(folder, { recursive: true });
});

const secretFile = (): string => path.join(folder, "secret");

/** `before` runs in the same process and thus with the same process id. */
function start(before = ""): { status: number | null; secret: string; problem: string } {
  // A copy outside the repository, because that user may not be able to read the repository.
  const script = readFileSync(path.join(repoRoot, "infra/docker/secret.js"), "utf8");
  const program = `${before}; ${script}; console.log(process.env.ORIGO_SECRET);`;
  const env = { PATH: process.env["PATH"], ORIGO_SECRET_FILE: secretFile(), ORIGO_SECRET_CREATE: "1" };
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  const { status, stdout, stderr } = spawnSync("node", ["-"], {
    input: program,
    encoding: "utf8",
    env,
    cwd: folder,
    ...user,
  });
  return { status, secret: stdout.trim(), problem: stderr };
}

const DRAFT =
  "require('node:fs').writeFileSync(process.env.ORIGO_SECRET_FILE + '.' + process.pid, 'half', { mode: 0o400 })";

test("secret: is made once and then found again", () => {
  const first = start();
  expect(first).toMatchObject({ status: 0, secret: expect.stringMatching(/^[0-9a-f]{64}$/), problem: "" });
  expect(start()).toEqual(first);
});

test("secret: a draft of a killed start does not stop a later start", () => {
  const first = start(DRAFT);
  expect(first).toMatchObject({ status: 0, secret: expect.stringMatching(/^[0-9a-f]{64}$/) });
  expect(start(DRAFT)).toEqual(first);
});

test("secret: with an existing secret nothing is written, so a full disk does not stop a start", () => {
  writeFileSync(secretFile(), "known", { mode: 0o444 });
  chmodSync(folder, 0o555);
  expect(start()).toEqual({ status: 0, secret: "known", problem: "" });
});

test("secret: a failure to make it names the file and leaves nothing behind", () => {
  chmodSync(folder, 0o555);
  const { status, problem } = start();
  expect([status, problem]).toEqual([2, expect.stringContaining(`ORIGO_SECRET_FILE=${secretFile()}: EACCES`)]);
  expect(existsSync(secretFile())).toBe(false);
});
