/** What Origo's records say of a page's requests that the proxies did not serve. Real Chromium, real proxies. */
import { openBrowser, recordsSince, startFleet, type Fleet, type OpenBrowser } from "@tributary/lab-stack";
import type { DownloadRecord } from "@tributary/contract/schema";
import type { Page } from "puppeteer-core";
import { eventually } from "./support";

const BYTES = 300_000;

let fleet: Fleet;
let open: OpenBrowser;
let page: Page;

beforeAll(async () => {
  fleet = await startFleet({ proxyCount: 2, ports: "any" });
  open = await openBrowser({ headless: true, defaults: { origoUrl: fleet.origo.url, mode: "coded", connections: 2 } });
  page = await open.browser.newPage();
  await page.goto(fleet.sample.url);
});

afterAll(async () => {
  await open.close();
  await fleet.stop();
});

const pathOf = (name: string): string => `/__size/${BYTES}.mp4?${name}`;
const body = { fetch: "(await fetch(PATH)).arrayBuffer()", xhr: xhrOf() };

/** The page gets `name` whole. */
async function get(name: string, by: keyof typeof body = "fetch"): Promise<void> {
  const code = body[by].replace("PATH", JSON.stringify(pathOf(name)));
  expect(await page.evaluate(`(async () => (await ${code}).byteLength)()`)).toBe(BYTES);
}

function xhrOf(): string {
  return `new Promise((resolve, reject) => {
    const xhr = new XMLHttpRequest();
    xhr.open("GET", PATH);
    xhr.responseType = "arraybuffer";
    xhr.onload = () => resolve(xhr.response);
    xhr.onerror = reject;
    xhr.send();
  })`;
}

/** The records of what the page asked for since `sinceMs`, once there are `count`. */
const recordsFrom = (sinceMs: number, count: number): Promise<DownloadRecord[]> =>
  eventually(
    () => recordsSince(fleet, sinceMs),
    (records) => records.length >= count,
  );

const signal = (name: NodeJS.Signals): void => fleet.proxies.forEach(({ pid }) => process.kill(pid, name));

test("a comparison says that it is one, and what the proxies carry is a request", async () => {
  const startedMs = Date.now();
  for (let count = 0; count < 20 && (await recordsSince(fleet, startedMs)).length < 2; count++) {
    await get(`first${count}`);
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  const records = await recordsFrom(startedMs, 2);
  expect(new Set(records.map(({ purpose }) => purpose))).toEqual(new Set(["comparison", "request"]));
  for (const record of records)
    expect(record).toMatchObject({ outcome: "complete", netBytes: BYTES, directBytes: 0, fallback: null });
});

test.each(["fetch", "xhr"] as const)(
  "the site won the race (%s): a complete download, all of it direct",
  async (by) => {
    const startedMs = Date.now();
    signal("SIGSTOP");
    try {
      await get(`slow-${by}`, by);
    } finally {
      signal("SIGCONT");
    }
    const [record] = await recordsFrom(startedMs, 1);
    expect(record).toMatchObject({
      ...{ purpose: "request", mode: "coded", outcome: "complete", status: 200, sha256: null },
      ...{ netBytes: BYTES, directBytes: BYTES, fallback: { kind: "siteFirst", bytes: BYTES } },
    });
    expect(record?.error).toBeUndefined();
    expect(record?.durationMs).toBeGreaterThan(400);
  },
);

test("a request that the page itself aborted says so, and has no fallback", async () => {
  const startedMs = Date.now();
  signal("SIGSTOP");
  try {
    const given = page.evaluate(`(async () => {
      const controller = new AbortController();
      setTimeout(() => controller.abort(), 100);
      return fetch(${JSON.stringify(pathOf("given-up"))}, { signal: controller.signal }).catch(({ name }) => name);
    })()`);
    expect(await given).toBe("AbortError");
  } finally {
    signal("SIGCONT");
  }
  const [record] = await recordsFrom(startedMs, 1);
  expect(record).toMatchObject({ purpose: "request", outcome: "aborted", netBytes: 0, fallback: null });
  expect(record?.error).toEqual({ kind: "aborted", message: "the page gave it up" });
});

test("the proxies fail: a complete download, with the reason and the bytes of the site", async () => {
  const startedMs = Date.now();
  await Promise.all(fleet.proxies.map((proxy) => proxy.kill()));
  await get("dead");
  const [record] = await recordsFrom(startedMs, 1);
  expect(record).toMatchObject({ purpose: "request", mode: "coded", outcome: "complete", netBytes: BYTES });
  expect(record?.fallback?.bytes).toBe(BYTES);
});
