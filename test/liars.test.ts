/**
 * A player in a real Chromium plays another origin's media through four proxies, one of which lies. Every segment that
 * the player gets must be right, and the player must see no error. Three of the four lie about published objects.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { isByBrowser, publisherCode, segmentMismatch, startFleet, type Fleet } from "@tributary/lab-stack";
import { cli, eventually, faults, getJson, past, playPage } from "./support";

/** Honest proxies hear from the origin this much later than a quick liar, and a slow liar this much later than they. */
const LATER_MS = 100;

/** The proxy that tells the truth about published objects. */
const HONEST = 3;

let fleet: Fleet;
let origin: Server;
let base: string;
/** The media that proxies asked for. */
let proxied: string[] = [];
const proxiedCount = (): number => new Set(proxied.filter((url) => url.endsWith(".m4s"))).size;

/**
 * Gives the sample's media under addresses that tell the liar what to do: `/MODE/WHEN/lie-WHAT/media/...`. Each test
 * has its own addresses, so no proxy has an answer in its cache from the test before.
 */
async function answer({ url = "", headers }: IncomingMessage, response: ServerResponse): Promise<void> {
  const [, when, file] = /^\/[\w-]+\/(\w+)\/lie-\w+(\/media\/.*)$/.exec(url) ?? [];
  const isLiar = headers["x-liar"] !== undefined;
  if (!isByBrowser({ userAgent: headers["user-agent"] ?? "" })) proxied.push(url);
  if (isLiar === (when === "late")) await new Promise((resolve) => setTimeout(resolve, LATER_MS));
  const { range } = headers;
  const media = await fetch(`${fleet.sample.url}${file}`, { headers: range === undefined ? {} : { range } });
  const body = Buffer.from(await media.arrayBuffer());
  const given = Object.fromEntries(media.headers);
  for (const name of ["connection", "keep-alive", "transfer-encoding"]) delete given[name];
  response.writeHead(media.status, { ...given, "content-length": String(body.length) }).end(body);
}

beforeAll(async () => {
  origin = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  const host = `127.0.0.1:${(origin.address() as AddressInfo).port}`;
  base = `http://${host}`;
  const sender = `--import ${path.join(__dirname, "lying-objects.mjs")}`;
  const answers = `--import ${path.join(__dirname, "lying-answers.mjs")}`;
  const proxyEnv = (index: number): Record<string, string> =>
    index === HONEST ? {} : { NODE_OPTIONS: index === 1 ? `${sender} ${answers}` : sender };
  fleet = await startFleet({ proxyCount: 4, ports: "any", allow: [host], proxyEnv });
});

afterAll(async () => {
  await fleet?.stop();
  origin?.closeAllConnections();
  origin?.close();
});

test.each([
  ["coded", "first", "status"],
  ["coded", "first", "length"],
  ["coded", "first", "bytes"],
  ["coded", "late", "bytes"],
  ["split-http", "first", "status"],
  ["parallel-http", "first", "bytes"],
])(
  "liars: %s, one of four proxies lies (%s, about the %s): the page plays right segments",
  async (mode, when, what) => {
    proxied = [];
    const lie = `/${mode}/${when}/lie-${what}`;
    const source = encodeURIComponent(`${base}${lie}/media/cmaf/master.m3u8`);
    const { state } = await playPage({
      url: `${fleet.sample.url}/hls.html?source=${source}`,
      defaults: { origoUrl: fleet.origo.url, mode, connections: 4 },
      playbackRate: 4,
      until: (state) => past(12)(state) && proxiedCount() >= 3,
    });
    expect(state.errors).toEqual([]);
    expect(state.currentTime).toBeGreaterThanOrEqual(12);
    const segments = state.segments.map((segment) => ({ ...segment, url: segment.url.replace(lie, "") }));
    expect(segments.length).toBeGreaterThan(4);
    expect(faults(segments.map((segment) => segmentMismatch(segment)))).toEqual([]);
    expect(proxiedCount()).toBeGreaterThanOrEqual(3);
  },
);

describe("liars: three of four lie about a published file", () => {
  let folder: string;
  beforeAll(() => (folder = mkdtempSync(path.join(tmpdir(), "tributary-liars-"))));
  afterAll(() => rmSync(folder, { recursive: true }));

  const published = async (content: Buffer): Promise<string> => {
    const code = await publisherCode(fleet.origo.url);
    writeFileSync(path.join(folder, "film.mp4"), content);
    const words = ["--name", "film", "--key", path.join(folder, "key.pem"), "--code", code, "--origo", fleet.origo.url];
    const { stdout } = await cli("publish", path.join(folder, "film.mp4"), ...words);
    return /^play +(\S+)$/m.exec(stdout.toString())![1]!;
  };

  test("the client gets it as it was signed, blames no honest proxy, and Origo has the evidence", async () => {
    const content = randomBytes(3_000_000);
    const address = await published(content);
    for (const mode of ["coded", "uncoded-mutp"]) {
      const output = path.join(folder, mode);
      const { status } = await cli("get", address, "--mode", mode, "--output", output, "--origo", fleet.origo.url);
      expect(status).toBe(0);
      expect(Buffer.compare(readFileSync(output), content)).toBe(0);
    }
    interface Rows {
      proxies: { name: string; convictedBy?: number; hintedBy?: number }[];
    }
    const convicted = await eventually(
      async () => (await getJson<Rows>(`${fleet.origo.url}/v1/fleet`)).proxies.filter(({ convictedBy }) => convictedBy),
      (rows) => rows.length > 0,
    );
    expect(convicted.length).toBeGreaterThan(0);
    expect(convicted.map(({ name }) => name)).not.toContain(`proxy-${HONEST + 1}`);
    const hinted = await eventually(
      async () => (await getJson<Rows>(`${fleet.origo.url}/v1/fleet`)).proxies.filter(({ hintedBy }) => hintedBy),
      (rows) => rows.length > 0,
    );
    expect(hinted.length).toBeGreaterThan(0);
    expect(hinted.map(({ name }) => name)).not.toContain(`proxy-${HONEST + 1}`);
    interface Records {
      records: { url: string; vouchedBy?: string; proxies: { name: string; error?: { kind: string } }[] }[];
    }
    const { records } = await eventually(
      () => getJson<Records>(`${fleet.origo.url}/v1/records?limit=50`),
      ({ records }) => records.filter(({ url }) => url === address).length >= 2,
    );
    const own = records.filter(({ url }) => url === address);
    expect(own.map(({ vouchedBy }) => vouchedBy)).toEqual(["publisher", "publisher"]);
    const blamed = own.flatMap(({ proxies }) => proxies.filter(({ error }) => error?.kind === "digestMismatch"));
    expect(blamed.map(({ name }) => name)).not.toContain(`proxy-${HONEST + 1}`);
  });
});
