/** The digests that a PeerTube site publishes: a stand-in site, and proxies that all tell the same lie. */
import { build, expectWhole, fetchAll, PROXIED_MODES, type Scene } from "../../test/scene";
import { bytesOf, sha256Of } from "../../test/support";
import type { GetOptions } from "../api";
import { SegmentCheck } from "./segment-check";
import { segmentsIn } from "./site-digests";

const VIDEO = "9c9de5e8-0a1e-484a-b099-e80766180a6d";
const FOLDER = `static/streaming-playlists/hls/${VIDEO}`;
const FILE = "5f2b7e0c-720-fragmented.mp4";
const PATH = `${FOLDER}/${FILE}`;
const API = `/api/v1/videos/${VIDEO}`;
/** The site has no digest of the first bytes, which are no segment. */
const SEGMENTS = [
  { start: 1000, end: 59_999 },
  { start: 60_000, end: 119_999 },
  { start: 120_000, end: 199_999 },
];
const [, second] = SEGMENTS;
const LIES = [{ liesFromByte: 7000 }, { liesFromByte: 7000 }];

async function buildSite(moods: object[], json?: (scene: Scene) => [digestsUrl: string, digests: string]) {
  const made = await build(moods, 200_000);
  const { body, pages, url } = made.origin;
  const ranges = SEGMENTS.map(({ start, end }) => [`${start}-${end}`, sha256Of(body.subarray(start, end + 1))]);
  const [digestsUrl, digests] = json?.(made) ?? [
    `${url}/${FOLDER}/c1-segments-sha256.json`,
    JSON.stringify({ [FILE]: Object.fromEntries(ranges) as object }),
  ];
  pages.set(API, JSON.stringify({ streamingPlaylists: [{ segmentsSha256Url: digestsUrl }] }));
  if (URL.canParse(digestsUrl)) pages.set(new URL(digestsUrl).pathname, digests);
  return made;
}

async function waitUntil(isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 400; tries++) {
    if (await isSo()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error("It did not become so within 4 s.");
}

const questions = ({ origin }: Scene): number => origin.requests.filter(({ path }) => path === API).length;

describe.each(PROXIED_MODES)("%s", (mode) => {
  test("site digests: the site vouches for a segment, and is asked once", async () => {
    const made = await buildSite([{}, {}]);
    for (const range of [second!, SEGMENTS[2]!]) {
      const outcome = await fetchAll(PATH, { mode, connections: 2, range });
      expectWhole(outcome, made.origin.body.subarray(range.start, range.end + 1));
      expect(outcome.record).toMatchObject({ vouchedBy: "site", fallback: null, directBytes: 0 });
    }
    expect(questions(made)).toBe(1);
  });

  test("site digests: no wrong byte is handed on if all proxies tell the same lie", async () => {
    const { origin, client } = await buildSite(LIES);
    const outcome = await fetchAll(PATH, { mode, connections: 2, range: second! });
    expectWhole(outcome, origin.body.subarray(second!.start, second!.end + 1));
    expect(outcome.record).toMatchObject({ vouchedBy: "site", fallback: { kind: "bodyDiffers", bytes: 60_000 } });
    expect(outcome.record.fallback!.message).toContain("bytes 60000-119999 do not have the digest");
    expect(client.live.fallbacks).toBe(1);
  });

  test("site digests: a whole file is checked but for the bytes that have no digest", async () => {
    const honest = await buildSite([{}, {}]);
    const outcome = await fetchAll(PATH, { mode, connections: 2 });
    expectWhole(outcome, honest.origin.body);
    expect(outcome.record).toMatchObject({ vouchedBy: "nobody", fallback: null });
    for (const proxy of honest.proxies) proxy.moods.liesFromByte = 130_000;
    const lied = await fetchAll(PATH, { mode, connections: 2 });
    expectWhole(lied, honest.origin.body);
    expect(lied.record.fallback).toMatchObject({ kind: "bodyDiffers" });
  });
});

test.each([0, 150_000])("site digests: the proxies' body of only %d bytes is not the file", async (totalBytes) => {
  const { origin } = await buildSite([{ totalBytes }, { totalBytes }]);
  const outcome = await fetchAll(PATH, { mode: "parallel-http", connections: 2 });
  expectWhole(outcome, origin.body);
  expect(outcome.record).toMatchObject({ vouchedBy: "site", fallback: { kind: "bodyDiffers" } });
});

test("site digests: the site sends only what follows the segments that were right", async () => {
  const { origin } = await buildSite([{ liesFromByte: 130_000 }, { liesFromByte: 130_000 }]);
  const range = { start: 1000, end: 199_999 };
  const outcome = await fetchAll(PATH, { connections: 2, range });
  expectWhole(outcome, origin.body.subarray(range.start));
  expect(outcome.record).toMatchObject({ vouchedBy: "site", fallback: { kind: "bodyDiffers", bytes: 80_000 } });
});

test("site digests: a download that waits for the site can be aborted", async () => {
  const { origin, client } = await buildSite([{}, {}], () => ["/stall", ""]);
  const download = client.get(`${origin.url}/${PATH}`, { connections: 2, range: second! });
  while (!origin.requests.some(({ path }) => path === "/stall")) await new Promise((resolve) => setTimeout(resolve, 5));
  download.abort();
  expect(await download.record).toMatchObject({ outcome: "aborted", netBytes: 0 });
});

test("site digests: whoever forbids the fallback keeps the client away from the site", async () => {
  const made = await buildSite([{}, {}]);
  for (const allowFallback of [false, "proxies"] as const) {
    const { record } = await fetchAll(PATH, { connections: 2, range: second!, allowFallback });
    expect(record).toMatchObject({ outcome: "complete", vouchedBy: "nobody" });
  }
  expect(questions(made)).toBe(0);
});

test.each<[string, (scene: Scene) => [string, string]]>([
  ["are at another host", () => ["http://127.0.0.2:9/segments-sha256.json", ""]],
  ["are not there", () => ["/status-404", ""]],
  ["never come", () => ["/stall", ""]],
  ["have no address", () => ["http://", ""]],
  ["are no JSON", ({ origin }) => [`${origin.url}/digests`, "<p>"]],
  ["are longer than the limit", ({ origin }) => [`${origin.url}/digests`, "[".padEnd(5_000_000)]],
  ["redirect", ({ origin }) => [`${origin.url}/loop`, ""]],
])("site digests: digests that %s change nothing", async (_, json) => {
  const { origin } = await buildSite([{}, {}], json);
  const outcome = await fetchAll(PATH, { connections: 2, range: second! });
  expectWhole(outcome, origin.body.subarray(second!.start, second!.end + 1));
  expect(outcome.record).toMatchObject({ vouchedBy: "nobody", fallback: null });
});

test("site digests: other addresses cause no question", async () => {
  const made = await buildSite([{}, {}]);
  for (const path of ["file", `static/streaming-playlists/hls/private/${VIDEO}/${FILE}`, `${FOLDER}/master.m3u8`])
    await fetchAll(path, { connections: 2 });
  expect(questions(made)).toBe(0);
});

describe("site digests: a file in object storage on another host than its page", () => {
  const STORED = `bucket/hls/${VIDEO}/${FILE}`;
  const pageOf = ({ origin }: Scene): string => origin.url.replace("127.0.0.1", "localhost");
  const place: Record<string, (scene: Scene) => string> = {
    "beside the file": ({ origin }) => `${origin.url}/bucket/hls/${VIDEO}/segments-sha256.json`,
    "at the page's site": (made) => `${pageOf(made)}/segments-sha256.json`,
  };

  test.each(Object.keys(place))("has the digests that its page's site names %s", async (where) => {
    const made = await buildSite(LIES, (scene) => [
      place[where]!(scene),
      JSON.stringify({ [FILE]: { "60000-119999": sha256Of(scene.origin.body.subarray(60_000, 120_000)) } }),
    ]);
    const outcome = await fetchAll(STORED, { connections: 2, range: second!, pageOrigin: pageOf(made) });
    expectWhole(outcome, made.origin.body.subarray(second!.start, second!.end + 1));
    expect(outcome.record).toMatchObject({ vouchedBy: "site", fallback: { kind: "bodyDiffers" } });
    expect(questions(made)).toBe(1);
  });

  test("has none without a page, or if the site names a third host", async () => {
    const made = await buildSite([{}, {}], () => ["http://127.0.0.2:9/segments-sha256.json", ""]);
    for (const page of [{}, { pageOrigin: made.origin.url }, { pageOrigin: pageOf(made) }])
      expect((await fetchAll(STORED, { connections: 2, range: second!, ...page })).record.vouchedBy).toBe("nobody");
    expect(questions(made)).toBe(1);
  });
});

test("site digests: only digests of ranges that do not overlap count, in order", () => {
  const sha256 = "AB".repeat(32);
  const ranges = { "50-99": sha256, "0-49": sha256, "40-60": sha256, "9-8": sha256, "100-": sha256, "200-299": "ab" };
  expect([...segmentsIn({ a: { ...ranges, "300-99999999": sha256 }, b: sha256, c: null, d: "ab" })]).toEqual([
    ["a", [0, 50].map((start) => ({ start, end: start + 49, sha256: "ab".repeat(32) }))],
    ["b", [{ start: 0, end: Infinity, sha256: "ab".repeat(32) }]],
  ]);
  for (const json of [null, 1, "text", []]) expect(segmentsIn(json).size).toBe(0);
});

test("segment check: bytes wait for the end of their segment, in any pieces", () => {
  const body = bytesOf(1000);
  const segments = [100, 400].map((start) => ({
    ...{ start, end: start + 299, sha256: sha256Of(body.subarray(start, start + 300)) },
  }));
  for (const step of [1, 7, 299, 300, 301, 1000]) {
    const check = new SegmentCheck(undefined, undefined);
    check.learn(segments);
    const got: Uint8Array[] = [];
    for (let at = 0; at < 1000; at += step)
      got.push(check.take(body.subarray(at, at + step), { status: 200, headers: {}, totalBytes: 1000 }));
    expect(Buffer.compare(Buffer.concat(got), body)).toBe(0);
    expect(check).toMatchObject({ fault: undefined, isWhole: false });
  }
});

test.each<[number, [number, number] | undefined, number, boolean]>([
  [200, undefined, 99, true],
  [200, undefined, 100, false],
  [206, [10, 99], 89, true],
  [206, [10, 99], 90, false],
  [206, [0, 49], 50, false],
  [206, [100, 199], 10, false],
])("segment check: a body with status %d for %j of %d bytes is refused: %j", (status, asked, totalBytes, isRefused) => {
  const range = asked && { start: asked[0], end: asked[1] };
  const check = new SegmentCheck(range, undefined);
  check.learn([{ start: 10, end: 99, sha256: "" }]);
  const got = check.take(new Uint8Array(5), { status, headers: {}, totalBytes });
  expect(check.fault?.kind).toBe(isRefused ? "bodyDiffers" : undefined);
  if (isRefused) expect(got).toHaveLength(0);
});

test("segment check: all bytes wait for the digests, but no more than a segment may have", () => {
  const body = bytesOf(1000);
  const head = { status: 200, headers: {}, totalBytes: 1000 };
  const late = new SegmentCheck(undefined, undefined);
  expect(late.take(body, head)).toHaveLength(0);
  late.learn([{ start: 0, end: 999, sha256: sha256Of(body) }]);
  expect(Buffer.compare(late.take(new Uint8Array(), head), body)).toBe(0);
  expect(late.isWhole).toBe(true);
  const long = new SegmentCheck(undefined, undefined);
  expect(long.take(new Uint8Array(16 * 2 ** 20), head)).toHaveLength(0);
  expect(long.take(body, head)).toHaveLength(16 * 2 ** 20 + 1000);
  expect(long.isWhole).toBe(false);
});

test.each([
  ["with its digest", 0, 1000, undefined],
  ["with another", 1, 0, "bodyDiffers"],
])("segment check: a whole file %s", (_, change, handedOn, kind) => {
  const body = bytesOf(1000);
  const check = new SegmentCheck(undefined, undefined);
  check.learn([{ start: 0, end: Infinity, sha256: sha256Of(body) }]);
  const head = { status: 200, headers: {}, totalBytes: null };
  expect(
    check.take(
      body.map((byte, at) => (at === 500 ? byte ^ change : byte)),
      head,
    ),
  ).toHaveLength(0);
  expect(check.finish(head)).toHaveLength(handedOn);
  expect(check.fault?.kind).toBe(kind);
});

describe("site digests: a caller that must not fall back to the site", () => {
  const LIVE = "0-000012.ts";
  const asking = (more: GetOptions = {}) => ({
    ...({ mode: "coded-mutp", connections: 2, range: second!, allowFallback: "proxies" } as const),
    ...{ mayAskSite: () => Promise.resolve(true), ...more },
  });
  const right = ({ origin }: Scene) => origin.body.subarray(second!.start, second!.end + 1);
  const digestsAsked = ({ origin }: Scene) => origin.requests.filter(({ path }) => path.endsWith(".json")).length;
  const untilKnown = (made: Scene, count = 1) => waitUntil(() => digestsAsked(made) >= count);

  test("does not wait for the first answer, and is checked from then on", async () => {
    const made = await buildSite([{}, {}]);
    const first = await fetchAll(PATH, asking());
    expectWhole(first, right(made));
    await untilKnown(made);
    let held = 0;
    const checked = await fetchAll(PATH, asking({ onHeld: () => (held += 1) }));
    expectWhole(checked, right(made));
    expect([checked.record.vouchedBy, held > 0]).toEqual(["site", true]);
  });

  test("waits for the digests of another video of a site that has some", async () => {
    const made = await buildSite([{}, {}]);
    await fetchAll(PATH, asking({ purpose: "comparison" }));
    await untilKnown(made);
    const other = VIDEO.replace("9c", "ab");
    made.origin.pages.set(API.replace(VIDEO, other), made.origin.pages.get(API)!);
    const { record } = await fetchAll(PATH.replace(VIDEO, other), asking());
    expect(record.vouchedBy).toBe("site");
  });

  test.each([
    ["all that lie", LIES, ["p0", "p1"]],
    ["the one that lies", [{ liesFromByte: 7000 }], ["p0"]],
  ])("gets no byte of a lie, and %s are named", async (_, moods, names) => {
    const made = await buildSite(moods);
    await fetchAll(PATH, asking({ purpose: "comparison" }));
    await untilKnown(made);
    const { record, body } = await fetchAll(PATH, asking());
    expect([record.outcome, record.error?.kind, record.netBytes, body]).toEqual([
      ...["failed", "bodyDiffers", 0, undefined],
    ]);
    const liars = () => made.client.live.proxies.filter(({ lies }) => lies > 0).map(({ name }) => name);
    await waitUntil(() => liars().length === names.length);
    expect(liars()).toEqual(names);
  });

  test("blames nobody for digests that are wrong, and does without them", async () => {
    const made = await buildSite([{}, {}], ({ origin }) => [
      `${origin.url}/${FOLDER}/c1-segments-sha256.json`,
      JSON.stringify({ [FILE]: { [`${second!.start}-${second!.end}`]: "0".repeat(64) } }),
    ]);
    await fetchAll(PATH, asking({ purpose: "comparison" }));
    await untilKnown(made);
    const { record } = await fetchAll(PATH, asking());
    expect(record.error?.kind).toBe("bodyDiffers");
    const again = async () => (await fetchAll(PATH, asking())).record;
    await waitUntil(async () => (await again()).outcome === "complete");
    expect(await again()).toMatchObject({ vouchedBy: "nobody", fallback: null });
    expect(made.client.live.proxies.map(({ lies }) => lies)).toEqual([0, 0]);
  });

  test("checks the files of a live stream, asks again for a new one, and heeds a digest that changed", async () => {
    const made = await buildSite([{}, {}], ({ origin }) => [
      `${origin.url}/${FOLDER}/segments-sha256.json`,
      JSON.stringify({ [LIVE]: sha256Of(origin.body) }),
    ]);
    const { pages, body } = made.origin;
    const live: GetOptions = asking();
    delete live.range;
    const at = (name: string) => fetchAll(`${FOLDER}/${name}`, live);
    await fetchAll(`${FOLDER}/${LIVE}`, { ...live, purpose: "comparison" });
    await untilKnown(made);
    const known = await at(LIVE);
    expectWhole(known, body);
    expect(known.record.vouchedBy).toBe("site");
    const json = `/${FOLDER}/segments-sha256.json`;
    pages.set(json, JSON.stringify({ [LIVE]: sha256Of(body), "0-000013.ts": "0".repeat(64) }));
    await new Promise((resolve) => setTimeout(resolve, 1000));
    expect((await at("0-000014.ts")).record).toMatchObject({ outcome: "complete", vouchedBy: "nobody" });
    expect(digestsAsked(made)).toBe(2);
    pages.set(json, JSON.stringify({ "0-000013.ts": sha256Of(body) }));
    expect((await at("0-000013.ts")).record.error?.kind).toBe("bodyDiffers");
    await waitUntil(() => digestsAsked(made) === 3);
    await waitUntil(async () => (await at("0-000013.ts")).record.vouchedBy === "site");
    expect(made.client.live.proxies.map(({ lies }) => lies)).toEqual([0, 0]);
  });

  test("asks nothing that it must not", async () => {
    const made = await buildSite([{}, {}]);
    const { record } = await fetchAll(PATH, asking({ mayAskSite: () => Promise.resolve(false) }));
    expect(record).toMatchObject({ outcome: "complete", vouchedBy: "nobody" });
    expect(questions(made)).toBe(0);
  });
});
