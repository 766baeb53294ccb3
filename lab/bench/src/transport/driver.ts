/**
 * What downloads inside the client's host, the Node client or a browser with the extension: an order a line on standard
 * input, an answer a line on standard output. It stays alive, and its browsers do, so that what is measured is a
 * transfer and not the start of a process. Its orders come from downloads.ts.
 */
import { createInterface } from "node:readline";
import { createNodeClient } from "@tributary/client/node";
import type { ProxyClient, TransportOption } from "@tributary/client";
import { CLIENT_HEADER } from "@tributary/contract";
import type { DownloadRecord } from "@tributary/contract/schema";
import type { Page } from "puppeteer-core";
import { openBrowser, type BrowserName, type OpenBrowser } from "@tributary/lab-stack";
import { dropConnections } from "../kit/connections";

export type Order =
  | { kind: "get"; url: string; transport: TransportOption; state: "cold" | "warm"; connections: number }
  /** Plain HTTP. The connection is kept if `state` is `warm`. */
  | { kind: "http"; url: string; state: "cold" | "warm" }
  /**
   * By `fetch` in a page: one of `origin`'s where the extension is to carry it by `transport`, otherwise one that no
   * extension is in.
   */
  | {
      kind: "browse";
      browser: BrowserName;
      url: string;
      origin: string;
      transport: "webtransport" | "webrtc" | undefined;
      connections: number;
    }
  /** The newest record that the extension has sent to Origo since `sinceMs`. */
  | { kind: "record"; sinceMs: number };

const RECORD_MS_MAX = 5000;
/** The extension has the list of proxies by then. */
const SETTLE_MS = 1000;

/** Times in ms from the request. */
export interface Answer {
  bytes: number;
  ms: number;
  firstMs: number;
  record?: DownloadRecord;
  problem?: string;
}

const [origoUrl = "", cookie = ""] = process.argv.slice(2);
const clients = new Map<TransportOption, ProxyClient>();

function makeClient(transport: TransportOption): ProxyClient {
  return createNodeClient({ origoUrl, transport, reportRecords: false });
}

/** A new one, which knows the proxies; or the one that was there, with its sessions open. */
async function clientFor({ transport, state, connections }: Extract<Order, { kind: "get" }>): Promise<ProxyClient> {
  let client = clients.get(transport);
  if (state === "warm" && client) return client;
  await client?.close();
  clients.set(transport, (client = makeClient(transport)));
  await client.proxies();
  if (state === "warm") await client.warm(connections);
  return client;
}

async function get(order: Extract<Order, { kind: "get" }>): Promise<Answer> {
  const client = await clientFor(order);
  const download = client.get(order.url, { mode: "coded", connections: order.connections, allowFallback: false });
  let bytes = 0;
  try {
    for await (const piece of download.body) bytes += piece.length;
  } catch {
    // The record says how it ended.
  }
  const record = await download.record;
  const problem = record.outcome === "complete" ? {} : { problem: record.error?.message ?? record.outcome };
  return { bytes, ms: record.durationMs, firstMs: record.firstPacketMs ?? record.firstByteMs, record, ...problem };
}

/** Proxies answer only those who name themselves. */
const CLIENT = { [CLIENT_HEADER]: "bench" };

async function http({ url, state }: Extract<Order, { kind: "http" }>): Promise<Answer> {
  if (state === "cold") await dropConnections();
  const startMs = performance.now();
  let [bytes, firstMs] = [0, 0];
  for await (const piece of (await fetch(url, { headers: CLIENT })).body as unknown as AsyncIterable<Uint8Array>) {
    firstMs ||= performance.now() - startMs;
    bytes += piece.length;
  }
  return { bytes, ms: performance.now() - startMs, firstMs };
}

const FETCH = `async (url) => {
  const startMs = performance.now();
  let bytes = 0, firstMs = 0;
  const reader = (await fetch(url, { cache: "no-store", headers: ${JSON.stringify(CLIENT)} })).body.getReader();
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    firstMs ||= performance.now() - startMs;
    bytes += piece.value.length;
  }
  return { bytes, firstMs, ms: performance.now() - startMs };
}`;

const browsers: OpenBrowser[] = [];
const pages = new Map<string, Promise<Page>>();

async function openPage({
  browser: name,
  origin,
  transport,
  connections,
}: Extract<Order, { kind: "browse" }>): Promise<Page> {
  const browser = await openBrowser({
    name,
    headless: true,
    secureHost: new URL(origin).hostname,
    ...(transport ? { defaults: { origoUrl, mode: "coded", connections, transport } } : {}),
  });
  browsers.push(browser);
  const page = await browser.newPage();
  await page.goto(`${origin}/`, { waitUntil: "load" });
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  return page;
}

/** A browser for each transport. */
async function browse(order: Extract<Order, { kind: "browse" }>): Promise<Answer> {
  const key = order.transport ?? "none";
  const opening = pages.get(key) ?? openPage(order);
  pages.set(key, opening);
  return (await (await opening).evaluate(`(${FETCH})(${JSON.stringify(order.url)})`)) as Answer;
}

async function record({ sinceMs }: Extract<Order, { kind: "record" }>): Promise<Answer> {
  for (
    const endMs = Date.now() + RECORD_MS_MAX;
    Date.now() < endMs;
    await new Promise((resolve) => setTimeout(resolve, 100))
  ) {
    const { records } = (await (await fetch(`${origoUrl}/v1/records?limit=5`, { headers: { cookie } })).json()) as {
      records: DownloadRecord[];
    };
    const found = records.find(({ source, startedAtMs }) => source === "extension" && startedAtMs >= sinceMs);
    if (found)
      return {
        bytes: found.netBytes,
        ms: found.durationMs,
        firstMs: found.firstPacketMs ?? found.firstByteMs,
        record: found,
      };
  }
  return {
    bytes: 0,
    ms: NaN,
    firstMs: NaN,
    problem: `Origo got no record of the extension within ${RECORD_MS_MAX} ms`,
  };
}

async function carryOut(order: Order): Promise<Answer> {
  if (order.kind === "get") return get(order);
  if (order.kind === "browse") return browse(order);
  return order.kind === "http" ? http(order) : record(order);
}

async function main(): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) {
    const order = JSON.parse(line) as Order;
    const answer = await carryOut(order).catch((error: unknown) => ({
      bytes: 0,
      ms: NaN,
      firstMs: NaN,
      problem: String(error),
    }));
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
  await Promise.all(browsers.map((browser) => browser.close()));
  process.exit(0);
}

if (require.main === module) void main();
