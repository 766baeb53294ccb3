/** `npm start`: what it prints, its options, and how it ends. */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { repoRoot } from "@tributary/lab-stack";
import { eventually, startScript, stopScripts } from "./support";

afterEach(stopScripts);

/** The processes whose parent is `pid`, by process id, which is the order of their start. */
const childrenOf = (pid: number): number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && parentOf(name) === pid)
    .map(Number)
    .sort((a, b) => a - b);

/** The second field after the command's closing parenthesis in /proc/PID/stat. */
function parentOf(pid: string): number | undefined {
  try {
    return Number(
      readFileSync(`/proc/${pid}/stat`, "utf8")
        .replace(/^.*\) /s, "")
        .split(" ")[1],
    );
  } catch {
    return undefined;
  }
}

const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

test.each([
  [["--bogus"], "unknown option --bogus"],
  [["--proxies", "0"], "from 1 to 18"],
  [["--proxies", "19"], "from 1 to 18"],
  [["--proxies", "two"], "from 1 to 18"],
  [["--rate", "-1"], "whole number of bytes"],
  [["--rate"], "--rate needs a value"],
  [["--allow", "http://x/"], "HOST or HOST:PORT"],
  [["--allow", "x:65536"], "HOST or HOST:PORT"],
  [["--browser", "--once"], "exclude each other"],
])("npm start -- %j prints a sentence and ends with exit status 2", async (words, sentence) => {
  const run = startScript("infra/start.mjs", ...words);
  expect(await run.ended).toBe(2);
  expect(run.output()).toContain(sentence);
});

test("the check of a file of settings names what the compose file does not know, and nothing else", async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "tributary-settings-"));
  const check = async (...lines: string[]): Promise<[number | null, string]> => {
    const file = path.join(folder, "fleet.env");
    writeFileSync(file, lines.join("\n"));
    const run = startScript("infra/check-settings.mjs", file);
    return [await run.ended, run.output()];
  };
  try {
    const right = ["# X=1", "PUBLIC_ADDRESS=198.51.100.7", "ALLOW_HOSTS='a.example'", "", "COMPOSE_PROJECT_NAME=x"];
    expect(await check(...right)).toEqual([0, expect.stringContaining("all 3 names")]);
    const [status, told] = await check("export RETENTION_DAY=30", "ALLOW_HOST = a", "PLACE: 1,2", "place=a=b");
    const named = [...told.matchAll(/(\S+) is not a setting/g)].map(([, name]) => name);
    expect([status, ...named]).toEqual([1, "RETENTION_DAY", "ALLOW_HOST", "place"]);
    rmSync(path.join(folder, "fleet.env"));
    expect(await startScript("infra/check-settings.mjs", path.join(folder, "fleet.env")).ended).toBe(2);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test.each(["SIGINT", "SIGTERM"] as const)(
  "npm start prints addresses that answer, reports a dead proxy, and ends at %s",
  async (signal) => {
    const run = startScript("infra/start.mjs", "--proxies", "2", "--allow", "example.org:8443");
    await run.line(/^running; Ctrl-C/);
    const addresses = [
      ...run
        .output()
        .matchAll(
          /^(origo|proxy proxy-1|proxy proxy-2|player hls\.js|player dash\.js|player shaka|player plain): (http\S+)$/gm,
        ),
    ];
    expect(addresses).toHaveLength(7);
    for (const [, name, url] of addresses) {
      expect({ name, status: (await fetch(name?.startsWith("proxy") ? `${url}/healthz` : `${url}`)).status }).toEqual({
        name,
        status: 200,
      });
    }
    expect(run.output()).toMatch(/^publish: npm run -s tributary -- publish PATH --origo http\S+ --code publisher-/m);
    const children = childrenOf(run.pid);
    expect(children).toHaveLength(4);
    process.kill(children.at(-1) ?? 0, "SIGKILL");
    await run.line(/^proxy-2 \(process \d+\) ended by itself: signal SIGKILL/);
    run.signal(signal);
    expect(await run.ended).toBe(0);
    expect(run.output()).toMatch(/stopped\n$/);
    expect(children.filter(alive)).toEqual([]);
  },
);

/** A script that runs `npm start` and waits for it. The script leads a session and has no terminal. */
async function npmStart(): Promise<{ script: number; npm: number; starter: number; all: number[] }> {
  const script = spawn("sh", ["-c", "npm start -- --proxies 1; true"], { cwd: repoRoot, detached: true });
  let text = "";
  for (const stream of [script.stdout, script.stderr]) stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
  await eventually(
    () => text,
    (seen) => /^running; Ctrl-C/m.test(seen),
    120,
  );
  const pid = script.pid ?? 0;
  // npm, the starter, Origo, the sample site and a proxy.
  const [npm = 0, starter = 0, ...services] = await eventually(
    () => descendantsOf(pid),
    (all) => all.length === 5,
    20,
  );
  expect(commandOf(starter)).toContain("infra/start.mjs");
  expect(services).toHaveLength(3);
  return { script: pid, npm, starter, all: [pid, npm, starter, ...services] };
}

const descendantsOf = (pid: number): number[] => childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);
const commandOf = (pid: number): string => readFileSync(`/proc/${pid}/cmdline`, "utf8");

describe("npm start leaves nothing behind", () => {
  test.each([
    ["script", "SIGTERM"],
    ["script", "SIGKILL"],
    ["npm", "SIGINT"],
    ["npm", "SIGTERM"],
    ["npm", "SIGHUP"],
    ["npm", "SIGKILL"],
    ["starter", "SIGTERM"],
    ["starter", "SIGHUP"],
    ["starter", "SIGKILL"],
  ] as const)("when %s gets %s", async (who, signal) => {
    const started = await npmStart();
    try {
      process.kill(started[who], signal);
      expect(
        await eventually(
          () => started.all.filter(alive),
          (left) => left.length === 0,
          20,
        ),
      ).toEqual([]);
    } finally {
      for (const pid of started.all.filter(alive)) process.kill(pid, "SIGKILL");
    }
  });

  test("and goes on when the shell that started it in the background has ended", async () => {
    const script = "nohup npm start -- --proxies 1 >/dev/null 2>&1 & echo $!";
    const shell = spawn("sh", ["-c", script], { cwd: repoRoot, stdio: ["ignore", "pipe", "ignore"], detached: true });
    let printed = "";
    shell.stdout.on("data", (chunk: Buffer) => (printed += chunk.toString()));
    await new Promise((resolve) => shell.once("close", resolve));
    const npm = Number(printed);
    try {
      const services = await eventually(
        () => descendantsOf(npm),
        (all) => all.length >= 4,
        60,
      );
      await new Promise((resolve) => setTimeout(resolve, 3000));
      expect([npm, ...services].filter((pid) => !alive(pid))).toEqual([]);
      process.kill(npm, "SIGTERM");
      expect(
        await eventually(
          () => [npm, ...services].filter(alive),
          (left) => left.length === 0,
          20,
        ),
      ).toEqual([]);
    } finally {
      for (const pid of [npm, ...descendantsOf(npm)].filter(alive)) process.kill(pid, "SIGKILL");
    }
  });
});
