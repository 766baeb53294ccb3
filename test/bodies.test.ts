/**
 * Real proxies in front of an origin whose answers differ from request to request, and with one liar among them. What
 * the caller gets is one body that the origin did send.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import type { Mode } from "@tributary/contract";
import { createNodeClient, type ProxyClient } from "@tributary/client/node";
import { startFleet, type Fleet } from "@tributary/lab-stack";

const BYTES = 1_000_000;
const LONG_BYTES = 40_000_000;
/** Honest proxies hear from the origin this much later than the liar. */
const LATER_MS = 150;
const bodyOf = (bytes: number): Buffer =>
  Buffer.alloc(bytes, Buffer.from(Array.from({ length: 8191 }, (_, i) => i * 7)));
const plain = bodyOf(BYTES);
const long = bodyOf(LONG_BYTES);

let origin: Server;
let base: string;
let fleet: Fleet;
let client: ProxyClient;
let answers = 0;
/** The bodies of marked answers. */
const given: Buffer[] = [];

function answer(request: IncomingMessage, response: ServerResponse): void {
  const [, kind = ""] = /^\/([\w-]+)\//.exec(request.url!) ?? [];
  const count = ++answers;
  let body = kind.startsWith("long") ? long : plain;
  if (kind.startsWith("mark")) {
    body = Buffer.from(body);
    body.writeUInt32BE(count, { start: 100, middle: BYTES / 2, end: BYTES - 10 }[kind.slice(5)]!);
    given.push(body);
  }
  const headers: Record<string, string> = { "content-type": "video/mp4", "cache-control": "no-store" };
  if (kind.includes("etag")) headers.etag = `"srv${count % 4}"`;
  else if (kind.startsWith("lie")) headers.etag = '"one"';
  const [, start, end] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "") ?? [];
  const [first, last] = [Number(start ?? 0), Math.min(Number(end || body.length - 1), body.length - 1)];
  if (start !== undefined) headers["content-range"] = `bytes ${first}-${last}/${body.length}`;
  headers["content-length"] = String(last - first + 1);
  const give = (): void => {
    response.writeHead(start === undefined ? 200 : 206, headers).end(body.subarray(first, last + 1));
  };
  if (request.headers["x-liar"] !== undefined) give();
  else setTimeout(give, LATER_MS);
}

beforeAll(async () => {
  origin = createServer(answer);
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  const host = `127.0.0.1:${(origin.address() as AddressInfo).port}`;
  base = `http://${host}`;
  const liar = { NODE_OPTIONS: `--import ${path.join(__dirname, "lying-answers.mjs")}` };
  fleet = await startFleet({
    proxyCount: 4,
    ports: "any",
    allow: [host],
    proxyEnv: (index) => (index === 0 ? liar : ({} as Record<string, string>)),
  });
  client = createNodeClient({ origoUrl: fleet.origo.url, reportRecords: false, settings: { proxyPenaltyMs: 0 } });
});

afterAll(async () => {
  await client?.close();
  await fleet?.stop();
  origin?.closeAllConnections();
  origin?.close();
});

async function get(kind: string, mode: Mode) {
  const download = client.get(`${base}/${kind}/${answers}.mp4`, { mode, connections: 4 });
  const body = Buffer.from(await new Response(download.body).arrayBuffer());
  return { body, record: await download.record };
}

const MODES = ["coded", "coded-mutp", "uncoded-mutp", "split-http", "parallel-http"] as const;
const MARKS = ["start", "middle", "end"] as const;

test.each(MODES.flatMap((mode) => MARKS.map((mark) => [mode, mark] as const)))(
  "bodies: a mark in each answer (%s, at the %s): the caller gets one of the origin's bodies, or none",
  async (mode, mark) => {
    given.length = 0;
    const outcome = await get(`mark-${mark}`, mode).catch((error: { kind: string }) => error.kind);
    if (typeof outcome === "string") return expect(outcome).toBe("originChanged");
    expect(given.some((body) => body.equals(outcome.body))).toBe(true);
  },
);

test.each(["coded", "coded-mutp"] as const)(
  "bodies: a mark at the start of each answer, %s: plays directly",
  async (mode) => {
    given.length = 0;
    const { body, record } = await get("mark-start", mode);
    expect(given.at(-1)!.equals(body)).toBe(true);
    expect(record.fallback?.kind).toBe("bodyDiffers");
    expect(record.directBytes).toBe(BYTES);
  },
);

test.each(["status", "length", "bytes"])(
  "bodies: one of four proxies lies about the %s, and is first",
  async (what) => {
    for (const mode of ["coded", "uncoded-mutp", "split-http", "parallel-http"] as const) {
      const { body, record } = await get(`lie-${what}`, mode);
      expect(body.equals(plain)).toBe(true);
      expect(record.fallback).toBeNull();
      const failed = record.proxies
        .filter(({ state }) => state === "failed")
        .map(({ name, error }) => [name, error?.kind]);
      if (failed.length > 0) expect(failed).toEqual([["proxy-1", what === "bytes" ? "bodyDiffers" : "planMismatch"]]);
    }
  },
);

test("bodies: proxies that got different ETags for the same bytes all take part", async () => {
  const { body, record } = await get("etag", "coded");
  expect(body.equals(plain)).toBe(true);
  expect(record).toMatchObject({ fallback: null, outcome: "complete" });
  expect(record.proxies.map(({ state }) => state)).toEqual(["used", "used", "used", "used"]);
});

test("bodies: a body over 32 MB whose answers have different ETags arrives whole", async () => {
  const { body, record } = await get("long-etag", "coded");
  expect(body.equals(long)).toBe(true);
  expect(record.outcome).toBe("complete");
});
