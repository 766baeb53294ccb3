/** `npm start`: what it prints, its options, and how it ends. */
import { readFileSync, readdirSync } from "node:fs";
import { startScript, stopScripts } from "./support";

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
