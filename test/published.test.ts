/**
 * Published files through the client, and a published video in a real Chromium: a real Origo and three real proxies,
 * of which one lies over datagrams.
 */
import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { GetOptions } from "@tributary/client";
import { createNodeClient } from "@tributary/client/node";
import type { DownloadRecord } from "@tributary/contract/schema";
import {
  mediaDir,
  openBrowser,
  publisherCode,
  repoRoot,
  startFleet,
  type Fleet,
  type OpenBrowser,
} from "@tributary/lab-stack";
import type { Page } from "puppeteer-core";
import { eventually, getJson } from "./support";

const LIAR = 1;
/** More than one window of proofs. */
const film = randomBytes(6_000_001);
let fleet: Fleet;
let folder: string;
let client: ReturnType<typeof createNodeClient>;
let address: string;

beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), "tributary-published-"));
  const lie = `--import=${pathToFileURL(path.join(repoRoot, "test/lying-objects.mjs")).href}`;
  const proxyEnv = (index: number): Record<string, string> => ({
    LIBRARY_DIR: path.join(folder, `library-${index}`),
    ...(index === LIAR ? { NODE_OPTIONS: lie } : {}),
  });
  fleet = await startFleet({ proxyCount: 3, ports: "any", proxyEnv });
  mkdirSync(path.join(folder, "film"));
  writeFileSync(path.join(folder, "film/film.mp4"), film);
  writeFileSync(path.join(folder, "film/empty.mp4"), "");
  writeFileSync(path.join(folder, "film/list.m3u8"), "#EXTM3U\n");
  address = await publish("film", "--code", await publisherCode(fleet.origo.url));
  client = createNodeClient({ origoUrl: fleet.origo.url, reportRecords: false });
});
afterAll(async () => {
  await client?.close();
  await fleet?.stop();
  rmSync(folder, { recursive: true });
});

/** Publishes a folder. Returns its address when all proxies hold it: Origo releases it when one holds each file. */
async function publish(source: string, ...more: string[]): Promise<string> {
  const words = ["publish", source, "--origo", fleet.origo.url, "--key", "key.pem", "--json", ...more];
  const printed = execFileSync(process.execPath, [path.join(repoRoot, "client/dist/cli.js"), ...words], {
    cwd: folder,
    encoding: "utf8",
  });
  const [published] = /http[^"]+\/v\/[^/"]+\/[^/"]+\//.exec(printed)!;
  const publication = published.replace("/v/", "/v1/publications/").replace(/\/$/, "");
  const read = () => getJson<{ holders: number }>(publication);
  expect(await eventually(read, ({ holders }) => holders === 3)).toMatchObject({ holders: 3 });
  return published;
}

async function get(
  name: string,
  options: GetOptions,
): Promise<{ status: number; body: Buffer; record: DownloadRecord }> {
  const download = client.get(`${address}${name}`, options);
  const pieces: Uint8Array[] = [];
  const { status } = await download.head;
  for await (const piece of download.body) pieces.push(piece);
  return { status, body: Buffer.concat(pieces), record: await download.record };
}

test("over datagrams every byte is the publisher's, and the proxy that lies is convicted and named", async () => {
  const faults: (string | undefined)[] = [];
  // The honest ones may be done before the liar's session is open.
  for (let tries = 0; tries < 20 && faults.length === 0; tries++) {
    const { body, record } = await get("film.mp4", { mode: "coded", connections: 3 });
    expect(body.equals(film)).toBe(true);
    expect(record).toMatchObject({ outcome: "complete", vouchedBy: "publisher" });
    for (const { name, error } of record.proxies) if (error) faults.push(`${name}: ${error.kind}`);
  }
  expect(faults).toEqual(["proxy-2: digestMismatch"]);
});

test.each<GetOptions["mode"] & string>(["coded-mutp", "uncoded-mutp", "split-http", "parallel-http", "direct"])(
  "mode %s gives the bytes of a range that begins and ends within blocks",
  async (mode) => {
    const { status, body, record } = await get("film.mp4", { mode, range: { start: 100_001, end: 1_200_000 } });
    expect([status, body.equals(film.subarray(100_001, 1_200_001))]).toEqual([206, true]);
    expect(record.vouchedBy).toBe("publisher");
  },
);

test("an empty file, a playlist, a range after the end and a file that does not exist are answered", async () => {
  const empty = await get("empty.mp4", {});
  const list = await get("list.m3u8", {});
  const after = await get("film.mp4", { range: { start: film.length, end: film.length } });
  const missing = await get("other.mp4", {});
  expect([empty, list, after, missing].map(({ status, body }) => [status, body.length])).toEqual([
    [200, 0],
    [200, 8],
    [416, 0],
    [404, 0],
  ]);
});

test("a key that signed nothing here has no files", async () => {
  const other = address.replace(/\/v\/[^/]+/, `/v/${"A".repeat(42)}A`);
  const download = client.get(`${other}film.mp4`, {});
  await expect(download.head).rejects.toThrow(/answered 404/);
});

describe("a published video in Chromium", () => {
  const media = path.join(mediaDir, "cmaf");
  const segments = readdirSync(media).filter((name) => name.endsWith(".m4s"));
  const digests = segments.map((name) =>
    createHash("sha256")
      .update(readFileSync(path.join(media, name)))
      .digest("hex"),
  );
  let video: string;
  beforeAll(async () => (video = await publish(media, "--name", "video")));

  /** The digests of all segments, as the page gets them. */
  const fetched = (page: Page): Promise<unknown> =>
    page.evaluate(`(async () => {
      const digests = [];
      for (const name of ${JSON.stringify(segments)}) {
        const bytes = await (await fetch(name, { cache: "no-store" })).arrayBuffer();
        const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
        digests.push([...digest].map((byte) => byte.toString(16).padStart(2, "0")).join(""));
      }
      return digests;
    })()`);

  /** Plays the page of the publication until this second has passed, or an error is there. */
  async function play(page: Page, second: number): Promise<void> {
    await page.goto(video);
    const state = `(() => {
      const video = document.querySelector("video");
      video.playbackRate = 4;
      if (video.paused) video.play().catch(() => undefined);
      return [video.currentTime, document.querySelector("#message").hidden];
    })()`;
    const read = () => page.evaluate(state) as Promise<[number, boolean]>;
    const [seconds, isPlaying] = await eventually(read, ([now, isFine]) => now >= second || (now > 0 && !isFine), 60);
    expect([seconds >= second, isPlaying]).toEqual([true, true]);
  }

  async function openPopup({ browser, newPage }: OpenBrowser): Promise<Page> {
    const worker = await browser.waitForTarget(
      (target) => target.type() === "service_worker" && target.url().startsWith("chrome-extension://"),
    );
    const popup = await newPage();
    await popup.goto(`chrome-extension://${new URL(worker.url()).host}/popup.html`);
    return popup;
  }

  test("with the extension it is coded, and the popup says who signed it and which proxy lied", async () => {
    const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 3 };
    const open = await openBrowser({ headless: true, defaults });
    try {
      const [page, popup] = [await open.newPage(), await openPopup(open)];
      const says = (id: string): Promise<unknown> => popup.evaluate(`document.getElementById("${id}").textContent`);
      await page.bringToFront();
      await play(page, 8);
      // The honest ones may be done before the liar has sent anything.
      const isNamed = async (): Promise<boolean> => {
        expect(await fetched(page)).toEqual(digests);
        return String(await says("liars")) !== "";
      };
      expect(await eventually(isNamed, Boolean, 40)).toBe(true);
      expect(await says("liars")).toMatch(/^The proxy proxy-2 sent false data/);
      const [, key] = /\/v\/([^/]+)\//.exec(video)!;
      expect(await says("vouched")).toContain(`“video” is signed by its publisher (key ${key!.slice(0, 8)}…)`);
      const read = async (): Promise<DownloadRecord[]> => {
        const { records } = await getJson<{ records: DownloadRecord[] }>(`${fleet.origo.url}/v1/records?limit=200`);
        return records.filter(({ url, outcome }) => url.startsWith(video) && outcome === "complete");
      };
      const isEnough = (records: DownloadRecord[]): boolean =>
        records.filter(({ mode }) => mode === "coded").length >= segments.length / 2;
      const records = await eventually(read, isEnough);
      expect(isEnough(records)).toBe(true);
      expect(new Set(records.map(({ vouchedBy }) => vouchedBy))).toEqual(new Set(["publisher"]));
    } finally {
      await open.close();
    }
  });

  test("without the extension it plays by plain HTTP", async () => {
    const open = await openBrowser({ headless: true });
    try {
      const page = await open.newPage();
      await play(page, 8);
      expect(await fetched(page)).toEqual(digests);
    } finally {
      await open.close();
    }
  });
});
