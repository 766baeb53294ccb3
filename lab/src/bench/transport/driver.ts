/**
 * The Node client inside the client's host: an order a line on standard input, an answer a line on standard output. It stays
 * alive, so that what is measured is a transfer and not the start of a process. Its orders come from downloads.ts.
 */
import { createInterface } from "node:readline";
import { createNodeClient } from "@tributary/client/node";
import type { ProxyClient, TransportOption } from "@tributary/client";
import type { DownloadRecord } from "@tributary/origo/schema";
import { dropConnections } from "../connections";

export type Order =
  | { kind: "get"; url: string; transport: TransportOption; state: "cold" | "warm"; connections: number }
  /** Plain HTTP, over a connection that is kept where it is `warm`. */
  | { kind: "http"; url: string; state: "cold" | "warm" }
  /** The newest record that the extension has sent to Origo since then. */
  | { kind: "record"; sinceMs: number };

const RECORD_MS_MAX = 5000;

/** Times from the asking, ms. */
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

async function http({ url, state }: Extract<Order, { kind: "http" }>): Promise<Answer> {
  if (state === "cold") await dropConnections();
  const startMs = performance.now();
  let [bytes, firstMs] = [0, 0];
  for await (const piece of (await fetch(url)).body as unknown as AsyncIterable<Uint8Array>) {
    firstMs ||= performance.now() - startMs;
    bytes += piece.length;
  }
  return { bytes, ms: performance.now() - startMs, firstMs };
}

async function record({ sinceMs }: Extract<Order, { kind: "record" }>): Promise<Answer> {
  for (const endMs = Date.now() + RECORD_MS_MAX; Date.now() < endMs; await new Promise((resolve) => setTimeout(resolve, 100))) {
    const { records } = (await (await fetch(`${origoUrl}/v1/records?limit=5`, { headers: { cookie } })).json()) as { records: DownloadRecord[] };
    const found = records.find(({ source, startedAtMs }) => source === "extension" && startedAtMs >= sinceMs);
    if (found) return { bytes: found.netBytes, ms: found.durationMs, firstMs: found.firstPacketMs ?? found.firstByteMs, record: found };
  }
  return { bytes: 0, ms: NaN, firstMs: NaN, problem: `Origo got no record of the extension within ${RECORD_MS_MAX} ms` };
}

async function carryOut(order: Order): Promise<Answer> {
  if (order.kind === "get") return get(order);
  return order.kind === "http" ? http(order) : record(order);
}

async function main(): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) {
    const order = JSON.parse(line) as Order;
    const answer = await carryOut(order).catch((error: unknown) => ({ bytes: 0, ms: NaN, firstMs: NaN, problem: String(error) }));
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
  process.exit(0);
}

if (require.main === module) void main();
