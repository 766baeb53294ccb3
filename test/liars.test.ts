/**
 * A player in a real Chromium plays another origin's media through four proxies, one of which lies. Every segment that
 * the player gets must be right, and the player must see no error.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { isByBrowser, segmentMismatch, startFleet, type Fleet } from "@tributary/lab-stack";
import { faults, past, playPage } from "./support";

/** Honest proxies hear from the origin this much later than a quick liar, and a slow liar this much later than they. */
const LATER_MS = 100;

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
  const liar = { NODE_OPTIONS: `--import ${path.join(__dirname, "lying-answers.mjs")}` };
  const proxyEnv = (index: number): Record<string, string> => (index === 1 ? liar : {});
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
