/**
 * A player in a real Chromium with the extension plays a published video from four real proxies. Three of them lie, or
 * all four. No wrong byte may reach the player, and the popup names nobody but liars.
 */
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import {
  mediaDir,
  openBrowser,
  publisherCode,
  samplePageState,
  startFleet,
  type Fleet,
  type OpenBrowser,
  type PlayedSegment,
  type SamplePageState,
} from "@tributary/lab-stack";
import type { Page } from "puppeteer-core";
import { eventually, openPopup, publish } from "./support";

const PROXIES = ["proxy-1", "proxy-2", "proxy-3", "proxy-4"];
const LIARS = PROXIES.slice(0, 3);
const SEGMENTS_MIN = 4;
const SECONDS_MIN = 2;

type Playing = SamplePageState & { names: string[] };

const media = path.join(mediaDir, "cmaf");
const digestOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const digests = new Map(
  readdirSync(media).map((name) => [name, digestOf(readFileSync(path.join(media, name)))] as const),
);
let folder: string;
let fleet: Fleet;
let open: OpenBrowser;
let [page, popup]: Page[] = [];
/** The address of the published folder. */
let video: string;
let isOther = false;

beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), "tributary-published-liars-"));
  tell("", PROXIES);
  const liar = `--import=${pathToFileURL(path.join(__dirname, "lying-objects.mjs")).href}`;
  fleet = await startFleet({
    proxyCount: PROXIES.length,
    ports: "any",
    // Without a cache no proxy tells the lie of the test before.
    proxyEnv: (index) => ({ NODE_OPTIONS: liar, LIE_FILE: lieFile(PROXIES[index]!), CACHE_BYTES: "0" }),
  });
  const words = ["--name", "video", "--code", await publisherCode(fleet.origo.url)];
  video = await publish(fleet, media, path.join(folder, "key.pem"), ...words);
  open = await openBrowser({ headless: true, defaults: { origoUrl: fleet.origo.url, mode: "coded", connections: 4 } });
  page = await open.newPage();
  popup = await openPopup(open);
  await page.bringToFront();
});
afterAll(async () => {
  await open?.close();
  await fleet?.stop();
  rmSync(folder, { recursive: true });
});

const lieFile = (proxy: string): string => path.join(folder, proxy);

function tell(lie: string, proxies: readonly string[]): void {
  for (const proxy of PROXIES) writeFileSync(lieFile(proxy), proxies.includes(proxy) ? lie : "");
}

/** The extension begins anew, in this mode: it knows of no lie, and no page makes it ask. */
async function begin(mode: string): Promise<void> {
  tell("", PROXIES);
  await page!.goto("about:blank");
  isOther = !isOther;
  const settings = JSON.stringify({ mode, transport: isOther ? "webtransport" : "auto" });
  await popup!.evaluate(`chrome.storage.local.set(${settings})`);
  expect(await eventually(named, (names) => names.length === 0)).toEqual([]);
}

/** The proxies that the popup names as liars. */
async function named(): Promise<string[]> {
  const text = String(await popup!.evaluate(`document.getElementById("liars").textContent`));
  return text.match(/proxy-\d/g) ?? [];
}

/** Why the player did not get the file of this address as it was published. */
function fault({ url, sha256 }: PlayedSegment): string[] {
  const isRight = url.startsWith(video) && digests.get(url.slice(video.length)) === sha256;
  return isRight ? [] : [`${url}: ${sha256}`];
}

/** Plays until this holds, with what the popup says. */
async function play(isEnough: (state: Playing) => boolean): Promise<Playing> {
  const read = async (): Promise<Playing> => ({ ...(await samplePageState(page!)), names: await named() });
  return eventually(read, isEnough, 40);
}

async function openPlayer(): Promise<void> {
  await page!.goto(`${fleet.sample.url}/hls.html?source=${encodeURIComponent(`${video}master.m3u8`)}`);
  await page!.evaluate("Object.assign(document.querySelector('video'), { playbackRate: 4, defaultPlaybackRate: 4 })");
}

test.each([
  ["coded", "hundredth"],
  ["coded", "payloads"],
  ["coded", "repair"],
  ["coded", "proofs"],
  ["coded", "roots"],
  ["coded", "lengths"],
  ["coded", "replay"],
  ["coded", "statuses"],
  ["coded", "late"],
  ["coded", "turning"],
  ["coded", "silent"],
  ["coded-mutp", "hundredth"],
  ["uncoded-mutp", "payloads"],
  ["uncoded-mutp", "replay"],
  ["parallel-http", "http-payloads"],
  ["split-http", "http-hundredth"],
  ["split-http", "http-lengths"],
  ["split-http", "http-proofs"],
  ["parallel-http", "http-proofs"],
])("%s, three of four lie (%s): the player gets what was published, and the popup names liars", async (mode, lie) => {
  await begin(mode);
  tell(lie, LIARS);
  await openPlayer();
  // The honest holder may be asked for proofs first, and it may have sent all before a late liar sends anything.
  const mayBeSpared = lie === "http-proofs" || lie === "late";
  const isEnough = ({ segments, names, currentTime }: Playing): boolean =>
    segments.length >= SEGMENTS_MIN && (mayBeSpared || names.length > 0) && currentTime >= SECONDS_MIN;
  const state = await play(isEnough);
  expect(state.segments.flatMap(fault)).toEqual([]);
  expect(state.errors).toEqual([]);
  expect(isEnough(state)).toBe(true);
  expect(LIARS).toEqual(expect.arrayContaining(state.names));
});

/** The digest of what the page gets by `fetch`. */
const fetched = (name: string): Promise<unknown> =>
  page!.evaluate(`(async () => {
    const bytes = await (await fetch(${JSON.stringify(video + name)})).arrayBuffer();
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  })()`);

test("all change a byte of what the browser itself gets: the player gets what was published", async () => {
  await begin("coded");
  tell("http-byte", PROXIES);
  await openPlayer();
  const { segments, errors } = await play(({ segments }) => segments.length >= SEGMENTS_MIN);
  expect(segments.length).toBeGreaterThanOrEqual(SEGMENTS_MIN);
  expect([errors, segments.flatMap(fault)]).toEqual([[], []]);
  const [name] = [...digests.keys()].filter((each) => each.endsWith(".m4s"));
  for (let times = 0; times < 2; times++) {
    await page!.goto(`${fleet.sample.url}/`);
    expect(await fetched(name!)).toBe(digests.get(name!));
    expect(await fetched(name!)).toBe(digests.get(name!));
  }
});

test.each(["coded", "parallel-http"])("%s, all four lie: the player gets an error and no wrong byte", async (mode) => {
  await begin(mode);
  tell("everywhere", PROXIES);
  await openPlayer();
  const { segments, errors } = await play(({ errors }) => errors.length > 0);
  expect(segments.flatMap(fault)).toEqual([]);
  expect(errors).toContainEqual(expect.stringContaining("fragLoadError"));
});
