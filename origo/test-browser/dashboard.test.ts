/**
 * Tests of the dashboard in a real Chromium, with a real Origo, two live proxies, and downloads that the command line
 * made through them.
 */
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { openBrowser, repoRoot, startFleet, type Fleet, type OpenBrowser } from "@tributary/lab-stack";
import type { LibraryResponse } from "@tributary/contract/library-schema";
import type { Trace } from "@tributary/contract/query-schema";
import type { DownloadRecord } from "@tributary/contract/schema";
import type { ElementHandle, Page } from "puppeteer-core";
import { MAP, pxPerDegree } from "../dashboard/src/chart/places";
import {
  download,
  fill,
  layoutFaults,
  openPage,
  press,
  sees,
  startGuardedOrigo,
  until,
  type GuardedOrigo,
  type Watched,
} from "./support";

const BUNDLE_BYTES_MAX = 600_000;
/** The place of both proxies. */
const PLACE = { lat: 47.5, lon: 19 };
/** The tooltip of both proxies changes more pixels of the map than this. Their dot changes fewer. */
const TOOLTIP_PIXELS_MIN = 5000;
const MODES = ["direct", "parallel-http", "coded"];

let fleet: Fleet;
let guarded: GuardedOrigo;
let open: OpenBrowser;
let watched: Watched;
let page: Page;
let media: string;

const go = async (hash: string): Promise<void> =>
  void (await page.goto(`${fleet.origo.url}/${hash}`, { waitUntil: "domcontentloaded" }));
const link = (name: string, state: unknown): string => `#/${name}?${encodeURIComponent(JSON.stringify(state))}`;
const textOf = (selector: string): Promise<string> =>
  page.$eval(selector, (element) => (element as HTMLElement).innerText);
const read = async <T>(where: string): Promise<T> => (await (await fetch(`${fleet.origo.url}${where}`)).json()) as T;
const records = async (): Promise<DownloadRecord[]> =>
  (await read<{ records: DownloadRecord[] }>("/v1/records?limit=100")).records;

beforeAll(async () => {
  [fleet, guarded, open] = await Promise.all([
    startFleet({ proxyCount: 2, ports: "any", proxyEnv: () => ({ PLACE: `${PLACE.lat},${PLACE.lon}` }) }),
    startGuardedOrigo(),
    openBrowser({ headless: true }),
  ]);
  media = `${fleet.sample.url}/media/progressive.mp4`;
  await Promise.all(
    MODES.map((mode) => download(fleet.origo.url, media, mode, "--range", "0-399999", "--comment", `<b>${mode}</b>`)),
  );
  await until("the records of all downloads", async () => (await records()).length === MODES.length);
  watched = await openPage(open.browser);
  page = watched.page;
}, 120_000);

afterAll(async () => {
  await open.close();
  await Promise.all([fleet.stop(), guarded.stop()]);
});

afterEach(() => expect(watched.faults()).toEqual([]));

test("all files of the dashboard but the page of a publication stay under 600 KB gzip", () => {
  const folder = path.join(repoRoot, "origo/dist/dashboard");
  const bytes = readdirSync(folder)
    .filter((file) => !file.endsWith(".map") && !/^(?:hls|dash|player)\./.test(file))
    .reduce((sum, file) => sum + gzipSync(readFileSync(path.join(folder, file)), { level: 9 }).length, 0);
  console.log(`dashboard: ${bytes} bytes gzip in all`);
  expect(bytes).toBeLessThan(BUNDLE_BYTES_MAX);
});

test("the one-time link creates the first admin, who can sign out and in; a wrong password is an error", async () => {
  await page.goto(guarded.setupUrl);
  await fill(page, "Your name", "ada");
  await fill(page, "Password", "a long enough password");
  await fill(page, "Password again", "a long enough password");
  await press(page, "button", "Create the first admin");
  await sees(page, "No proxy is connected");
  await press(page, "button", "ada");
  await press(page, "menuitem", "Sign out");
  await sees(page, "Sign in to Origo");
  expect(await layoutFaults(page)).toEqual([]);
  await fill(page, "Name", "ada");
  await fill(page, "Password", "not the password");
  await press(page, "button", "Sign in");
  await page.waitForSelector("[role=alert]");
  await fill(page, "Password", "a long enough password");
  await press(page, "button", "Sign in");
  await sees(page, "No proxy is connected");
});

test("an admin adds a viewer, and the viewer sees no buttons that change things", async () => {
  await page.goto(`${guarded.service.url}/#/users`);
  await press(page, "button", "Add a user");
  await fill(page, "Name", "bob");
  await fill(page, "Password", "another long password");
  await press(page, "button", "Add");
  await until("bob is listed", () => page.evaluate(() => document.querySelectorAll("tbody tr").length === 2));
  expect(await layoutFaults(page)).toEqual([]);
  await press(page, "button", "ada");
  await press(page, "menuitem", "Sign out");
  await fill(page, "Name", "bob");
  await fill(page, "Password", "another long password");
  await press(page, "button", "Sign in");
  await page.goto(`${guarded.service.url}/#/experiments`);
  await sees(page, "There is no experiment yet");
  expect(await page.$$("::-p-aria([name='New experiment'])")).toHaveLength(0);
  expect(await page.$$("::-p-aria([role='link'][name='Users'])")).toHaveLength(0);
});

test("a user who is removed while a page is open sees the form to sign in", async () => {
  const { url } = guarded.service;
  await sees(page, "There is no experiment yet");
  const login = await fetch(`${url}/v1/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name: "ada", password: "a long enough password" }),
  });
  const { csrfToken } = (await login.json()) as { csrfToken: string };
  const cookie = login.headers.get("set-cookie")?.split(";")[0] ?? "";
  expect(
    (await fetch(`${url}/v1/users/bob`, { method: "DELETE", headers: { cookie, "x-csrf-token": csrfToken } })).status,
  ).toBe(200);
  await sees(page, "Sign in to Origo");
});

test("fleet: shows live proxies; draining one tells Origo and shows the new state", async () => {
  await go("#/fleet");
  await sees(page, "proxy-2");
  await until("the page is live", () => page.$("[data-live=true]"));
  expect(await layoutFaults(page)).toEqual([]);
  await press(page, "button", "Actions for proxy-2");
  await press(page, "menuitem", "Drain");
  await press(page, "button", "Drain");
  await sees(page, "draining");
  const { proxies } = await read<{ proxies: { name: string; state: string }[] }>("/v1/fleet");
  expect(proxies.map(({ name, state }) => [name, state])).toEqual([
    ["proxy-1", "live"],
    ["proxy-2", "draining"],
  ]);
  await press(page, "button", "Actions for proxy-2");
  await press(page, "menuitem", "Enable");
  await press(page, "button", "Enable");
  await until(
    "proxy-2 is live again",
    async () => !(await page.evaluate(() => document.body.innerText.includes("draining"))),
  );
});

test("fleet: the tooltip of a dot on the map stays open while new reports arrive", async () => {
  await go("#/fleet");
  const map = (await page.waitForSelector(
    "[aria-label='Map of 2 proxies: proxy-1, proxy-2'] canvas",
  )) as ElementHandle<HTMLCanvasElement>;
  await until("the page is live", () => page.$("[data-live=true]"));
  const pixelsOf = (canvas: HTMLCanvasElement): Uint32Array =>
    new Uint32Array(canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  const bare = await map.evaluateHandle(pixelsOf);
  const changed = async (): Promise<number> =>
    page.evaluate(
      (before, now) => now.filter((pixel, index) => pixel !== before[index]).length,
      bare,
      await map.evaluateHandle(pixelsOf),
    );
  const { x, y, width, height } = (await map.boundingBox())!;
  const px = pxPerDegree(width, height);
  await page.mouse.move(
    x + width / 2 + px.lon * (PLACE.lon - (MAP.west + MAP.east) / 2),
    y + height / 2 - px.lat * (PLACE.lat - (MAP.north + MAP.south) / 2),
  );
  await until("the tooltip is open", async () => (await changed()) > TOOLTIP_PIXELS_MIN);
  const { nowMs } = await read<{ nowMs: number }>("/v1/fleet");
  await until("reports of three seconds have arrived", async () =>
    (await read<{ proxies: { lastSeenMs: number }[] }>("/v1/fleet")).proxies.every(
      ({ lastSeenMs }) => lastSeenMs > nowMs + 3000,
    ),
  );
  expect(await changed()).toBeGreaterThan(TOOLTIP_PIXELS_MIN);
});

test("downloads: the paper's columns, text as text, a filter, and a new download that appears by itself", async () => {
  await go("#/downloads");
  await until("three rows", () => page.evaluate(() => document.querySelectorAll("tbody tr").length === 3));
  const head = await textOf("thead");
  for (const word of ["size", "first packet", "server fetch", "overall", "no server"]) expect(head).toContain(word);
  expect(await textOf("tbody")).toContain("<b>coded</b>");
  expect(await layoutFaults(page)).toEqual([]);
  await download(fleet.origo.url, media, "direct", "--range", "0-99");
  await until("a fourth row", () => page.evaluate(() => document.querySelectorAll("tbody tr").length === 4));
  await press(page, "button", "+ Filter");
  await page.locator("::-p-aria([name='Value'])").click();
  await press(page, "option", "coded");
  await press(page, "button", "Apply");
  await until("one row", () => page.evaluate(() => document.querySelectorAll("tbody tr").length === 1));
  expect(decodeURIComponent(page.url())).toContain('{"field":"mode","op":"=","value":"coded"}');
  expect(await textOf("[data-testid=matching]")).toBe("1 download");
});

test("downloads: a click on a heading sorts, and a saved view restores its state", async () => {
  await go(link("downloads", { columns: ["mode", "netBytes"] }));
  await until("four rows", () => page.evaluate(() => document.querySelectorAll("tbody tr").length === 4));
  await press(page, "button", "Net");
  await until("the largest first", async () => (await textOf("tbody tr")).includes("400 kB"));
  await press(page, "button", "Net");
  await until("the smallest first", async () => (await textOf("tbody tr")).includes("100 B"));
  await press(page, "button", "Views");
  await press(page, "menuitem", "Save this view…");
  await fill(page, "Name", "small first");
  await press(page, "button", "Save");
  await go("#/downloads");
  await press(page, "button", "Views (1)");
  await page.locator("::-p-text(small first)").click();
  await until("the state is back", async () => decodeURIComponent(page.url()).includes('"descending":false'));
});

test("one download: the packets of every proxy add up, and the record can be saved", async () => {
  const coded = (await records()).find((record) => record.mode === "coded");
  if (coded === undefined) throw new Error("no coded record");
  await go(`#/downloads/${coded.id}`);
  await sees(page, "What each proxy sent");
  const rows = await page.$$eval(".breakdown tbody tr", (all) => all.map((row) => (row as HTMLElement).innerText));
  expect(rows).toHaveLength(coded.proxies.length);
  for (const row of rows) expect(row).toContain("✓ equal");
  expect(await textOf("[data-testid=byte-sum]")).toContain("✓ equal");
  expect(await layoutFaults(page)).toEqual([]);
  expect(await saved("Save as JSON", ".json")).toMatchObject({ record: { id: coded.id, proxies: coded.proxies } });
});

/** Presses a button and reads the file that the page then saves. */
async function saved(button: string, ending: string, role: "button" | "menuitem" = "button"): Promise<unknown> {
  const folder = await mkdtemp(path.join(os.tmpdir(), "tributary-saved-"));
  const session = await page.createCDPSession();
  await session.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: folder });
  await press(page, role, button);
  const file = await until(`a file ${ending}`, async () => readdirSync(folder).find((name) => name.endsWith(ending)));
  const content = await readFile(path.join(folder, file));
  await rm(folder, { recursive: true });
  return ending === ".json" ? JSON.parse(content.toString()) : content;
}

test("analysis: every kind of chart is drawn with its n and can be saved as PNG, SVG and CSV", async () => {
  const modes = (await records()).map(({ mode }) => mode);
  const groups = [...MODES].sort().map((mode) => [mode, String(modes.filter((each) => each === mode).length)]);
  for (const chart of ["histogram", "cdf", "scatter", "time", "box"]) {
    await go(link("analysis", { chart, metric: "goodputBytesPerSec", groupBy: ["mode"], bucketMs: 60_000 }));
    await until(
      `n of the ${chart}`,
      async () =>
        (await page.$("[data-testid=chart-n]")) && (await textOf("[data-testid=chart-n]")) === `n = ${modes.length}`,
    );
    await until(`the ${chart} is drawn`, () =>
      page.evaluate(() =>
        [...document.querySelectorAll("canvas")].some(
          (canvas) => new Set(canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height).data).size > 20,
        ),
      ),
    );
  }
  expect(await layoutFaults(page)).toEqual([]);
  await press(page, "button", "Export");
  expect(((await saved("PNG image", ".png", "menuitem")) as Buffer).subarray(1, 4).toString()).toBe("PNG");
  await press(page, "button", "Export");
  expect(String(await saved("SVG image", ".svg", "menuitem"))).toMatch(new RegExp(`^<svg[^]*n=${groups[1]![1]}`));
  await press(page, "button", "Export");
  const csv = String(await saved("Numbers as CSV", ".csv", "menuitem"))
    .trim()
    .split("\r\n");
  expect(csv.map((line) => line.split(",").slice(0, 2))).toEqual([["group", "n"], ...groups]);
});

test("analysis: the difference between two groups comes with a warning when there are few clients", async () => {
  await go(link("analysis", { metric: "netBytes", difference: { field: "mode", a: "direct", b: "coded" } }));
  await page.waitForSelector("[data-testid=difference]");
  const answer = await textOf("[data-testid=difference]");
  expect(answer).toMatch(/Net, coded minus direct: \S+ k?B\./);
  expect(answer).toMatch(/Not enough clients for an interval: \d+ in (both groups|the smaller group), 20 are needed/);
  expect(answer).toContain("20 are needed. The difference may be chance");
  expect(answer).not.toContain("confidence interval:");
  expect(answer).toContain("Hodges-Lehmann");
  expect(await layoutFaults(page)).toEqual([]);
});

test("configuration: a change with a reason makes a new version and reaches live proxies", async () => {
  await go("#/configuration");
  await sees(page, "all settings are at their defaults");
  expect(await layoutFaults(page)).toEqual([]);
  await fill(page, "proxy.heartbeatMs", "1000");
  await fill(page, "Reason", "see proxies sooner");
  await press(page, "button", "Save 1 change");
  await until("version 1", async () => (await textOf("[data-testid=config-version]")) === "version 1");
  await sees(page, "see proxies sooner");
  await until("reports arrive every second", async () => {
    const seenAt = async (): Promise<number> =>
      (await read<{ proxies: { lastSeenMs: number }[] }>("/v1/fleet")).proxies[0]?.lastSeenMs ?? 0;
    const first = await seenAt();
    const second = await until("the next report", async () => ((await seenAt()) > first ? seenAt() : false));
    return second - first < 1600;
  });
});

test("configuration: a value out of range cannot be saved", async () => {
  await go("#/configuration");
  await fill(page, "proxy.heartbeatMs", "0");
  await sees(page, "must be at least");
  expect(await page.$$("form[aria-label='Unsaved changes'] button[type=submit][disabled]")).toHaveLength(1);
});

test("one traced download: each packet of the record is in the trace, and all are drawn", async () => {
  const { version, values } = await read<{ version: number; values: Record<string, unknown> }>("/v1/config");
  const { csrfToken } = await read<{ csrfToken: string }>("/v1/login");
  const change = {
    baseVersion: version,
    values: { ...values, "client.tracePerMille": 1000 },
    reason: "trace every download",
  };
  const answer = await fetch(`${fleet.origo.url}/v1/config`, {
    method: "PUT",
    headers: { "content-type": "application/json", "x-csrf-token": csrfToken },
    body: JSON.stringify(change),
  });
  expect(answer.status).toBe(200);
  await download(fleet.origo.url, media, "coded", "--range", "0-399999", "--comment", "traced");
  const record = await until("the record", async () => (await records()).find(({ comment }) => comment === "traced"));
  expect(record).toMatchObject({ configVersion: version + 1, fallback: null });
  const trace = await until("its trace", async () => {
    const response = await fetch(`${fleet.origo.url}/v1/records/${record.id}/trace`);
    return response.ok && ((await response.json()) as Trace);
  });
  for (const [index, proxy] of record.proxies.entries()) {
    const counted = (fate: string): number =>
      trace.packets.filter(([, from, , as]) => from === index && as === fate).length;
    const { innovative, duplicate, late, rejected } = proxy;
    expect({ innovative, duplicate, late, rejected }).toEqual({
      innovative: counted("innovative"),
      duplicate: counted("duplicate"),
      late: counted("late"),
      rejected: counted("rejected"),
    });
  }
  expect(trace.generationCount).toBe(record.generationCount);
  expect(trace.packets.filter(([, , , as]) => as === "innovative")).toHaveLength(record.symbolCount ?? NaN);
  expect(trace.feedback).toHaveLength(record.feedbackFrames ?? NaN);
  expect(Math.max(...trace.packets.map(([ms]) => ms))).toBeLessThanOrEqual(
    record.durationMs + (record.closeMs ?? 0) + 100,
  );
  expect(record).toMatchObject({
    clientVersion: expect.any(String),
    agent: expect.stringMatching(/^node\//),
    os: "linux",
    engine: expect.any(String),
    connectMs: expect.any(Number),
  });
  await go(`#/downloads/${record.id}`);
  await page.waitForSelector(
    `[aria-label="Arrival of ${trace.packets.length} packets from ${record.proxies.length} proxies over time"] canvas`,
  );
  await page.waitForSelector(`[aria-label="When each of ${trace.generationCount} generations was filled"] canvas`);
  expect(await layoutFaults(page)).toEqual([]);
});

test("experiments: an experiment started in the page puts its arms into the records", async () => {
  await go("#/experiments");
  const { csrfToken } = (await (await fetch(`${fleet.origo.url}/v1/login`)).json()) as { csrfToken: string };
  const arms = [0, 1000].map((tracePerMille, index) => ({
    name: ["control", "treatment"][index],
    weight: 1,
    values: { "client.tracePerMille": tracePerMille },
  }));
  await fetch(`${fleet.origo.url}/v1/experiments`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-csrf-token": csrfToken },
    body: JSON.stringify({ name: "traces", question: "", arms }),
  });
  await page.reload();
  await sees(page, "draft");
  await press(page, "button", "Start");
  await page.waitForSelector("[role=dialog]");
  await page.locator("[role=dialog] button[type=submit]").click();
  await sees(page, "running");
  expect(await layoutFaults(page)).toEqual([]);
  await Promise.all([1, 2].map(() => download(fleet.origo.url, media, "coded", "--range", "0-99999")));
  const drawn = (await records()).flatMap((record) => record.experiments ?? []);
  expect(drawn).toHaveLength(2);
  expect(["control", "treatment"]).toEqual(expect.arrayContaining(drawn.map(({ arm }) => arm)));
  await press(page, "link", "Analyse by arm");
  await until(
    "n by arm",
    async () => (await page.$("[data-testid=chart-n]")) && (await textOf("[data-testid=chart-n]")) === "n = 2",
  );
});

test("errors: a report is shown as text, not as HTML", async () => {
  const report = {
    id: "5c9f1f0e-7d6a-4a57-9a5e-2f0d8b0f5a11",
    atMs: Date.now(),
    source: "proxy",
    kind: "egressRefused",
    message: "<img src=x onerror=alert(1)>",
  };
  await fetch(`${fleet.origo.url}/v1/errors`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ errors: [report] }),
  });
  await go("#/errors");
  await sees(page, "<img src=x onerror=alert(1)>");
  expect(await layoutFaults(page)).toEqual([]);
});

test("library: what an admin publishes plays from its page in a frame of another site", async () => {
  const folder = path.join(repoRoot, "lab/stack/sample/media/cmaf");
  const files = readdirSync(folder);
  await go("#/library");
  await sees(page, "Drop a video here");
  const input = (await page.$('input[aria-label="Choose files"]')) as ElementHandle<HTMLInputElement>;
  const keyFolder = await mkdtemp(path.join(os.tmpdir(), "tributary-key-"));
  const keyFile = path.join(keyFolder, "notes.txt");
  await writeFile(keyFile, generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }));
  await input.uploadFile(...files.map((file) => path.join(folder, file)), keyFile);
  await sees(page, "notes.txt: a private key");
  await rm(keyFolder, { recursive: true });
  await fill(page, "Name in the address", "<b>");
  await sees(page, "a-z, 0-9");
  await fill(page, "Name in the address", "sample");
  await press(page, "button", "Publish");
  await sees(page, "Everyone can watch it at");
  await sees(page, "proxy-1, proxy-2");
  expect(await layoutFaults(page)).toEqual([]);
  const { publications } = await read<LibraryResponse>("/v1/library");
  expect(publications).toMatchObject([{ name: "sample", state: "released", missingObjects: 0, files: files.length }]);

  const { address } = publications[0]!;
  const site = createServer((_request, response) =>
    response.setHeader("content-type", "text/html").end(`<iframe src="${address}" allow="autoplay"></iframe>`),
  ).listen(0, "127.0.0.1");
  await once(site, "listening");
  await page.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}/`);
  const frame = await (await page.waitForSelector("iframe"))!.contentFrame();
  await frame.waitForFunction(() => (document.querySelector("video")?.readyState ?? 0) >= 3);
  await frame.evaluate(() => {
    const video = document.querySelector("video")!;
    video.muted = true;
    return video.play();
  });
  await frame.waitForFunction(() => document.querySelector("video")!.currentTime > 0.5);
  site.close();

  await go("#/library");
  await press(page, "button", "Unpublish");
  await page.waitForSelector("[role=dialog]");
  await page.locator("[role=dialog] button[type=submit]").click();
  await sees(page, "Nothing is published yet.");
  expect((await fetch(address)).status).toBe(404);
});

test("the keyboard alone reaches the skip link and opens and closes the dialog of a filter", async () => {
  await go("#/downloads");
  await page.reload();
  await sees(page, "+ Filter");
  await page.keyboard.press("Tab");
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Skip to content");
  await page.keyboard.press("Enter");
  expect(await page.evaluate(() => document.activeElement?.id)).toBe("main");
  await page.keyboard.press("Tab");
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("+ Filter");
  await page.keyboard.press("Enter");
  await page.waitForSelector("[role=dialog]");
  await page.keyboard.press("Escape");
  await until("the dialog is closed", async () => (await page.$("[role=dialog]")) === null);
});
