/**
 * A site in PeerTube's layout in real browsers, through four proxies. It publishes digests of its segments. Three of
 * the proxies begin to lie alike, or the digests are of no use. Every segment that the player gets must be right. What
 * does not depend on the browser runs in Chromium alone.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import {
  openBrowser,
  samplePageState,
  startFleet,
  type BrowserName,
  type Fleet,
  type OpenBrowser,
} from "@tributary/lab-stack";
import type { DownloadRecord } from "@tributary/contract/schema";
import type { Page } from "puppeteer-core";
import { eventually, getJson } from "./support";

/** The sample's video. Each test asks for it under an id of its own, so no proxy has an answer in its cache. */
const SAMPLE_ID = "8c5f2d1e-3b7a-4f60-9c1d-2a4e6b8d0f13";
const HONEST = 3;
const BROWSERS: readonly BrowserName[] = ["chromium", "firefox"];
const ids = {
  lied: "00000000-0000-4000-8000-000000000002",
  wrong: "00000000-0000-4000-8000-000000000003",
  missing: "00000000-0000-4000-8000-000000000004",
  huge: "00000000-0000-4000-8000-000000000005",
  live: "00000000-0000-4000-8000-000000000006",
  forbidden: "00000000-0000-4000-8000-000000000007",
};
/** For each browser: a video at the page's own host, one at another site, one in the site's object storage. */
const OWN = { chromium: "10", firefox: "20" } as const;
const idFor = (browser: BrowserName, kind: 0 | 1 | 2): string =>
  `00000000-0000-4000-8000-0000000000${Number(OWN[browser]) + kind}`;
const folderOf = (id: string): string => `/static/streaming-playlists/hls/${id}`;
const storedOf = (id: string): string => `/bucket/hls/${id}`;
const isStored = (id: string): boolean => BROWSERS.some((name) => idFor(name, 2) === id);
const idOf = (url: string): string => /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(url)?.[0] ?? "";
const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

let fleet: Fleet;
/** The same site at three addresses, because all pages of one origin count for its policies, and for storage. */
let sites: Server[] = [];
let base: string;
let strictBase: string;
let otherBase: string;
let open: OpenBrowser;
let firefox: OpenBrowser;
let popup: Page;
/** Three of the proxies get other bytes of media. */
let isLying = false;
/** By id: the JSON of digests. */
const digests = new Map<string, () => string>();
/** The segments of the files, by name: the byte ranges that the playlists name. */
const files = new Map<string, { body: Buffer; segments: { start: number; end: number }[] }>();
/** The segments of the live stream, by name. */
const live = new Map<string, Buffer>();
let asked: { path: string; headers: IncomingMessage["headers"] }[] = [];

const askedFor = (part: string): typeof asked => asked.filter(({ path }) => path.includes(part));
const digestsOf = (change = (digest: string) => digest): string =>
  JSON.stringify(
    Object.fromEntries(
      [...files].map(([name, { body, segments }]) => [
        name,
        Object.fromEntries(
          segments.map(({ start, end }) => [`${start}-${end}`, change(sha256(body.subarray(start, end + 1)))]),
        ),
      ]),
    ),
  );

async function answer({ url = "", headers }: IncomingMessage, response: ServerResponse): Promise<void> {
  const id = idOf(url);
  asked.push({ path: url, headers });
  if (url.startsWith("/api/")) {
    if (!digests.has(id)) return void response.writeHead(404).end();
    // What is in object storage has its digests there.
    const address = isStored(id)
      ? `${base}${storedOf(id)}/segments-sha256.json`
      : `http://${headers.host}${folderOf(id)}/c1-segments-sha256.json`;
    return void response.end(JSON.stringify({ streamingPlaylists: [{ segmentsSha256Url: address }] }));
  }
  response.setHeader("access-control-allow-origin", "*");
  if (url.endsWith(".json")) return void response.end(digests.get(id)?.() ?? "");
  if (url.startsWith("/empty")) {
    const policy = { "content-security-policy": `connect-src http://${headers.host}/static/` };
    return void response
      .writeHead(200, { "content-type": "text/html", ...(url.endsWith("strict") && policy) })
      .end("<p>");
  }
  const piece = live.get(/[^/]+\.ts/.exec(url)?.[0] ?? "");
  const { range } = headers;
  const sample = piece
    ? undefined
    : await fetch(fleet.sample.url + url.replace(storedOf(id), folderOf(id)).replace(id || SAMPLE_ID, SAMPLE_ID), {
        headers: range === undefined ? {} : { range },
      });
  const body = piece ?? Buffer.from(await sample!.arrayBuffer());
  const given = sample ? Object.fromEntries(sample.headers) : { "content-type": "video/mp2t" };
  for (const name of ["connection", "keep-alive", "transfer-encoding"]) delete given[name];
  const isLie = isLying && headers["x-liar"] !== undefined && /\.(?:mp4|ts)/.test(url);
  const sent = isLie ? body.map((byte) => byte ^ 1) : body;
  response.writeHead(sample?.status ?? 200, { ...given, "content-length": String(body.length) }).end(sent);
}

beforeAll(async () => {
  sites = [0, 1, 2].map(() => createServer((request, response) => void answer(request, response)));
  for (const site of sites) await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
  const hosts = sites.map((site) => `127.0.0.1:${(site.address() as AddressInfo).port}`);
  [base, strictBase, otherBase] = hosts.map((host) => `http://${host}`) as [string, string, string];
  const names = `--import ${path.join(__dirname, "lying-answers.mjs")}`;
  const proxyEnv = (index: number): Record<string, string> => (index === HONEST ? {} : { NODE_OPTIONS: names });
  fleet = await startFleet({ proxyCount: 4, ports: "any", allow: hosts, proxyEnv });
  for (const track of ["0", "1", "2", "3"]) {
    const name = `${SAMPLE_ID}-${track}-fragmented.mp4`;
    const from = `${fleet.sample.url}${folderOf(SAMPLE_ID)}/`;
    const playlist = await (await fetch(`${from}${SAMPLE_ID}-${track}.m3u8`)).text();
    const segments = [...playlist.matchAll(/^#EXT-X-BYTERANGE:(\d+)@(\d+)/gm)].map(([, length, start]) => ({
      ...{ start: Number(start), end: Number(start) + Number(length) - 1 },
    }));
    files.set(name, { body: Buffer.from(await (await fetch(from + name)).arrayBuffer()), segments });
  }
  const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 4 };
  open = await openBrowser({ headless: true, defaults });
  firefox = await openBrowser({ name: "firefox", headless: true, defaults });
  const worker = await open.browser.waitForTarget(
    (target) => target.type() === "service_worker" && target.url().startsWith("chrome-extension://"),
  );
  popup = await open.newPage();
  await popup.goto(`chrome-extension://${new URL(worker.url()).host}/popup.html`);
});

afterAll(async () => {
  await open?.close();
  await firefox?.close();
  await fleet?.stop();
  for (const site of sites) {
    site.closeAllConnections();
    site.close();
  }
});

beforeEach(() => {
  asked = [];
  isLying = false;
});

const says = async (id: string): Promise<string> =>
  String(await popup.evaluate(`document.getElementById("${id}").textContent`));

const recordsOf = async (id: string): Promise<DownloadRecord[]> =>
  (await getJson<{ records: DownloadRecord[] }>(`${fleet.origo.url}/v1/records?limit=500`)).records.filter(
    ({ url, purpose }) => url.includes(id) && purpose !== "comparison",
  );

async function openPage(address: string, origin = base, { newPage } = open): Promise<Page> {
  const page = await newPage();
  await page.goto(origin + address);
  return page;
}

/** The digest of what the page gets. */
const got = (page: Page, address: string, range?: { start: number; end: number }): Promise<string> =>
  page.evaluate(`(async () => {
    const headers = ${JSON.stringify(range ? { Range: `bytes=${range.start}-${range.end}` } : {})};
    const bytes = await (await fetch("${address}", { headers, cache: "no-store" })).arrayBuffer();
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  })()`) as Promise<string>;

let count = 0;
/** Gets the next segment of any quality, and checks that the page got the right bytes. */
async function getSegment(page: Page, id: string): Promise<void> {
  const all = [...files].flatMap(([name, { body, segments }]) =>
    segments.map((segment) => ({ name, segment, bytes: body.subarray(segment.start, segment.end + 1) })),
  );
  const { name, segment, bytes } = all[count++ % all.length]!;
  expect(await got(page, `${folderOf(id)}/${name}`, segment)).toBe(sha256(bytes));
}

/** Gets segments until a record of one is so. */
async function untilRecord(page: Page, id: string, isSo: (record: DownloadRecord) => boolean): Promise<void> {
  const read = async () => {
    await getSegment(page, id);
    return recordsOf(id);
  };
  const records = await eventually(read, (all) => all.some(isSo), 30);
  if (!records.some(isSo)) throw new Error(`no such record; the popup says: ${await says("trouble")}`);
}

const isBy =
  (voucher: DownloadRecord["vouchedBy"]) =>
  ({ vouchedBy, outcome, fallback }: DownloadRecord): boolean =>
    outcome === "complete" && fallback === null && vouchedBy === voucher;

/** Plays the video of the page's source, and checks each segment, that the site vouches, and that it is asked twice. */
async function playVouched(id: string, address: string, origin: string, opened: OpenBrowser): Promise<Page> {
  digests.set(id, digestsOf);
  const page = await openPage(`/hls.html?source=${address}/master.m3u8`, origin, opened);
  await page.evaluate(`document.cookie = "who=me"`);
  await page.evaluate(`document.querySelector("video").playbackRate = 4`);
  const state = await eventually(
    () => samplePageState(page),
    ({ currentTime }) => currentTime >= 12,
    60,
  );
  expect(state.errors).toEqual([]);
  for (const { url, start = 0, end = 0, sha256: digest } of state.segments) {
    const { body } = files.get(url.slice(url.lastIndexOf("/") + 1))!;
    expect(digest).toBe(sha256(body.subarray(start, end + 1)));
  }
  const records = await eventually(
    () => recordsOf(id),
    (all) => all.filter(isBy("site")).length >= 3,
  );
  expect(records.filter(isBy("site")).length).toBeGreaterThanOrEqual(3);
  const questions = [...askedFor("/api/"), ...askedFor(".json")];
  expect(questions).toHaveLength(2);
  for (const { headers } of questions)
    expect([headers.cookie, headers.referer, headers.origin]).toEqual([undefined, undefined, undefined]);
  return page;
}

describe.each(BROWSERS)("a player's segments have the site's digests in %s: it vouches, and is asked twice", (name) => {
  const opened = (): OpenBrowser => (name === "firefox" ? firefox : open);

  test("at the page's own host", async () => {
    const id = idFor(name, 0);
    const page = await playVouched(id, folderOf(id), base, opened());
    await untilRecord(page, id, isBy("site"));
    await page.close();
  });

  test("at another site than the page's", async () => {
    const id = idFor(name, 1);
    await (await playVouched(id, base + folderOf(id), fleet.sample.url, opened())).close();
    expect(askedFor("/api/").every(({ headers }) => headers.host === new URL(base).host)).toBe(true);
  });

  test("in object storage on another host than the site", async () => {
    const id = idFor(name, 2);
    await (await playVouched(id, base + storedOf(id), otherBase, opened())).close();
    expect(askedFor("/api/").every(({ headers }) => headers.host === new URL(otherBase).host)).toBe(true);
  });
});

/** Digests that are of no use: the page gets everything as without them, and nobody is blamed. */
test.each<[keyof typeof ids, (() => string) | undefined, number]>([
  ["missing", undefined, 0],
  ["huge", () => "[".padEnd(5_000_000), 1],
  ["wrong", () => digestsOf((digest) => digest.replace(/./g, "0")), 2],
])("digests that are %s", async (name, json, times) => {
  const before = await says("liars");
  const id = ids[name];
  if (json) digests.set(id, json);
  const page = await openPage("/empty");
  await untilRecord(page, id, isBy("nobody"));
  await getSegment(page, id);
  expect(askedFor(".json").filter(({ path }) => path.includes(id))).toHaveLength(times);
  expect(await says("liars")).toBe(before);
  await page.close();
});

test("the digests of a live stream are asked for again for a new segment, and may be late or gone", async () => {
  const published = new Map<string, string>();
  digests.set(ids.live, () => JSON.stringify(Object.fromEntries(published)));
  const page = await openPage("/empty");
  const { body } = files.get(`${SAMPLE_ID}-1-fragmented.mp4`)!;
  const getNext = async (): Promise<void> => {
    const name = `0-${String(live.size).padStart(6, "0")}.ts`;
    const piece = body.subarray(count++ * 1000, 300_000 + count * 1000);
    live.set(name, piece);
    // PeerTube has the digests of the latest segments. Those of every third are late here.
    if (live.size % 3 > 0) published.set(name, sha256(piece));
    for (const old of [...published.keys()].slice(0, -4)) published.delete(old);
    expect(await got(page, `${folderOf(ids.live)}/${name}`)).toBe(sha256(piece));
    await pause(400);
  };
  const read = async () => {
    await getNext();
    return recordsOf(ids.live);
  };
  const isBoth = (all: DownloadRecord[]): boolean => all.some(isBy("site")) && all.some(isBy("nobody"));
  expect(isBoth(await eventually(read, isBoth, 30))).toBe(true);
  expect(askedFor("/api/")).toHaveLength(1);
  expect(askedFor(".json").length).toBeLessThanOrEqual(live.size);
  await page.close();
});

test("a policy that keeps pages from the API keeps the extension from it", async () => {
  digests.set(ids.forbidden, digestsOf);
  const page = await openPage("/empty-strict", strictBase);
  await untilRecord(page, ids.forbidden, isBy("nobody"));
  expect(askedFor("/api/")).toEqual([]);
  await page.close();
});

/** The last test, because the three proxies rest for a while after it. */
test("three of four proxies begin to lie: no lie gets to the page, and the popup names the three", async () => {
  digests.set(ids.lied, digestsOf);
  const page = await openPage("/empty");
  await untilRecord(page, ids.lied, isBy("site"));
  isLying = true;
  const names = await eventually(
    async () => {
      await getSegment(page, ids.lied);
      return says("liars");
    },
    (text) => [1, 2, 3].every((one) => text.includes(`proxy-${one}`)),
    40,
  );
  expect(names).toMatch(/^These proxies sent false data and were dropped/);
  expect(names).not.toContain(`proxy-${HONEST + 1}`);
  const records = await eventually(
    () => recordsOf(ids.lied),
    (all) => all.some(({ fallback }) => fallback?.kind === "bodyDiffers"),
  );
  expect(records.find(({ fallback }) => fallback?.kind === "bodyDiffers")).toMatchObject({ vouchedBy: "site" });
  await page.close();
});
