/** `tributary swarm` with real processes: every peer gets the bytes, a killed one stops nobody, and none is left. */
import { spawn, type ChildProcess } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net, { type AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { repoRoot } from "@tributary/lab-stack";
import { cli, eventually, runToEnd } from "./support";

const CONTENT = randomBytes(200_001);
const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

let folder: string;
let file: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "tributary-swarm-test-"));
  file = path.join(folder, "file");
  writeFileSync(file, CONTENT);
});
afterAll(() => rmSync(folder, { recursive: true }));

interface Result {
  complete: number;
  sha256: string;
  peers: { id: number; completeMs: number | null; lost: string | null }[];
}

const resultOf = (name: string): Result => JSON.parse(readFileSync(path.join(folder, name), "utf8")) as Result;

/** Processes of peers that the command has started: number of the peer -> process. */
async function childrenOf({ pid }: ChildProcess): Promise<Map<number, number>> {
  const { stdout } = await runToEnd("ps", ["-o", "pid=,args=", "--ppid", String(pid)]);
  const found = stdout.toString().matchAll(/^\s*(\d+) .*peer-process\.js (\d+)$/gm);
  return new Map([...found].map(([, child, id]) => [Number(id), Number(child)]));
}

function start(...words: string[]): { child: ChildProcess; ended: Promise<number | null> } {
  const child = spawn(process.execPath, ["client/dist/cli.js", "swarm", file, ...words], {
    cwd: repoRoot,
    stdio: "pipe",
  });
  return { child, ended: new Promise((resolve) => child.once("close", resolve)) };
}

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

test.each(["coding", "rarest", "naive"])("%s: eight peers get the file, and a picture shows when", async (scheme) => {
  const [kept, json, plot] = ["kept", "run.json", "run.svg"].map((name) => path.join(folder, `${scheme}-${name}`));
  const outputs = ["--output-dir", kept!, "--json", json!, "--plot", plot!];
  const run = await cli("swarm", file, "--peers", "8", "--scheme", scheme, "--block-size", "8k", ...outputs);
  expect([run.status, run.stderr]).toEqual([0, ""]);
  expect(run.stdout.toString()).toContain(`sha256 ${sha256(CONTENT)}, in the files of 8 peers`);
  for (let id = 1; id <= 8; id++) expect(sha256(readFileSync(path.join(kept!, `peer-${id}`)))).toBe(sha256(CONTENT));
  expect(resultOf(`${scheme}-run.json`)).toMatchObject({ complete: 8, sha256: sha256(CONTENT) });
  expect(readFileSync(plot!, "utf8")).toMatch(/^<svg [^]*complete peers[^]*<\/svg>\n$/);
});

test("a peer that is killed on the way does not stop the others, and no process is left", async () => {
  const json = path.join(folder, "killed.json");
  const { child, ended } = start("--peers", "8", "--json", json);
  const peers = await eventually(
    () => childrenOf(child),
    ({ size }) => size === 9,
  );
  // They are joined when each has said so. A kill before that ends the run, with a sentence.
  const sockets = async (): Promise<string> =>
    (await runToEnd("ls", ["-l", `/proc/${peers.get(5)}/fd`])).stdout.toString();
  await eventually(sockets, (text) => text.split("socket:").length > 3);
  await new Promise((resolve) => setTimeout(resolve, 500));
  process.kill(peers.get(5)!, "SIGKILL");
  expect(await ended).toBe(0);
  const { complete, peers: results } = resultOf("killed.json");
  expect([complete, results[5]]).toMatchObject([7, { completeMs: null, lost: "SIGKILL" }]);
  expect([...peers.values()].filter(isAlive)).toEqual([]);
});

test.each([
  ["SIGINT", 130],
  ["SIGKILL", null],
] as const)("%s to the command leaves no process behind", async (signal, status) => {
  const { child, ended } = start("--peers", "4");
  const peers = await eventually(
    () => childrenOf(child),
    ({ size }) => size === 5,
  );
  child.kill(signal);
  expect(await ended).toBe(status);
  const left = await eventually(
    () => [...peers.values()].filter(isAlive),
    (alive) => alive.length === 0,
  );
  expect(left).toEqual([]);
});

test.each([
  [["--peers", "0"], 2, "Allowed: a whole number, 1..256."],
  [["--peers", "1000000"], 2, "'1000000' is invalid. Allowed: a whole number, 1..256."],
  [["--density", "0"], 2, "'0' is invalid. Allowed: a number above 0 and at most 1."],
  [["--check", "on"], 2, "'on' is invalid. Allowed choices are off, arrival, ahead."],
  [["--block-size", "65537"], 2, "'65537' is invalid. Allowed: 1..65536 bytes."],
  [["--block-size", "100"], 1, "has 200001 bytes, which are 2001 blocks of 100; the limit is 256 blocks."],
  [["--port", "65530"], 2, "--port: got 65530, allowed 1024..65471 for this many peers."],
  [["--plot", "picture.png"], 2, "'picture.png' is invalid. Allowed: a name that ends in .svg."],
  [["--json", "/nowhere/run.json"], 1, "Cannot write /nowhere/run.json: the folder does not exist (ENOENT)."],
])("%j is refused with the value and the limit", async (words, status, message) => {
  const run = await cli("swarm", file, ...words);
  expect([run.status, run.stderr]).toEqual([status, expect.stringContaining(message)]);
});

test("a file that is empty, absent or a folder is refused, and so is a port in use", async () => {
  const empty = path.join(folder, "empty");
  writeFileSync(empty, "");
  for (const [name, message] of [
    [empty, `${empty} has 0 bytes; a swarm needs at least 1.`],
    ["absent", "Cannot read absent: it does not exist (ENOENT)."],
    [folder, `Cannot read ${folder}: it is a folder (EISDIR).`],
  ] as const) {
    const run = await cli("swarm", name);
    expect([run.status, run.stderr]).toEqual([1, `tributary: ${message}\n`]);
  }
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const run = await cli("swarm", file, "--peers", "2", "--port", String(Math.min(port - 1, 65_533)));
  server.close();
  expect([run.status, run.stderr]).toEqual([1, expect.stringContaining(`address already in use 127.0.0.1:${port}`)]);
});
