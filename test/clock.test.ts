/**
 * Clients whose clock is wrong by a day, or jumps, with a fleet whose clocks are right. A browser checks certificates
 * by its own clock.
 */
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { execFile, spawn } from "node:child_process";
import type { DownloadRecord } from "@tributary/contract/schema";
import { clockOff, DAY_SEC } from "./skew";
import {
  findChromium,
  openBrowser,
  recordsOf,
  recordsSince,
  repoRoot,
  startFleet,
  type Fleet,
} from "@tributary/lab-stack";
import { eventually } from "./support";

let [fleet, folder] = [undefined as unknown as Fleet, ""];
beforeAll(async () => {
  fleet = await startFleet({ proxyCount: 1, ports: "any" });
  folder = await mkdtemp(path.join(os.tmpdir(), "tributary-clock-"));
});
afterAll(async () => {
  await fleet.stop();
  await rm(folder, { recursive: true, force: true });
});

/** A script that starts Chromium with a wrong clock. */
async function chromiumWith(offSec: number): Promise<string> {
  const words = Object.entries(clockOff(offSec)).map(([name, value]) => `${name}='${value}'`);
  const file = path.join(folder, `chromium${offSec}`);
  await writeFile(file, `#!/bin/sh\n${words.join(" ")} exec '${findChromium()!}' "$@"\n`);
  await chmod(file, 0o755);
  return file;
}

const sizeOf = (url: string): number => Number(/__size\/(\d+)/.exec(url)?.[1]);

test.each([
  ["webtransport", "ahead", DAY_SEC, 301_000],
  ["webtransport", "behind", -DAY_SEC, 302_000],
  ["webrtc", "ahead", DAY_SEC, 303_000],
  ["webrtc", "behind", -DAY_SEC, 304_000],
] as const)(
  "Chromium over %s: the proxy carries the download although the browser's clock is a day %s",
  async (transport, _word, offSec, size) => {
    const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 1, transport };
    const browser = await openBrowser({ headless: true, defaults, executable: await chromiumWith(offSec) });
    try {
      const page = await browser.newPage();
      await page.goto(`${fleet.sample.url}/`, { waitUntil: "load" });
      const aheadSec = ((await page.evaluate("Date.now()")) as number) / 1000 - Date.now() / 1000;
      expect(Math.abs(aheadSec - offSec)).toBeLessThan(60);
      const urlOf = (bytes: number): string => `${fleet.sample.url}/__size/${bytes}.mp4`;
      const get = (url: string): Promise<unknown> =>
        page.evaluate(
          `fetch(${JSON.stringify(url)}).then((answer) => answer.arrayBuffer()).then(({ byteLength }) => byteLength)`,
        );
      // The browser itself fetches the first files, and the extension compares them with what the proxies get.
      let bytes = size;
      const carried = async () => {
        expect(await get(urlOf(++bytes))).toBe(bytes);
        const records = await recordsSince(fleet, 0);
        return records.filter(
          ({ url, purpose, fallback }) =>
            sizeOf(url) > size && sizeOf(url) <= bytes && purpose === "request" && fallback === null,
        );
      };
      const [record] = await eventually(carried, (records) => records.length > 0, 60);
      expect(record).toMatchObject({ outcome: "complete" });
      expect(record!.proxies.map((proxy) => proxy.transport)).toEqual([transport]);
    } finally {
      await browser.close();
    }
  },
);

test.each([
  ["forwards", DAY_SEC],
  ["backwards", -DAY_SEC],
])(
  "the command line: its clock jumps %s by a day in mid-download, and the proxy carries all of it",
  (_word, offSec) => {
    const words = [
      "get",
      `${fleet.sample.url}/__size/3000000`,
      "--origo",
      fleet.origo.url,
      "--json",
      "--connections",
      "1",
      "--no-fallback",
    ];
    const env = { ...process.env, ...clockOff(offSec, 3) };
    const script = path.join(repoRoot, "client/dist/cli.js");
    return new Promise<void>((resolve, reject) => {
      execFile(process.execPath, [script, ...words, "--limit-rate", "600k"], { env }, (_error, stdout) => {
        try {
          const { durationMs, ...record } = JSON.parse(stdout) as DownloadRecord;
          expect(record).toMatchObject({ outcome: "complete", netBytes: 3_000_000, fallback: null });
          expect(durationMs).toBeLessThan(3_600_000);
          resolve();
        } catch (error) {
          reject(error as Error);
        }
      });
    });
  },
);

/** The gateway's clock jumps so many seconds after its start. */
const JUMP_SEC = 6;

test.each([
  ["forwards", DAY_SEC, 901_000],
  ["backwards", -DAY_SEC, 902_000],
])("the gateway: its clock jumps %s by a day, and the proxy carries files after it", async (_word, offSec, bytes) => {
  const script = path.join(repoRoot, "client/dist/cli.js");
  const words = ["gateway", "--port", "0", "--connections", "1", "--origo", fleet.origo.url];
  const env = { ...process.env, ...clockOff(offSec, JUMP_SEC) };
  const gateway = spawn(process.execPath, [script, ...words], { env, stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => gateway.once("close", resolve));
  try {
    let text = "";
    gateway.stdout.on("data", (piece: Buffer) => (text += piece.toString()));
    await eventually(
      () => text,
      (printed) => printed.includes("The gateway is"),
    );
    const startedMs = Date.now();
    const address = /http:\/\/\S+(?=\/ )/.exec(text)![0];
    let size = bytes;
    const carried = async (): Promise<DownloadRecord | undefined> => {
      const url = `${fleet.sample.url}/__size/${++size}.mp4`;
      const answer = await fetch(url.replace("http://", `${address}/http/`));
      expect((await answer.arrayBuffer()).byteLength).toBe(size);
      return (await recordsOf(fleet, 0, [url])).find((record) => record.url === url && record.fallback === null);
    };
    expect(await eventually(carried, Boolean, 60)).toMatchObject({ outcome: "complete" });
    await sleep(Math.max(0, startedMs + 1000 * (JUMP_SEC + 1) - Date.now()));
    const record = await eventually(carried, Boolean, 60);
    expect(record).toMatchObject({ outcome: "complete" });
    expect(record!.durationMs).toBeLessThan(3_600_000);
  } finally {
    gateway.kill("SIGTERM");
    await ended;
  }
});
