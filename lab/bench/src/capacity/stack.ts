/** What the bench measures: one proxy on its own cores, and on other cores the load generator and the origin. */
import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { LIMITS } from "@tributary/protocol";
import { repoRoot } from "@tributary/lab-stack";
import type { ProxyInfo } from "@tributary/client";
import { exitOf, linesOf } from "../kit/driver";
import { coresBusySec, coresIn, processorSecOf } from "../kit/machine";
import type { Look, Order, Setting } from "./generator";
import { parseMetrics, type Metrics } from "./metrics";

/** Lists as `taskset -c` takes them. */
export interface Cores {
  proxy: string;
  generator: string;
}

export interface Stack {
  /** Resolves when the generator has done it. */
  tell(order: Exclude<Order, { kind: "look" }>): Promise<void>;
  look(): Promise<Look>;
  /** Processor time so far of the proxy, and of the generator with the origin. */
  spent(): { proxy: Spent; generator: Spent };
  /** What the proxy says of itself now. */
  metrics(): Promise<Metrics>;
  stop(): Promise<void>;
}

export interface Spent {
  cores: number;
  /** Of the processes. */
  ownSec: number;
  /** What all programs used of these cores. */
  coresSec: number;
}

export interface StackOptions extends Omit<Setting, "proxy" | "originUrl"> {
  cores: Cores;
  /** Further variables of the proxy. */
  proxyEnv?: Readonly<Record<string, string>>;
}

const HOST = "127.0.0.1";
/** A server of videos keeps more of them than a default proxy, and more of their symbols. */
const CACHE_BYTES = 1024 * 1024 * 1024;
const CODER_BYTES = 512 * 1024 * 1024;
const SESSIONS_MAX = 4000;
/** Ends a process with this one: its descriptor 3 is the pipe that tells it. */
const BOUND_WORDS = ["--import", path.join(repoRoot, "infra/end-with-starter.mjs")];

interface Ready {
  url: string;
  webTransport?: ProxyInfo["webTransport"];
}

/** Rejects with what the proxy wrote when it does not start. */
export async function startStack({ cores, proxyEnv, ...setting }: StackOptions): Promise<Stack> {
  const folder = mkdtempSync(path.join(os.tmpdir(), "tributary-capacity-"));
  const logFile = path.join(folder, "proxy.log");
  const children: ChildProcess[] = [];
  const launch = (
    core: string,
    script: string,
    args: string[],
    env: Record<string, string>,
    log: number | "inherit",
  ) => {
    const words = ["-c", core, process.execPath, ...BOUND_WORDS, path.join(repoRoot, script), ...args];
    const child = spawn("taskset", words, {
      env: { ...process.env, HOST, ...env },
      stdio: ["pipe", "pipe", log, "pipe"],
    });
    child.stdin!.on("error", () => undefined);
    children.push(child);
    return child;
  };
  const stop = async (): Promise<void> => {
    for (const child of children) child.kill("SIGKILL");
    await Promise.all(children.map(exitOf));
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const origin = launch(cores.generator, "lab/bench/dist/capacity/origin.js", [], {}, "inherit");
    const originUrl = (JSON.parse(await linesOf(origin).next()) as Ready).url;
    const { host } = new URL(originUrl);
    // The proxy logs each request. A file of its own keeps that work off the generator's cores.
    const log = openSync(logFile, "w");
    const proxy = launch(
      cores.proxy,
      "proxy/dist/main.js",
      [],
      {
        PROXY_NAME: "capacity",
        ALLOW_HOSTS: host,
        ALLOW_PRIVATE_HOSTS: host,
        MAX_SESSIONS: String(SESSIONS_MAX),
        CACHE_BYTES: String(CACHE_BYTES),
        CODER_BYTES: String(CODER_BYTES),
        ...proxyEnv,
      },
      log,
    );
    closeSync(log);
    const ready = await linesOf(proxy)
      .next()
      .catch(() => {
        throw new Error(`the proxy did not start: ${readFileSync(logFile, "utf8").slice(-LIMITS.urlBytesMax)}`);
      });
    const { url, webTransport } = JSON.parse(ready) as Ready;
    const info: ProxyInfo = { id: "capacity", name: "capacity", url, ...(webTransport ? { webTransport } : {}) };
    const words = JSON.stringify({ ...setting, proxy: info, originUrl } satisfies Setting);
    const generator = launch(cores.generator, "lab/bench/dist/capacity/generator.js", [words], {}, "inherit");
    const answers = linesOf(generator);
    const ask = async (order: Order): Promise<Look | null> => {
      generator.stdin!.write(`${JSON.stringify(order)}\n`);
      return JSON.parse(await answers.next()) as Look | null;
    };
    return {
      tell: async (order) => void (await ask(order)),
      look: async () => (await ask({ kind: "look" }))!,
      spent: () => ({ proxy: spentBy(cores.proxy, [proxy]), generator: spentBy(cores.generator, [generator, origin]) }),
      metrics: async () => parseMetrics(await (await fetch(`${url}/metrics`)).text()),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function spentBy(list: string, children: readonly ChildProcess[]): Spent {
  const cores = coresIn(list);
  const ownSec = children.reduce((sum, { pid }) => sum + processorSecOf(pid!), 0);
  return { cores: cores.length, ownSec, coresSec: coresBusySec(cores) };
}
