/** These tests use real network namespaces. They need root or user namespaces, and name what is missing. */
import { execFile, spawn } from "node:child_process";
import { readlinkSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { buildCore, LinksError } from "./core";
import { startLinks } from "./links";
import type { Links } from "./links";

jest.setTimeout(120_000);

let links: Links | undefined;
afterEach(async () => {
  await links?.close();
  links = undefined;
});

/** Exit status and standard output of a command in a host. */
async function output(host: string, command: readonly string[]): Promise<{ code: number | null; text: string }> {
  const child = links!.run(host, command, { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout!.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, text };
}

/** Sends `count` packets of 1,000 bytes from origin to client. Returns the client's own counters. */
async function sendPackets(
  count: number,
  perSec: number,
): Promise<{ packets: number; ipBytes: number; delayMs: { p0: number } }> {
  const program = links!.words("client")[0]!;
  const receiver = links!.run("client", [program, "probe", "udp-receive", "5000", "3000"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  const ready = new Promise<void>((resolve) =>
    receiver.stdout!.on("data", (chunk: Buffer) => ((text += chunk.toString()), resolve())),
  );
  const ended = new Promise((resolve) => receiver.once("close", resolve));
  await ready;
  await output("origin", [
    program,
    "probe",
    "udp-send",
    links!.address("client"),
    "5000",
    String(count),
    "1000",
    String(perSec),
  ]);
  await ended;
  return JSON.parse(text.trim().split("\n")[1]!);
}

/** Fills a TCP connection from origin to `host` for `seconds`. Returns the sender's report. */
async function sendStream(host: string, seconds: number): Promise<unknown> {
  const program = links!.words("client")[0]!;
  const receiver = links!.run(host, [program, "probe", "tcp-receive", "5001"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise((resolve) => receiver.once("close", resolve));
  await new Promise((resolve) => receiver.stdout!.on("data", resolve));
  const { text } = await output("origin", [
    program,
    "probe",
    "tcp-send",
    links!.address(host),
    "5001",
    String(seconds),
  ]);
  await ended;
  return JSON.parse(text);
}

test("emulator: the model's own checks pass (rate, queue, loss, jitter, MTU)", async () => {
  const { stdout } = await promisify(execFile)(await buildCore(), ["selftest"]);
  expect(stdout).toMatch(/^\d+ passed, 0 failed\n$/);
});

test("links: the receiver misses exactly the packets that the emulator counts as lost", async () => {
  links = await startLinks({
    seed: 5,
    hosts: { client: null, origin: { link: { delay: "20 ms", up: { loss: "1 %" } } } },
  });
  const { packets, ipBytes, delayMs } = await sendPackets(3_000, 3_000);
  const { hosts } = await links.stats();
  const { up } = hosts["origin"]!;
  expect(up.dropLoss).toBeGreaterThan(0);
  expect(up).toMatchObject({ dropQueue: 0, dropCut: 0, dropMtu: 0 });
  expect(up.inPackets).toBe(up.outPackets + up.dropLoss);
  // The sender ends with up to 20 short packets that the receiver does not count.
  expect(up.inPackets).toBeGreaterThan(3_000);
  expect(up.inPackets).toBeLessThanOrEqual(3_020);
  expect(3_000 - packets).toBeGreaterThan(0);
  expect(3_000 - packets).toBeLessThanOrEqual(up.dropLoss);
  expect(3_000 - packets).toBeGreaterThanOrEqual(up.dropLoss - 20);
  expect(ipBytes).toBe(packets * 1_000);
  expect(delayMs.p0).toBeGreaterThanOrEqual(20);
});

test("links: a host that is cut off is unreachable until the cut ends", async () => {
  links = await startLinks({ hosts: { client: null, origin: null } });
  const program = links.words("client")[0]!;
  await links.set("origin", { cut: true });
  await output("origin", [program, "probe", "udp-send", links.address("client"), "5000", "30", "1000", "0"]);
  const { hosts } = await links.stats();
  expect(hosts["origin"]!.up).toMatchObject({ inPackets: 50, outPackets: 0, dropCut: 50 });
  expect(hosts["client"]!.down.inPackets).toBe(0);
  await links.set("origin", { cut: false });
  expect((await sendPackets(50, 1_000)).packets).toBe(50);
});

test("links: a command gets the hosts' names, its host's congestion control, and its own exit status", async () => {
  links = await startLinks({
    hosts: { client: null, origin: { tcp: { congestion: "reno", slowStartAfterIdle: false }, link: { mtu: 1_200 } } },
  });
  expect(await output("client", ["sh", "-c", "echo $HOST_ORIGIN; exit 7"])).toEqual({ code: 7, text: "10.99.0.2\n" });
  const read = (file: string) => output("origin", ["cat", file]).then(({ text }) => text.trim());
  expect(await read("/proc/sys/net/ipv4/tcp_slow_start_after_idle")).toBe("0");
  expect(await read("/etc/hosts")).toMatch(/^10\.99\.0\.1 client\n10\.99\.0\.2 origin$/m);
  const sent = await sendStream("client", 0.2);
  expect(sent).toMatchObject({ congestion: "reno", mss: 1_148 });
});

test("links: servers reach each other past their links, in pieces as large as a network card takes", async () => {
  links = await startLinks({
    backbone: { delay: 1 },
    hosts: { client: null, origin: { tcp: { congestion: "reno" }, link: { mtu: 1_200 } }, proxy1: null },
  });
  const sent = await sendStream("proxy1", 0.3);
  expect(sent).toMatchObject({ congestion: "reno", mss: 1_448 });
  const { hosts } = await links.stats();
  const { backbone, up } = hosts["origin"]!;
  expect([up.inPackets, hosts["proxy1"]!.up.inPackets, hosts["proxy1"]!.down.inPackets]).toEqual([0, 0, 0]);
  expect(backbone.outBytes / backbone.outPackets).toBeGreaterThan(3_000);
});

test("links: an unknown congestion control is refused with a list of the kernel's own", async () => {
  const starting = startLinks({ hosts: { client: { tcp: { congestion: "none_such" } } } });
  await expect(starting).rejects.toThrow(LinksError);
  await expect(starting).rejects.toThrow(
    /host client: this kernel has no TCP congestion control "none_such"; it offers: .*reno/,
  );
});

/** PIDs of the processes in the PID namespace `inode`, as this process sees them. */
async function processesIn(inode: string): Promise<string[]> {
  const { stdout } = await promisify(execFile)("ps", ["-e", "-o", "pid="]);
  return stdout
    .split("\n")
    .map((line) => line.trim())
    .filter((pid) => pid !== "" && namespaceOf(pid) === inode);
}

function namespaceOf(pid: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return undefined;
  }
}

/** Polls, because the kernel takes a moment to end processes. */
async function untilNoneIn(inode: string): Promise<void> {
  while ((await processesIn(inode)).length > 0) await new Promise((resolve) => setTimeout(resolve, 50));
}

const DAEMON =
  "setsid sh -c 'trap \"\" TERM HUP INT; while true; do sleep 1; done' >/dev/null 2>&1 & readlink /proc/self/ns/pid";

test("links: closing ends every process in the hosts, even one that ignores signals", async () => {
  links = await startLinks({ hosts: { client: null } });
  const inode = (await output("client", ["sh", "-c", DAEMON])).text.trim();
  expect((await processesIn(inode)).length).toBeGreaterThan(1);
  await links.close();
  await untilNoneIn(inode);
});

test("links: no process is left after SIGKILL of the program that started them", async () => {
  const script = `
    const { spawn } = require("node:child_process");
    const core = spawn(process.argv[1], ["serve"], { stdio: ["pipe", "pipe", "inherit"] });
    const lines = [];
    require("node:readline").createInterface({ input: core.stdout }).on("line", (line) => {
      lines.push(JSON.parse(line));
      if (lines.length < 3) return;
      const [{ pid }, , { hosts }] = lines;
      const command = ["sh", "-c", ${JSON.stringify(DAEMON)}];
      const stdio = ["ignore", "inherit", "inherit"];
      spawn(process.argv[1], ["enter", String(pid), String(hosts.client), ...command], { stdio });
    });
    core.stdin.write("host client 10.99.0.1 1500 0 - 1\\nup\\n");`;
  const parent = spawn(process.execPath, ["-e", script, await buildCore()], { stdio: ["ignore", "pipe", "inherit"] });
  const inode = await new Promise<string>((resolve) => {
    parent.stdout!.once("data", (text: Buffer) => resolve(text.toString().trim()));
    parent.once("close", () => resolve(""));
  });
  expect(inode).toMatch(/^pid:\[\d+\]$/);
  expect((await processesIn(inode)).length).toBeGreaterThan(1);
  parent.kill("SIGKILL");
  await untilNoneIn(inode);
});

test("links: the command line names a scenario file that cannot be read", async () => {
  const main = path.resolve(__dirname, "../dist/main.js");
  const refused = await promisify(execFile)(process.execPath, [main, "/no/such.yaml", "--", "true"]).catch(
    (error: { code: number; stderr: string }) => error,
  );
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("/no/such.yaml") });
});
