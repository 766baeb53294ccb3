/**
 * Published files through the client, and a published video in a real Chromium and a real Firefox: a real Origo and
 * three real proxies. One of the proxies lies over datagrams.
 */
import { createHash, randomBytes } from "node:crypto";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { GetOptions } from "@tributary/client";
import { createNodeClient } from "@tributary/client/node";
import type { DownloadRecord } from "@tributary/contract/schema";
import {
  FIREFOX_UUID,
  mediaDir,
  openBrowser,
  publisherCode,
  recordsSince,
  repoRoot,
  startFleet,
  type Fleet,
} from "@tributary/lab-stack";
import type { Page } from "puppeteer-core";
import { eventually, openPopup, publish } from "./support";

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
  const code = await publisherCode(fleet.origo.url);
  address = await publish(fleet, path.join(folder, "film"), keyFile(), "--code", code);
  client = createNodeClient({ origoUrl: fleet.origo.url, reportRecords: false });
});
afterAll(async () => {
  await client?.close();
  await fleet?.stop();
  rmSync(folder, { recursive: true });
});

const keyFile = (): string => path.join(folder, "key.pem");

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

describe("a published video in a browser", () => {
  const media = path.join(mediaDir, "cmaf");
  const segments = readdirSync(media).filter((name) => name.endsWith(".m4s"));
  const digests = segments.map((name) =>
    createHash("sha256")
      .update(readFileSync(path.join(media, name)))
      .digest("hex"),
  );
  let video: string;
  beforeAll(async () => (video = await publish(fleet, media, keyFile(), "--name", "video")));

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

  /** Plays the page of the publication until this second has passed or to its end, or until an error is there. */
  async function play(page: Page, second: number, address = video): Promise<void> {
    await page.goto(address);
    const state = `(() => {
      const video = document.querySelector("video");
      video.playbackRate = 4;
      if (video.paused && !video.ended) video.play().catch(() => undefined);
      return [video.ended ? Infinity : video.currentTime, document.querySelector("#message").hidden].map(String);
    })()`;
    const read = () => page.evaluate(state) as Promise<[string, string]>;
    const isOver = ([now, isFine]: [string, string]): boolean =>
      Number(now) >= second || (Number(now) > 0 && isFine === "false");
    const [now, isPlaying] = await eventually(read, isOver, 60);
    expect([Number(now) >= second, isPlaying]).toEqual([true, "true"]);
  }

  /** What the popup says of who vouches. */
  function signed(): RegExp {
    const [, key] = /\/v\/([^/]+)\//.exec(video)!;
    return new RegExp(`^“video” is signed by its publisher .key\u00a0${key!.slice(0, 8).replaceAll("-", "-\u2060")}….`);
  }

  /** Waits for records of downloads in this mode, and checks that the publisher vouches for all that are there. */
  async function expectRecords(mode: string, countMin: number, sinceMs = 0): Promise<void> {
    const read = async (): Promise<DownloadRecord[]> => {
      const records = await recordsSince(fleet, sinceMs);
      return records.filter(({ url, outcome }) => url.startsWith(video) && outcome === "complete");
    };
    const isEnough = (records: DownloadRecord[]): boolean =>
      records.filter((record) => record.mode === mode).length >= countMin;
    const records = await eventually(read, isEnough);
    expect(isEnough(records)).toBe(true);
    expect(new Set(records.map(({ vouchedBy }) => vouchedBy))).toEqual(new Set(["publisher"]));
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
      expect(await says("vouched")).toMatch(signed());
      await expectRecords("coded", segments.length / 2);
    } finally {
      await open.close();
    }
  });

  test("with the extension in Firefox it plays to its end, and the popup says who signed it", async () => {
    const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 3 };
    const open = await openBrowser({ name: "firefox", headless: true, defaults });
    const sinceMs = Date.now();
    try {
      const [page, popup] = [await open.newPage(), await open.newPage()];
      // No end of loading is told of such a page.
      void popup.goto(`moz-extension://${FIREFOX_UUID}/popup.html`).catch(() => undefined);
      await page.bringToFront();
      await play(page, Infinity);
      expect(await fetched(page)).toEqual(digests);
      const says = (): Promise<unknown> => popup.evaluate(`document.getElementById("vouched").textContent`);
      expect(await eventually(says, (text) => signed().test(String(text)))).toMatch(signed());
      await expectRecords("coded", segments.length / 2, sinceMs);
    } finally {
      await open.close();
    }
  });

  test("what is published as DASH alone plays on its page", async () => {
    const dash = path.join(folder, "dash");
    mkdirSync(dash);
    for (const name of [...segments, "stream.mpd", ...readdirSync(media).filter((each) => each.startsWith("init"))])
      copyFileSync(path.join(media, name), path.join(dash, name));
    const page = await publish(fleet, dash, keyFile());
    const open = await openBrowser({ headless: true });
    try {
      await play(await open.newPage(), 8, page);
    } finally {
      await open.close();
    }
  });

  test("the popup says how much of a published file an element got from the browser", async () => {
    const parts = readdirSync(media).filter((name) => /^(?:init-0\.|segment-0-)/.test(name));
    const fragmented = Buffer.concat(parts.sort().map((name) => readFileSync(path.join(media, name))));
    mkdirSync(path.join(folder, "plain"));
    writeFileSync(path.join(folder, "plain/film.mp4"), fragmented);
    const plain = await publish(fleet, path.join(folder, "plain"), keyFile());
    const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 3 };
    const open = await openBrowser({ headless: true, defaults });
    try {
      const [page, popup] = [await open.newPage(), await openPopup(open)];
      const says = (): Promise<unknown> => popup.evaluate(`document.getElementById("unchecked").textContent`);
      await page.bringToFront();
      await page.goto(`${fleet.sample.url}/`);
      expect(await says()).toBe("");
      await page.evaluate(`document.body.innerHTML = '<video src="${plain}film.mp4" autoplay muted></video>'`);
      const told = await eventually(says, (text) => text !== "", 30);
      expect(told).toMatch(/^The browser itself loaded .* of published videos\. Nobody checked these bytes\.$/);
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
