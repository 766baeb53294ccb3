/**
 * Child processes of a local fleet: starts one, waits for its ready line, stops it, tells why it died. Every service
 * prints one JSON line {"ready":true,"url":...} on stdout and ends on SIGTERM. It also ends when this process does.
 */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { createWriteStream } from "node:fs";
import path from "node:path";

const READY_MS_MAX = 30_000;
/** A proxy drains for up to 5 s. After this time it is killed. */
const STOP_MS_MAX = 8_000;
/** Ends a service with this process. The service's descriptor 3 is the pipe that tells it. */
const BOUND_WORDS = ["--import", path.resolve(__dirname, "../../../infra/end-with-starter.mjs")];
const TAIL_CHARACTERS = 2_000;

export interface ServiceOptions {
  name: string;
  /** Absolute path of the script that node runs. */
  script: string;
  env: Record<string, string>;
  /** Everything the process prints goes here. */
  logFile: string;
  /** Words before node, such as those that enter a host of lab/links. The process then leads its own session. */
  through?: readonly string[];
}

export interface ServiceEnd {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface Service {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
  /** Resolves when the process has ended, for any reason. */
  readonly ended: Promise<ServiceEnd>;
  /** True after stop or kill was called, so that the end is expected. */
  readonly stopping: boolean;
  /** The last lines it printed. */
  tail(): string;
  /** Sends SIGTERM, then SIGKILL if the process does not end in time. */
  stop(): Promise<void>;
  /** Sends SIGKILL, to play a crash. */
  kill(): Promise<void>;
}

const running = new Set<ChildProcess>();
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));

/** Starts a service. Resolves when it is ready. Rejects with its last lines if it ends first or takes too long. */
export function startService(options: ServiceOptions): Promise<Service> {
  const [program, ...words] = [...(options.through ?? []), process.execPath, ...BOUND_WORDS, options.script];
  const child = spawn(program!, words, {
    env: { ...process.env, ...options.env },
    stdio: ["ignore", "pipe", "pipe", "pipe"],
    detached: options.through !== undefined,
  });
  running.add(child);
  const ended = new Promise<ServiceEnd>((resolve) => {
    child.once("error", () => resolve({ code: null, signal: null }));
    child.once("close", (code, signal) => resolve({ code, signal }));
  });
  void ended.then(() => running.delete(child));
  const output = collectOutput(child, options.logFile);
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new Error(`${options.name} was not ready after ${READY_MS_MAX / 1000} s:\n${output.tail()}`));
    }, READY_MS_MAX);
    void output.ready.then((url) => {
      clearTimeout(timer);
      resolve(serviceOf(child, options.name, url, ended, output.tail));
    });
    void ended.then((end) => {
      clearTimeout(timer);
      reject(new Error(`${options.name} ended before it was ready (${describeEnd(end)}):\n${output.tail()}`));
    });
  });
}

export function describeEnd(end: ServiceEnd): string {
  return end.signal ? `signal ${end.signal}` : `exit code ${end.code ?? "unknown"}`;
}

function collectOutput(child: ChildProcess, logFile: string): { ready: Promise<string>; tail: () => string } {
  const log = createWriteStream(logFile, { flags: "a" });
  let recent = "";
  let unread = "";
  const ready = new Promise<string>((resolve) => {
    const take = (chunk: Buffer): void => {
      log.write(chunk);
      recent = (recent + chunk.toString()).slice(-TAIL_CHARACTERS);
    };
    child.stderr?.on("data", take);
    child.stdout?.on("data", (chunk: Buffer) => {
      take(chunk);
      unread += chunk.toString();
      for (let at = unread.indexOf("\n"); at >= 0; at = unread.indexOf("\n")) {
        const url = readyUrl(unread.slice(0, at));
        if (url) resolve(url);
        unread = unread.slice(at + 1);
      }
    });
    child.once("close", () => log.end());
  });
  return { ready, tail: () => recent.trimEnd() };
}

/** The URL in a ready line, or undefined for any other line. */
export function readyUrl(line: string): string | undefined {
  try {
    const value = JSON.parse(line) as { ready?: unknown; url?: unknown } | null;
    return value?.ready === true && typeof value.url === "string" ? value.url : undefined;
  } catch {
    return undefined;
  }
}

function serviceOf(
  child: ChildProcess,
  name: string,
  url: string,
  ended: Promise<ServiceEnd>,
  tail: () => string,
): Service {
  let stopping = false;
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    stopping = true;
    child.kill(signal);
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS_MAX);
    await ended;
    clearTimeout(timer);
  };
  return {
    name,
    url,
    pid: child.pid ?? 0,
    ended,
    get stopping() {
      return stopping;
    },
    tail,
    stop: () => end("SIGTERM"),
    kill: () => end("SIGKILL"),
  };
}
