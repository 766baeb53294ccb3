/**
 * The emulator process `links-core serve`: builds it, starts it and speaks its line protocol (lab/links/core/serve.cc).
 * It knows no scenarios.
 */
import { execFile, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import path from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const BUILD_SCRIPT = path.resolve(__dirname, "../build.mjs");
const END_MS_MAX = 5_000;

/** This machine lacks something, or the emulator refuses something. The message is for a person. */
export class LinksError extends Error {
  override name = "LinksError";
}

/** Resolves with the path of the built program. Rejects with a sentence that names what is missing. */
export async function buildCore(): Promise<string> {
  try {
    return (await promisify(execFile)(process.execPath, [BUILD_SCRIPT])).stdout.trim();
  } catch (error) {
    throw new LinksError((error as { stderr?: string }).stderr?.trim() || String(error));
  }
}

export class Core {
  /** The process whose /proc/PID/ns and /proc/PID/fd lead into the namespaces. */
  pid = 0;
  readonly ended: Promise<void>;
  readonly #waiting: { resolve: (answer: Record<string, unknown>) => void; reject: (error: Error) => void }[] = [];
  #complaints = "";
  #gone = false;

  readonly #child: ChildProcess;

  private constructor(
    readonly program: string,
    child: ChildProcess,
  ) {
    this.#child = child;

    createInterface({ input: child.stdout! }).on("line", (line) =>
      this.#take(JSON.parse(line) as Record<string, unknown>),
    );
    child.stderr!.on("data", (text: Buffer) => (this.#complaints = (this.#complaints + text.toString()).slice(-2_000)));
    child.stdin!.on("error", () => undefined);
    this.ended = new Promise((resolve) => child.once("close", () => resolve()));
    void this.ended.then(() => this.#fail());
  }

  static async start(): Promise<Core> {
    const program = await buildCore();
    // It has its own process session, so that Ctrl-C in a terminal ends the command and not the network under it.
    const core = new Core(program, spawn(program, ["serve"], { stdio: ["pipe", "pipe", "pipe"], detached: true }));
    const first = new Promise<Record<string, unknown>>((resolve, reject) => core.#waiting.push({ resolve, reject }));
    core.pid = (await first)["pid"] as number;
    return core;
  }

  /** Resolves with the answer to one line. Rejects with LinksError if it is refused or the emulator has ended. */
  ask(line: string): Promise<Record<string, unknown>> {
    if (this.#gone) return Promise.reject(this.#endError());
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#child.stdin!.write(`${line}\n`);
    });
  }

  /** Words to put before a command to run it in the host whose network namespace is `descriptor`. */
  enterWords(descriptor: number): string[] {
    return [this.program, "enter", String(this.pid), String(descriptor)];
  }

  /** Ends the emulator and every process in its namespaces. */
  async end(): Promise<void> {
    this.#child.stdin!.end();
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), END_MS_MAX);
    await this.ended;
    clearTimeout(timer);
  }

  #take(answer: Record<string, unknown>): void {
    const asked = this.#waiting.shift();
    if (typeof answer["error"] === "string") asked?.reject(new LinksError(answer["error"]));
    else asked?.resolve(answer);
  }

  #fail(): void {
    this.#gone = true;
    for (const { reject } of this.#waiting.splice(0)) reject(this.#endError());
  }

  #endError(): LinksError {
    return new LinksError(this.#complaints.trim() || "the link emulator has ended");
  }
}
