/**
 * A Node client on the client's host. Reads one order a line on standard input and answers each with one line, one at a
 * time. clients.ts starts it.
 */
import { createHash } from "node:crypto";
import { createInterface } from "node:readline";
import type { ProxyClient } from "@tributary/client";
import { createNodeClient } from "@tributary/client/node";
import { publisherCode } from "@tributary/lab-stack";
import { dropConnections } from "../kit/connections";

/** `renew`: a client that knows nothing, without connections. `code`: for a new publisher. */
export type Order =
  | { kind: "renew" }
  | { kind: "get"; url: string; symbolBytes?: number }
  | { kind: "json"; url: string }
  | { kind: "code" };

export interface Got {
  /** From the request to the first byte. */
  firstByteMs: number;
  ms: number;
  /** Processor time of the client, all of its threads. */
  cpuMs: number;
  sha256: string;
}

export type Reply = { got?: Got; json?: unknown; code?: string; problem?: string };

/** A busy machine opens sessions late. */
const TIMEOUT_MS = 20_000;

const [origoUrl = "", cookie = ""] = process.argv.slice(2);
let client: ProxyClient | undefined;

/** It makes no record and cannot fall back, so nothing but the check of the protocol hashes the bytes. */
const newClient = (): ProxyClient => createNodeClient({ origoUrl, reportRecords: false });

async function get({ url, symbolBytes }: Extract<Order, { kind: "get" }>): Promise<Reply> {
  client ??= newClient();
  const before = process.cpuUsage();
  const startedMs = performance.now();
  const options = { mode: "coded", connections: 4, allowFallback: false, timeoutMs: TIMEOUT_MS } as const;
  const download = client.get(url, { ...options, ...(symbolBytes === undefined ? {} : { symbolBytes }) });
  const pieces: Uint8Array[] = [];
  let firstByteMs = 0;
  for await (const piece of download.body) {
    firstByteMs ||= performance.now() - startedMs;
    pieces.push(piece);
  }
  const ms = performance.now() - startedMs;
  const { user, system } = process.cpuUsage(before);
  const digest = createHash("sha256");
  for (const piece of pieces) digest.update(piece);
  await download.record;
  return { got: { firstByteMs, ms, cpuMs: (user + system) / 1000, sha256: digest.digest("hex") } };
}

async function carryOut(order: Order): Promise<Reply> {
  if (order.kind === "get") return get(order);
  if (order.kind === "code") return { code: await publisherCode(origoUrl, cookie) };
  if (order.kind === "json") return { json: await (await fetch(order.url, { headers: { cookie } })).json() };
  await client?.close();
  await dropConnections();
  client = undefined;
  return {};
}

async function main(): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) {
    const reply = await carryOut(JSON.parse(line) as Order).catch((error: unknown): Reply => ({
      problem: String(error),
    }));
    process.stdout.write(`${JSON.stringify(reply)}\n`);
  }
  await client?.close();
  process.exit(0);
}

void main();
