/** Starts programs with a wrong clock. The first use builds skew.cc. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { repoRoot } from "@tributary/lab-stack";

export const DAY_SEC = 24 * 3600;

let folder: string | undefined;

/**
 * Environment variables for a process whose clock is ahead by the given seconds, or behind if they are negative; from
 * its start, or from a jump so many seconds later. Throws without a C++ compiler or without Linux.
 */
export function clockOff(seconds: number, jumpAfterSec = 0): Record<string, string> {
  if (process.platform !== "linux") throw new Error(`clocks can be put off on Linux only, this is ${process.platform}`);
  if (folder === undefined) {
    const made = mkdtempSync(path.join(os.tmpdir(), "tributary-skew-"));
    process.once("exit", () => rmSync(made, { recursive: true, force: true }));
    execFileSync(
      "g++",
      [
        "-shared",
        "-fPIC",
        "-O2",
        "-Wall",
        "-Werror",
        "-o",
        path.join(made, "skew.so"),
        path.join(repoRoot, "test/skew.cc"),
      ],
      { stdio: ["ignore", "ignore", "inherit"] },
    );
    folder = made;
  }
  return {
    LD_PRELOAD: path.join(folder, "skew.so"),
    CLOCK_OFF_SEC: String(seconds),
    CLOCK_JUMP_AFTER_SEC: String(jumpAfterSec),
  };
}
