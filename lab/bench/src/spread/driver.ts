/**
 * Node clients on the client's host. Reads one order a line on standard input and answers each with one line, one at a
 * time. bench.ts starts it.
 */
import { createInterface } from "node:readline";
import { createNodeClient } from "@tributary/client/node";
import type { ProxyClient } from "@tributary/client";

/** `viewers` clients get the URL at the same time. */
export interface Order {
  url: string;
  connections: number;
  sharing: boolean;
  viewers: number;
}

/** The time of the last client to be done and to have its first byte; processor time of all clients. */
export type Reply = { ms: number; firstByteMs: number; bytes: number; cpuMs: number } | { problem: string };

const TIMEOUT_MS = 60_000;

const [origoUrl = ""] = process.argv.slice(2);
const clients: ProxyClient[] = [];

async function get(client: ProxyClient, { url, connections, sharing }: Order) {
  const options = { mode: "coded", connections, sharing, allowFallback: false, timeoutMs: TIMEOUT_MS } as const;
  const startedMs = performance.now();
  const download = client.get(url, options);
  let [bytes, firstByteMs] = [0, 0];
  for await (const piece of download.body) {
    firstByteMs ||= performance.now() - startedMs;
    bytes += piece.length;
  }
  const ms = performance.now() - startedMs;
  await download.record;
  return { ms, firstByteMs, bytes };
}

async function carryOut(order: Order): Promise<Reply> {
  while (clients.length < order.viewers) {
    const client = createNodeClient({ origoUrl, reportRecords: false });
    clients.push(client);
    // It opens its sessions before the others open theirs: so many at once are another measurement.
    await get(client, order);
  }
  const before = process.cpuUsage();
  const all = await Promise.all(clients.slice(0, order.viewers).map((client) => get(client, order)));
  const { user, system } = process.cpuUsage(before);
  const most = (of: "ms" | "firstByteMs") => Math.max(...all.map((each) => each[of]));
  const bytes = all.reduce((sum, each) => sum + each.bytes, 0);
  return { ms: most("ms"), firstByteMs: most("firstByteMs"), bytes, cpuMs: (user + system) / 1000 };
}

async function main(): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) {
    const reply = await carryOut(JSON.parse(line) as Order).catch((error: unknown) => ({ problem: String(error) }));
    process.stdout.write(`${JSON.stringify(reply)}\n`);
  }
  await Promise.all(clients.map((client) => client.close()));
  process.exit(0);
}

void main();
