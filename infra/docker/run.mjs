/**
 * Small helpers of the compose test: run a program, wait for a condition, print numbered steps.
 * Not a library: nothing outside infra/ uses it. It imports only Node's own modules.
 */
import { spawn } from "node:child_process";

/** A failure that a person can act on: printed as it is, without a stack. */
export class TestFailure extends Error {}

const running = new Set();

/**
 * Runs a program to its end. Its output is kept and becomes part of the error when it fails.
 * @param {string} program
 * @param {string[]} args
 * @param {{ input?: string, cwd?: string, env?: NodeJS.ProcessEnv, allowFailure?: boolean, timeoutMs?: number }}
 * [options]
 * @returns {Promise<{ code: number, stdout: string, stderr: string }>}
 */
export function run(program, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: options.cwd,
      env: options.env ?? process.env,
      stdio: ["pipe", "pipe", "pipe"],
    });
    running.add(child);
    const output = { stdout: "", stderr: "" };
    const timer = options.timeoutMs ? setTimeout(() => child.kill("SIGKILL"), options.timeoutMs) : undefined;
    for (const name of ["stdout", "stderr"])
      child[name].setEncoding("utf8").on("data", (text) => (output[name] += text));
    child.stdin.on("error", () => {});
    child.stdin.end(options.input ?? "");
    const settle = (code, problem) => {
      clearTimeout(timer);
      running.delete(child);
      if (code === 0 || (options.allowFailure && !problem)) return resolve({ code, ...output });
      const said = (output.stderr + output.stdout).trim().split("\n").slice(-40).join("\n");
      reject(new TestFailure(`\`${[program, ...args].join(" ")}\` ${problem ?? `ended with ${code}`}\n${said}`));
    };
    child.on("error", (error) => settle(127, `could not start: ${error.message}`));
    child.on("close", (code, signal) => settle(code ?? 128, signal ? `was ended by ${signal}` : undefined));
  });
}

/** Stops every program that run() waits for, so that a clean-up does not race with a running step. */
export function stopRunning() {
  for (const child of running) child.kill("SIGTERM");
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Calls `check` until it returns a truthy value, and returns that value.
 * @template T
 * @param {string} what what is waited for, for the error
 * @param {() => Promise<T>} check
 */
export async function waitFor(what, check, timeoutMs = 60_000, everyMs = 250) {
  const deadline = Date.now() + timeoutMs;
  let last = "no answer yet";
  for (;;) {
    try {
      const value = await check();
      if (value) return value;
    } catch (error) {
      last = error.message;
    }
    if (Date.now() > deadline) throw new TestFailure(`${what}: not within ${timeoutMs / 1000} s (${last})`);
    await sleep(everyMs);
  }
}

/** Runs the steps of a test in order, prints each with its seconds, and counts them. */
export class Steps {
  passed = 0;
  failed = 0;

  /**
   * @template T
   * @param {string} title
   * @param {() => Promise<T>} action
   */
  async step(title, action) {
    const startedMs = Date.now();
    const seconds = () => `${((Date.now() - startedMs) / 1000).toFixed(1)} s`;
    try {
      const value = await action();
      this.passed += 1;
      console.log(`ok    ${title}${typeof value === "string" ? `: ${value}` : ""}  (${seconds()})`);
      return value;
    } catch (error) {
      this.failed += 1;
      console.log(`FAIL  ${title}  (${seconds()})`);
      throw error;
    }
  }
}
