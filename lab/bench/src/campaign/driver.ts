/**
 * The Node client on the client's host. Reads one order a line on standard input and answers each with one line, one at
 * a time. It stays alive, so that a transfer is measured and not the start of a process. Sessions stay for `KEPT_MS`
 * after a download, so that the next one finds them warm. stack.ts sends the orders.
 */
import { createHash } from "node:crypto";
import { connect } from "node:http2";
import type { ClientHttp2Session } from "node:http2";
import { createInterface } from "node:readline";
import { createNodeClient } from "@tributary/client/node";
import type { ProxyClient, TransportOption } from "@tributary/client";
import { CLIENT_HEADER } from "@tributary/contract";
import { dropConnections } from "../kit/connections";
import { watchIdleShare } from "../kit/machine";
import type { Order, Pulled, Reply } from "./orders";

const NEVER_MS = 3_600_000;
const KEPT_MS = 400;
/** Time for the proxy to notice the close. */
const GONE_MS = KEPT_MS + 200;
/** More bytes than any link of the campaign has in flight. */
const HTTP2_WINDOW_BYTES = 16 * 1024 * 1024;

type Done = Omit<Reply, "id" | "cpuMs" | "problem">;

const [origoUrl = "", cookie = ""] = process.argv.slice(2);
const settings = { directoryAgeMs: NEVER_MS, proxyPenaltyMs: 1, choiceMs: NEVER_MS, idleCloseMs: KEPT_MS };
const clients = new Map<string, ProxyClient>();

/** One client a transport, with or without traces, made when it is first needed. */
function clientFor(transport: TransportOption, traced: boolean): ProxyClient {
  const key = `${transport} ${traced}`;
  let client = clients.get(key);
  if (!client)
    clients.set(
      key,
      (client = createNodeClient({ origoUrl, transport, settings: { ...settings, tracePerMille: traced ? 1000 : 0 } })),
    );
  return client;
}

let http2Session: ClientHttp2Session | undefined;

async function closeAll(): Promise<Done> {
  http2Session?.destroy();
  http2Session = undefined;
  await new Promise((resolve) => setTimeout(resolve, GONE_MS));
  await dropConnections();
  return { idleShare: 1 };
}

async function get({ url, transport, traced, options }: Extract<Order, { kind: "get" }>): Promise<Done> {
  const idleShare = watchIdleShare();
  const download = clientFor(transport, traced).get(url, options);
  try {
    for await (const piece of download.body) void piece;
  } catch {
    // The record says how it ended.
  }
  const idle = idleShare();
  return { idleShare: idle, record: await download.record };
}

/**
 * "Chunked" of Sørensen et al., from the paper's related work (§V): each part is a request of its own, one
 * at a time to each server.
 */
async function pull({ urls, bytes, partBytes }: Extract<Order, { kind: "pull" }>): Promise<Done> {
  const idleShare = watchIdleShare();
  const body = Buffer.alloc(bytes);
  const startedMs = performance.now();
  let [next, firstByteMs] = [0, 0];
  const pullFrom = async (url: string): Promise<void> => {
    while (next < bytes) {
      const [from, to] = [next, Math.min(next + partBytes, bytes)];
      next = to;
      const part = Buffer.from(
        await (
          await fetch(url, { headers: { [CLIENT_HEADER]: "bench", range: `bytes=${from}-${to - 1}` } })
        ).arrayBuffer(),
      );
      if (part.length !== to - from) throw new Error(`a server answered ${part.length} bytes, asked for ${to - from}`);
      firstByteMs ||= performance.now() - startedMs;
      part.copy(body, from);
    }
  };
  await Promise.all(urls.map(pullFrom));
  const idle = idleShare();
  return { pulled: pulledOf(body, performance.now() - startedMs, firstByteMs), idleShare: idle };
}

/** One stream of one connection. The connection stays for the next download. */
async function getOverHttp2({ url, bytes }: Extract<Order, { kind: "http2" }>): Promise<Done> {
  const idleShare = watchIdleShare();
  const startedMs = performance.now();
  if (http2Session === undefined || http2Session.closed || http2Session.destroyed) http2Session = openHttp2(url);
  const stream = http2Session.request({ ":path": `/${bytes}` });
  const pieces: Buffer[] = [];
  let firstByteMs = 0;
  for await (const piece of stream) {
    firstByteMs ||= performance.now() - startedMs;
    pieces.push(piece as Buffer);
  }
  const ms = performance.now() - startedMs;
  const idle = idleShare();
  return { pulled: pulledOf(Buffer.concat(pieces), ms, firstByteMs), idleShare: idle };
}

function openHttp2(url: string): ClientHttp2Session {
  const session = connect(url, { settings: { initialWindowSize: HTTP2_WINDOW_BYTES } });
  session.on("connect", () => session.setLocalWindowSize(HTTP2_WINDOW_BYTES));
  // A stream fails with its session, and its reader is told.
  session.on("error", () => undefined);
  return session;
}

const pulledOf = (body: Buffer, ms: number, firstByteMs: number): Pulled => ({
  ms,
  firstByteMs,
  bytes: body.length,
  sha256: createHash("sha256").update(body).digest("hex"),
});

async function carryOut(order: Order): Promise<Done> {
  if (order.kind === "close") return closeAll();
  if (order.kind === "get") return get(order);
  if (order.kind === "pull") return pull(order);
  if (order.kind === "http2") return getOverHttp2(order);
  return { idleShare: 1, json: await (await fetch(order.url, { headers: { cookie } })).json() };
}

async function answer(order: Order): Promise<Reply> {
  const before = process.cpuUsage();
  const result = await carryOut(order).catch((error: unknown) => ({ problem: String(error), idleShare: 1 }));
  const { user, system } = process.cpuUsage(before);
  return { cpuMs: (user + system) / 1000, ...result };
}

async function main(): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) {
    const order = JSON.parse(line) as Order;
    process.stdout.write(`${JSON.stringify(await answer(order))}\n`);
  }
  http2Session?.destroy();
  await Promise.all([...clients.values()].map((client) => client.close()));
  process.exit(0);
}

void main();
