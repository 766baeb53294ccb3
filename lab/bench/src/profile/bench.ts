/**
 * `npm run bench -- profile`: where the time of a download goes, from the click to the last byte, and where the
 * processor's time goes meanwhile on both sides. Exit status 0 measured, 1 could not measure, 2 bad option.
 */
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import type { DownloadRecord } from "@tributary/contract/schema";
import { repoRoot, startFleet } from "@tributary/lab-stack";
import { optionsOf, runBench } from "../kit/command";
import { machineText } from "../kit/machine";
import { median } from "../kit/figures";
import { table } from "../kit/table";
import { PAUSE_MS, spentOf, type CpuProfile, type Spent } from "./profile";

const USAGE = "npm run bench -- profile (it takes no options)";
const PROXIES = 4;
/** Low enough that four proxies and a client have time to spare on two processors. */
const RATE_BYTES_PER_SEC = 2_000_000;
const CHUNK_BYTES = 8_000_000;
const DOWNLOADS = 13;
const MARGIN_MS = 200;
const RECORDER = path.join(repoRoot, "lab/bench/dist/profile/recorder.js");
const DRIVER = path.join(repoRoot, "lab/bench/dist/profile/driver.js");
const SHOWN_PARTS = 10;
const SHOWN_FUNCTIONS = 12;

interface Measured {
  client: Spent;
  proxies: Spent;
  /** The first record is on new sessions. */
  records: readonly DownloadRecord[];
}

async function measure(): Promise<Measured> {
  const folder = await mkdtemp(path.join(os.tmpdir(), "tributary-profile-"));
  mkdirSync(path.join(folder, "profiles"));
  const profiled = (name: string): Record<string, string> => ({
    NODE_OPTIONS: `--require ${RECORDER}`,
    PROFILE_FOLDER: path.join(folder, "profiles"),
    PROFILE_NAME: name,
  });
  const fleet = await startFleet({
    proxyCount: PROXIES,
    rateBytesPerSec: RATE_BYTES_PER_SEC,
    ports: "any",
    proxyEnv: () => profiled("proxy"),
  });
  try {
    const url = `${fleet.sample.url}/__size/${CHUNK_BYTES}.mp4`;
    const driver = spawn(process.execPath, [DRIVER, fleet.origo.url, url, String(PROXIES), String(DOWNLOADS)], {
      env: { ...process.env, ...profiled("client") },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const closed = new Promise((resolve) => driver.once("close", resolve));
    const records: DownloadRecord[] = [];
    for await (const line of createInterface({ input: driver.stdout })) {
      records.push(JSON.parse(line) as DownloadRecord);
      if (records.length === 1) setTimeout(() => emptied(path.join(folder, "profiles")), PAUSE_MS - MARGIN_MS);
    }
    const code = await closed;
    if (code !== 0) throw new Error(`the client ended with code ${String(code)}`);
    const failed = records.find(
      ({ outcome, fallback, netBytes }) => outcome !== "complete" || fallback !== null || netBytes !== CHUNK_BYTES,
    );
    if (failed)
      throw new Error(`a download failed: ${failed.error?.message ?? failed.fallback?.message ?? failed.outcome}`);
    return {
      client: spentOf(profilesOf(path.join(folder, "profiles"), "client")),
      proxies: spentOf(profilesOf(path.join(folder, "profiles"), "proxy")),
      records,
    };
  } finally {
    await fleet.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Forgets the profiles of the start and of the first download. */
function emptied(folder: string): void {
  rmSync(folder, { recursive: true });
  mkdirSync(folder);
}

const profilesOf = (folder: string, name: string): CpuProfile[] =>
  readdirSync(folder)
    .filter((file) => file.startsWith(`${name}-`))
    .map((file) => JSON.parse(readFileSync(path.join(folder, file), "utf8")) as CpuProfile);

/** Times of a record, in the order in which they pass. */
const STEPS: readonly [string, (record: DownloadRecord) => number | undefined][] = [
  ["the first session is open", ({ connectMs }) => connectMs],
  ["a proxy's first packet", ({ firstPacketMs }) => firstPacketMs],
  ["the answer's head is known", ({ headMs }) => headMs],
  ["first byte to the caller", ({ firstByteMs }) => firstByteMs],
  ["last byte to the caller", ({ durationMs }) => durationMs],
  ["all proxies have ended", ({ durationMs, closeMs }) => (closeMs === undefined ? undefined : durationMs + closeMs)],
];

function timeline([fresh, ...warm]: readonly DownloadRecord[]): string {
  const ms = (value: number | undefined): string =>
    value === undefined || Number.isNaN(value) ? "-" : value.toFixed(0);
  const limitMs = (1000 * CHUNK_BYTES) / (PROXIES * RATE_BYTES_PER_SEC);
  return table(
    ["ms after the request", "new sessions", `warm (median of ${warm.length})`],
    [
      ...STEPS.map(([what, of]) => [
        what,
        ms(fresh && of(fresh)),
        ms(median(warm.flatMap((record) => of(record) ?? []))),
      ]),
      ["for comparison: the chunk at the proxies' rates", ms(limitMs), ms(limitMs)],
    ],
  );
}

function costs(who: string, { busyMs, parts, functions }: Spent): string {
  const bytes = (DOWNLOADS - 1) * CHUNK_BYTES;
  const lines = (all: Spent["parts"], shown: number): string[][] =>
    all
      .slice(0, shown)
      .map(([name, ms]) => [name, `${((100 * ms) / busyMs).toFixed(1)} %`, ((ms * 1e6) / bytes).toFixed(2)]);
  return [
    `${who}: ${((busyMs * 1e6) / bytes).toFixed(1)} ms of processor time a megabyte of the chunk.`,
    table(["part", "share", "ms a MB"], lines(parts, SHOWN_PARTS)),
    table(["function", "share", "ms a MB"], lines(functions, SHOWN_FUNCTIONS)),
  ].join("\n\n");
}

function reportOf({ client, proxies, records }: Measured): string {
  return [
    `${machineText()}. The Node client downloads ${CHUNK_BYTES / 1e6} MB ${DOWNLOADS} times in mode coded, one after ` +
      `another, from ${PROXIES} proxies of ${RATE_BYTES_PER_SEC / 1e6} MB/s each over loopback. V8's profiler ` +
      "samples all threads of client and proxies, but not those of native libraries: QUIC, its encryption and " +
      "the system calls of WebTransport.",
    timeline(records),
    costs("Client", client),
    costs(`The ${PROXIES} proxies together`, proxies),
  ].join("\n\n");
}

async function main(): Promise<number> {
  optionsOf({});
  console.log(reportOf(await measure()));
  return 0;
}

runBench(USAGE, main);
