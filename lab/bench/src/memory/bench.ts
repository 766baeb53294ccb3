/**
 * `npm run bench -- memory`: the most memory that `tributary get` takes, by mode, for one long file on loopback. Exit
 * status 0 measured, 1 could not measure, 2 bad option.
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { repoRoot, startFleet, type Fleet } from "@tributary/lab-stack";
import { countOf, optionsOf, runBench, TEXT, UsageError } from "../kit/command";
import { table } from "../kit/table";

const USAGE = `npm run bench -- memory [--mb N] [--modes A,B]
  --mb N        of the file, in MB (default 10000)
  --modes A,B   (default direct,coded)`;
const MB = 1e6;
const FLOOR_MB = 300;
const EVERY_MS = 50;

interface Run {
  mode: string;
  peakMb: number;
  sec: number;
}

/** The peak is the kernel's own count (VmHWM), read until the process ends. */
function measure(fleet: Fleet, mode: string, bytes: number): Promise<Run> {
  const cli = path.join(repoRoot, "client/dist/cli.js");
  const url = `${fleet.sample.url}/__size/${bytes}`;
  const words = ["--mode", mode, "--origo", fleet.origo.url, "--no-fallback", "--quiet", "-o", "/dev/null"];
  const startedMs = performance.now();
  const child = spawn(process.execPath, [cli, "get", url, ...words], { stdio: ["ignore", "inherit", "inherit"] });
  let peakMb = 0;
  const timer = setInterval(() => {
    const [, kib] = /^VmHWM:\s+(\d+) kB/m.exec(statusOf(child.pid!)) ?? [];
    peakMb = Math.max(peakMb, (Number(kib ?? 0) * 1024) / MB);
  }, EVERY_MS);
  return new Promise((resolve, reject) => {
    child.once("close", (code) => {
      clearInterval(timer);
      if (code === 0 && peakMb > 0) resolve({ mode, peakMb, sec: (performance.now() - startedMs) / 1000 });
      else reject(new Error(`get in mode ${mode} ended with ${code}, and its memory was ${peakMb} MB`));
    });
  });
}

/** Empty once the process has ended. */
function statusOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, "utf8");
  } catch {
    return "";
  }
}

async function main(): Promise<number> {
  const words = optionsOf({ mb: TEXT, modes: TEXT });
  if (process.platform !== "linux") throw new UsageError("this bench reads /proc, so it needs Linux");
  const mb = countOf("mb", words.mb, 1_000_000) ?? 10_000;
  const fleet = await startFleet({ proxyCount: 4, ports: "any" });
  const runs: Run[] = [];
  try {
    for (const mode of (words.modes ?? "direct,coded").split(",")) runs.push(await measure(fleet, mode, mb * MB));
  } finally {
    await fleet.stop();
  }
  const rows = runs.map(({ mode, peakMb, sec }) => [
    mode,
    peakMb.toFixed(0),
    peakMb <= FLOOR_MB ? "reached" : "NOT reached",
    sec.toFixed(0),
  ]);
  console.log(`${mb} MB, four proxies\n\n${table(["mode", "peak (MB)", `goal ${FLOOR_MB} MB`, "time (s)"], rows)}`);
  return 0;
}

runBench(USAGE, main);
