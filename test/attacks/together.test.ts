/**
 * Several attacks at once against one proxy and one Origo, all from one address, while a viewer at another address
 * plays. And an honest household: several viewers behind one address, to whom no limit may apply.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import { setTimeout as after } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { createNodeClient } from "@tributary/client/node";
import type { DownloadRecord } from "@tributary/contract/schema";
import { startFleet, type Fleet } from "@tributary/lab-stack";
import { recordOf } from "../../contract/test/samples";
import { getJson } from "../support";
import { ATTACKER, freeUdpPort, get, post, requestOf, UdpClient, VIEWER } from "./support";

const ATTACK_MS = 8000;
const MEMORY_BYTES_MAX = 800e6;
const SEGMENT_BYTES = 1_000_000;

let fleet: Fleet;
afterEach(() => fleet?.stop());

type Client = ReturnType<typeof createNodeClient>;

/** Plays one segment through the proxies, or the rest of it directly. */
async function play(client: Client, url: string): Promise<{ digest: string; record: DownloadRecord }> {
  const download = client.get(url);
  const hash = createHash("sha256");
  for await (const piece of download.body) hash.update(piece);
  return { digest: hash.digest("hex"), record: await download.record };
}

const digestOf = async (url: string): Promise<string> =>
  createHash("sha256")
    .update(new Uint8Array(await (await fetch(url)).arrayBuffer()))
    .digest("hex");

const segmentUrl = (name: string): string => `${fleet.sample.url}/__size/${SEGMENT_BYTES}.mp4?${name}`;

const memoryOf = (pid: number): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;

test("five viewers behind one address play at once, and no limit refuses them", async () => {
  fleet = await startFleet({ proxyCount: 4, ports: "any" });
  const expected = await digestOf(segmentUrl(""));
  const viewers = Array.from({ length: 5 }, () =>
    createNodeClient({ origoUrl: fleet.origo.url, reportRecords: false }),
  );
  const digests = await Promise.all(
    viewers.map(async (viewer, index) => {
      const own: string[] = [];
      for (let at = 0; at < 4; at++) own.push((await play(viewer, segmentUrl(`${index}-${at}`))).digest);
      return own;
    }),
  );
  await Promise.all(viewers.map((viewer) => viewer.close()));
  // A proxy reports every two seconds.
  await after(2500);
  const { proxies } = await getJson<{ proxies: { status: { latestErrors?: object[]; rejectedMessages: number } }[] }>(
    `${fleet.origo.url}/v1/fleet`,
  );
  expect(digests.flat()).toEqual(Array<string>(20).fill(expected));
  expect(proxies.map(({ status }) => [status.latestErrors, status.rejectedMessages])).toEqual(Array(4).fill([[], 0]));
});

const WHOLE = Array.from({ length: 64 }, (_, generationIndex) => ({ generationIndex, count: 255 }));

/** Attacks that go on until `isOver`. Each resolves then. */
function attacks(udpPort: number, isOver: () => boolean): Promise<void>[] {
  const [proxy, origo] = [fleet.proxies[0]!.url, fleet.origo.url];
  const through = (path: string): string =>
    `${proxy}/v1/fetch?url=${encodeURIComponent(`${fleet.sample.url}/__size/${path}`)}`;
  const again = async (work: (round: number) => Promise<unknown>): Promise<void> => {
    for (let round = 0; !isOver(); round++) {
      await work(round).catch(() => undefined);
      await after(1);
    }
  };
  const { hostname, port } = new URL(proxy);
  const connect = (): net.Socket =>
    net.connect({ host: hostname, port: Number(port), localAddress: ATTACKER }).on("error", () => undefined);
  const bomb = gzipSync(`{"traces":[${"{},".repeat(1.3e6)}{}]}`, { level: 9 });
  const records = JSON.stringify({
    records: Array.from({ length: 100 }, () => recordOf({ comment: "x".repeat(900) })),
  });
  return [
    ...Array.from({ length: 24 }, (_, at) => again((round) => get(through(`1000.mp4?small-${at}-${round}`), ATTACKER))),
    ...Array.from({ length: 8 }, (_, at) => again((round) => leave(through(`33000000.mp4?slow-${at}-${round}`)))),
    again(async (round) => {
      const socket = connect();
      const url = through(`1000.mp4?pipelined-${round}`).slice(proxy.length);
      socket.write(`GET ${url} HTTP/1.1\r\nHost: proxy\r\nTributary-Client: x\r\n\r\n`.repeat(500));
      await after(50);
      socket.destroy();
    }),
    again(async () => {
      const sockets = Array.from({ length: 200 }, connect);
      await after(1000);
      for (const socket of sockets) socket.destroy();
    }),
    again(() => post(`${proxy}/v1/sessions`, ATTACKER, { sdp: "v=0\r\n".repeat(4000) })),
    again(() => flood(udpPort, isOver)),
    ...Array.from({ length: 4 }, () => again(() => send(`${origo}/v1/traces`, bomb, true))),
    ...Array.from({ length: 4 }, () => again(() => send(`${origo}/v1/records`, Buffer.from(records), false))),
    ...Array.from({ length: 4 }, () => again(() => get(`${origo}/v1/proxies?count=4`, ATTACKER))),
  ];
}

/** Asks for a long answer, reads nothing of it for a while, and leaves. */
function leave(url: string): Promise<void> {
  return new Promise((resolve) => {
    const request = http.get(url, { localAddress: ATTACKER, agent: false, headers: { "tributary-client": "x" } });
    request.on("error", () => undefined).on("response", (response) => response.on("error", () => undefined));
    setTimeout(() => resolve(void request.destroy()), 1500);
  });
}

function send(url: string, body: Buffer, isCompressed: boolean): Promise<void> {
  return new Promise((resolve) => {
    const headers = { "content-type": "application/json", ...(isCompressed && { "content-encoding": "gzip" }) };
    http
      .request(url, { method: "POST", localAddress: ATTACKER, agent: false, headers }, (response) => response.resume())
      .on("error", () => undefined)
      .on("close", resolve)
      .end(body);
  });
}

/** Sends 2,000 grants a second for a request of its own. */
async function flood(udpPort: number, isOver: () => boolean): Promise<void> {
  const client = await UdpClient.open(udpPort, ATTACKER);
  if (!client) return;
  client.send(requestOf(1, `${fleet.sample.url}/__size/32000000.mp4?flood`, { symbolBytes: 64 }));
  for (let sequence = 1; !isOver() && !client.isClosed; await after(5))
    for (let sent = 0; sent < 10; sent++)
      client.send({ type: "grant", requestId: 1, grantSequence: sequence++, fromSequence: 0, base: 0, runs: WHOLE });
  client.end();
}

test("a viewer plays while one address attacks the proxy and Origo in ten ways at once", async () => {
  const udpPort = await freeUdpPort();
  const proxyEnv = () => ({ UDP_PLAIN_PORT: String(udpPort), REQUIRE_TOKEN: "0" });
  fleet = await startFleet({ proxyCount: 1, ports: "any", proxyEnv });
  const expected = await digestOf(segmentUrl(""));
  const viewer = createNodeClient({ origoUrl: fleet.origo.url, reportRecords: false });
  await viewer.warm(1);
  const untilMs = performance.now() + ATTACK_MS;
  const isOver = (): boolean => performance.now() > untilMs;
  const attacking = attacks(udpPort, isOver);
  const played: Awaited<ReturnType<typeof play>>[] = [];
  let msMax = 0;
  while (!isOver()) {
    const startMs = performance.now();
    played.push(await play(viewer, segmentUrl(`viewer-${played.length}`)));
    msMax = Math.max(msMax, performance.now() - startMs);
  }
  await Promise.all(attacking);
  await viewer.close();
  const services = [fleet.proxies[0]!, fleet.origo];
  const memory = services.map(({ pid }) => memoryOf(pid));
  const [healthy] = [await Promise.all(services.map(({ url }) => get(`${url}/healthz`, VIEWER)))];
  const direct = played.filter(({ record }) => record.fallback).length;
  console.log(
    `at once: ${played.length} segments of 1 MB in ${ATTACK_MS} ms, ${direct} in part directly, the slowest in ` +
      `${msMax.toFixed(0)} ms; memory ${memory.map((bytes) => (bytes / 1e6).toFixed(0)).join(" and ")} MB`,
  );
  expect(new Set(played.map(({ digest }) => digest))).toEqual(new Set([expected]));
  expect(healthy).toEqual([200, 200]);
  expect(Math.max(...memory)).toBeLessThan(MEMORY_BYTES_MAX);
}, 60_000);
