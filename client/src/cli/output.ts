/**
 * Where bytes go: a file, standard output, a fifo or a device, or nowhere. A write ends at the first signal, also when
 * nobody reads.
 */
import { constants, openSync } from "node:fs";
import { access, open, readFile, readlink, realpath, stat } from "node:fs/promises";
import net from "node:net";
import path from "node:path";
import type { Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { Exit, STATUS } from "./exit";
import { codeOf, fileFault } from "./faults";
import { stopped, unlessStopped } from "./signals";
import { say } from "./terminal";

/** The status of a program that a closed pipe ended: 128 + SIGPIPE. */
const STATUS_PIPE = 141;
const READER_EVERY_MS = 100;
const STDOUT_NAMES = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

export const isStandardOutput = (name: string): boolean => STDOUT_NAMES.includes(name);

/** A target that takes bytes as they come. */
export interface StreamOutput {
  write(piece: Uint8Array): Promise<void>;
  /** Resolves when the target has taken all bytes. */
  finish(): Promise<void>;
  close(): void;
}

export type Target = { kind: "file"; path: string } | { kind: "stream"; output: StreamOutput };

/** Finds out what is at `name`, and opens it unless it is a file. Throws an Exit if nothing can be written there. */
export async function openTarget(name: string): Promise<Target> {
  if (isStandardOutput(name)) return { kind: "stream", output: await standardOutput() };
  try {
    const there = await stat(name).catch((error: unknown) => {
      if (codeOf(error) !== "ENOENT") throw error;
    });
    if (there === undefined) return { kind: "file", path: await newPath(name) };
    if (there.isDirectory()) throw Object.assign(new Error(), { code: "EISDIR" });
    if (there.isSocket()) throw new Exit(STATUS.failed, `Cannot write ${name}: it is a socket.`);
    if (there.isFile()) return { kind: "file", path: await existingPath(name) };
    return { kind: "stream", output: there.isFIFO() ? await fifo(name) : await device(name) };
  } catch (error) {
    throw fileFault("write", name, error);
  }
}

/** A new file. The target of a dangling symbolic link is made, and the link stays. */
async function newPath(name: string): Promise<string> {
  const linked = await readlink(name).catch(() => undefined);
  if (linked !== undefined) return newPath(path.resolve(path.dirname(name), linked));
  await access(path.dirname(path.resolve(name)), constants.W_OK | constants.X_OK);
  return name;
}

async function existingPath(name: string): Promise<string> {
  const real = await realpath(name);
  await access(real, constants.W_OK);
  await access(path.dirname(real), constants.W_OK | constants.X_OK);
  return real;
}

/** Node opens the null device for reading and writing where a standard stream is closed, and nothing tells of it. */
async function isClosed(): Promise<boolean> {
  const there = await stat("/dev/fd/1").catch(() => undefined);
  const nothing = await stat("/dev/null").catch(() => undefined);
  if (!there?.isCharacterDevice() || there.rdev !== nothing?.rdev) return false;
  const info = await readFile("/proc/self/fdinfo/1", "utf8").catch(() => "");
  const flags = parseInt(/^flags:\s*([0-7]+)/m.exec(info)?.[1] ?? "1", 8);
  return (flags & constants.O_RDWR) !== 0;
}

async function standardOutput(): Promise<StreamOutput> {
  if (await isClosed())
    throw new Exit(STATUS.failed, "Standard output is closed: name a file with --output, or /dev/null for none.");
  return fromStream(process.stdout, "standard output");
}

/** Waits for a reader. A plain open would wait where no signal can end it. */
async function fifo(name: string): Promise<StreamOutput> {
  for (let tries = 0; ; tries++) {
    try {
      const fd = openSync(name, constants.O_WRONLY | constants.O_NONBLOCK);
      return fromStream(new net.Socket({ fd, readable: false, writable: true }), name);
    } catch (error) {
      if (codeOf(error) !== "ENXIO") throw error;
      if (tries === 0) say(`Waiting for a reader of ${name}.\n`);
      await sleep(READER_EVERY_MS, undefined, { signal: stopped }).catch(() => stopped.throwIfAborted());
    }
  }
}

async function device(name: string): Promise<StreamOutput> {
  const handle = await open(name, "w");
  return {
    write: async (piece) => {
      for (let done = 0; done < piece.length;) done += (await handle.write(piece, done)).bytesWritten;
    },
    finish: () => handle.close(),
    close: () => void handle.close().catch(() => undefined),
  };
}

/** Throws an Exit as soon as the stream has failed, or at the first signal. */
function fromStream(stream: Writable, name: string): StreamOutput {
  let takenBytes = 0;
  let fail!: (error: Exit) => void;
  const failed = new Promise<never>((_, reject) => (fail = reject));
  failed.catch(() => undefined);
  stream.on("error", (error) => {
    const fault = fileFault("write", name, error);
    const isGone = codeOf(error) === "EPIPE" || codeOf(error) === "ECONNRESET";
    fail(isGone ? new Exit(STATUS_PIPE, `${fault.message} ${takenBytes} bytes were written before.`) : fault);
  });
  const write = (piece: Uint8Array): Promise<void> =>
    unlessStopped(
      Promise.race([
        failed,
        new Promise<void>((resolve) => {
          stream.write(piece, (error) => {
            if (error) return;
            takenBytes += piece.length;
            resolve();
          });
        }),
      ]),
    );
  return {
    write,
    finish: () => write(new Uint8Array(0)),
    close: () => void (stream === process.stdout || stream.destroy()),
  };
}
