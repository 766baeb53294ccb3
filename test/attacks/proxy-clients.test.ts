/**
 * One client attacks a real proxy for seconds: with names that do not resolve, with sessions, offers and connections
 * that it does not use, with floods of frames, and with requests for more bytes than its token allows. Meanwhile a
 * viewer at another address is served. Each test prints what it measured. The bounds hold on a slow machine.
 */
import dgram from "node:dgram";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import net from "node:net";
import path from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { startFleet } from "@tributary/lab-stack";
import { LIMITS, type Frame } from "@tributary/protocol";
import {
  ATTACKER,
  fetchMs,
  freeUdpPort,
  get,
  post,
  requestOf,
  startStage,
  UdpClient,
  VIEWER,
  watchHealth,
  type Stage,
} from "./support";

/** Seconds, so that it holds while other programs use the machine. */
const SERVED_MS_MAX = 8000;
const ATTACK_MS = 3000;
const TOKEN_BYTES = 1 << 20;

let stage: Stage;
afterEach(() => stage?.end());

const ms = (value: number): string => `${value.toFixed(0)} ms`;

/** A viewer opens a session and gets the plan of a chunk. Milliseconds, or Infinity. */
async function sessionMs(): Promise<number> {
  const startMs = performance.now();
  const viewer = await UdpClient.open(stage.udpPort, VIEWER, SERVED_MS_MAX);
  let isServed = false;
  // A packet may be lost, so a client repeats its request.
  while (viewer && !isServed && performance.now() - startMs < SERVED_MS_MAX) {
    viewer.send(requestOf(1, `${stage.originUrl}/1000?viewer`));
    isServed = await viewer.heard("plan", 250);
  }
  viewer?.end();
  return isServed ? performance.now() - startMs : Infinity;
}

test("names that do not resolve make nobody else wait", async () => {
  const silent = dgram.createSocket("udp4").bind(0, VIEWER);
  await once(silent, "listening");
  stage = await startStage({
    SILENT_DNS: `127.0.0.1:${silent.address().port}`,
    NODE_OPTIONS: `--import ${path.join(__dirname, "silent-dns.mjs")}`,
  });
  const { proxy, originUrl } = stage;
  const names = Array.from({ length: 300 }, (_, index) => `http://n${index}.${Date.now()}.example/v`);
  const attack = names.map((url) => get(`${proxy.url}/v1/fetch?url=${url}`, ATTACKER).catch(() => 0));
  await after(200);
  const byName = await fetchMs(proxy.url, `${originUrl.replace("127.0.0.1", "localhost")}/1000`);
  const byAddress = await fetchMs(proxy.url, `${originUrl}/1000?2`);
  const statuses = new Set(await Promise.all(attack));
  silent.close();
  console.log(`names: ${ms(byName)} by name, ${ms(byAddress)} by address, the attacker got ${[...statuses].join()}`);
  expect(byName).toBeLessThan(SERVED_MS_MAX);
  expect(byAddress).toBeLessThan(SERVED_MS_MAX);
  expect(statuses).not.toContain(200);
});

test("sessions that one client does not use make room for a viewer", async () => {
  stage = await startStage();
  const opened = await Promise.all(Array.from({ length: 300 }, () => UdpClient.open(stage.udpPort, ATTACKER)));
  const viewerMs = await sessionMs();
  console.log(`sessions: ${opened.filter(Boolean).length} of the attacker, the viewer's after ${ms(viewerMs)}`);
  for (const client of opened) client?.end();
  expect(viewerMs).toBeLessThan(SERVED_MS_MAX);
});

test("sessions in use make room too, and the viewer keeps the one it has", async () => {
  stage = await startStage({ MAX_SESSIONS: "32" });
  const viewer = (await UdpClient.open(stage.udpPort, VIEWER))!;
  const openBusy = async (): Promise<UdpClient | undefined> => {
    const client = await UdpClient.open(stage.udpPort, ATTACKER);
    client?.send(requestOf(1, `${stage.originUrl}/8000000`));
    return client;
  };
  const opened = await Promise.all(Array.from({ length: 64 }, openBusy));
  const viewerMs = await sessionMs();
  viewer.send({ type: "ping", token: 1 });
  const isKept = await viewer.heard("pong", SERVED_MS_MAX);
  console.log(`sessions in use: the viewer's after ${ms(viewerMs)}, the one before is ${isKept ? "kept" : "lost"}`);
  for (const client of [viewer, ...opened]) client?.end();
  expect([viewerMs < SERVED_MS_MAX, isKept]).toEqual([true, true]);
});

const OFFER = [
  "v=0",
  "o=- 1 1 IN IP4 127.0.0.1",
  "s=-",
  "t=0 0",
  "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
  "c=IN IP4 0.0.0.0",
  "a=mid:0",
  "a=ice-ufrag:abcd",
  "a=ice-pwd:abcdefghijklmnopqrstuvwx",
  `a=fingerprint:sha-256 ${Array(32).fill("AB").join(":")}`,
  "a=setup:actpass",
  "a=sctp-port:5000",
  "",
].join("\r\n");

test("offers whose client never comes make room for a viewer", async () => {
  stage = await startStage();
  const offer = (from: string): Promise<number> => post(`${stage.proxy.url}/v1/sessions`, from, { sdp: OFFER });
  const statuses = await Promise.all(Array.from({ length: 300 }, () => offer(ATTACKER)));
  const answered = statuses.filter((status) => status === 201).length;
  const viewer = await offer(VIEWER);
  console.log(`offers: ${answered} of 300 answered, the viewer's with ${viewer}`);
  expect(viewer).toBe(201);
});

test("connections that one client does not use make room for a viewer", async () => {
  stage = await startStage();
  const { hostname, port } = new URL(stage.proxy.url);
  const sockets = Array.from({ length: 5000 }, () => {
    const socket = net.connect({ host: hostname, port: Number(port), localAddress: ATTACKER });
    return socket.on("error", () => undefined).on("end", () => socket.destroy());
  });
  const health = watchHealth(stage.proxy.url);
  await after(1500);
  const viewerMs = await fetchMs(stage.proxy.url, `${stage.originUrl}/1000`);
  const healthMs = await health.stop();
  const open = sockets.filter(({ readyState }) => readyState === "open").length;
  for (const socket of sockets) socket.destroy();
  console.log(`connections: ${open} of 5,000 open, health ${ms(healthMs)} at most, a fetch ${ms(viewerMs)}`);
  expect(viewerMs).toBeLessThan(SERVED_MS_MAX);
  expect(healthMs).toBeLessThan(SERVED_MS_MAX);
});

test("pipelined requests of one connection run one after another, and end with it", async () => {
  stage = await startStage();
  const { hostname, port } = new URL(stage.proxy.url);
  const open = (count: number): net.Socket => {
    const socket = net.connect({ host: hostname, port: Number(port), localAddress: ATTACKER });
    for (let index = 0; index < count; index++) {
      const url = encodeURIComponent(`${stage.originUrl}/30000000?${port}-${count}-${index}`);
      socket.write(`GET /v1/fetch?url=${url} HTTP/1.1\r\nHost: proxy\r\nTributary-Client: test\r\n\r\n`);
    }
    return socket.on("error", () => undefined).pause();
  };
  const [few, many] = [open(10), open(2000)];
  await new Promise((resolve) => many.resume().once("close", resolve));
  const viewerMs = await fetchMs(stage.proxy.url, `${stage.originUrl}/1000`);
  await after(500);
  const asked = stage.asked();
  few.destroy();
  console.log(`pipelined: ${asked} of 2,010 requests reached the origin, a viewer's after ${ms(viewerMs)}`);
  // The first of each connection, and the viewer's.
  expect(asked).toBeLessThanOrEqual(3);
  expect(viewerMs).toBeLessThan(SERVED_MS_MAX);
});

test("a client with hundreds of downloads gets no more of the rate than a viewer with one", async () => {
  stage = await startStage({ RATE_BYTES_PER_SEC: "2000000" });
  const { proxy, originUrl } = stage;
  const url = (bytes: number): string => `${proxy.url}/v1/fetch?url=${encodeURIComponent(`${originUrl}/${bytes}`)}`;
  const attack = Array.from({ length: 300 }, () => get(url(30_000_000), ATTACKER).catch(() => 0));
  await after(1000);
  const viewerMs = await fetchMs(proxy.url, `${originUrl}/1000000`);
  const digestsMs = await fetchMs(proxy.url, `${originUrl}/1000000`, "digests");
  console.log(`300 downloads at 2 MB/s: the viewer's 1 MB after ${ms(viewerMs)}, its digests after ${ms(digestsMs)}`);
  await stage.end();
  await Promise.all(attack);
  expect(viewerMs).toBeLessThan(SERVED_MS_MAX);
  expect(digestsMs).toBeLessThan(SERVED_MS_MAX);
});

/** Sends what `frameOf` makes, `perSec` a second, and returns how long answers took meanwhile. */
async function flood(client: UdpClient, perSec: number, frameOf: (index: number) => Frame): Promise<string> {
  const health = watchHealth(stage.proxy.url);
  const startMs = performance.now();
  let sent = 0;
  for (let pastMs = 0; pastMs < ATTACK_MS; pastMs = performance.now() - startMs) {
    while (sent < (pastMs * perSec) / 1000) client.send(frameOf(sent++));
    await after(5);
  }
  const [healthMs, viewerMs] = [await health.stop(), await sessionMs()];
  expect(healthMs).toBeLessThan(SERVED_MS_MAX);
  expect(viewerMs).toBeLessThan(SERVED_MS_MAX);
  return `${sent} frames, health ${ms(healthMs)} at most, the viewer's session after ${ms(viewerMs)}`;
}

const WHOLE = Array.from({ length: LIMITS.grantRunsMax }, (_, index) => ({ generationIndex: index % 64, count: 255 }));

/** Sends 3,000 grants, as fast as the proxy answers a ping after every 30. Returns the time of its processor. */
async function grantsCpuMs(client: UdpClient, grantOf: (index: number) => Frame): Promise<number> {
  const beforeMs = await cpuMs(stage.proxy.pid);
  for (let index = 0, token = 1; index < 3000; token++) {
    for (const end = index + 30; index < end; index++) client.send(grantOf(index));
    client.frames.length = 0;
    let isAnswered = false;
    for (let tries = 0; tries < 50 && !isAnswered; tries++) {
      client.send({ type: "ping", token });
      isAnswered = await client.heard("pong", 200);
    }
    expect(isAnswered).toBe(true);
  }
  return (await cpuMs(stage.proxy.pid)) - beforeMs;
}

/** The processor's time of a process with all its threads. */
async function cpuMs(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, "utf8")).replace(/.*\) /, "").split(" ");
  // The kernel counts in hundredths of a second.
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

test("a flood of small grants costs little, however much was sent before", async () => {
  stage = await startStage();
  const client = (await UdpClient.open(stage.udpPort, ATTACKER))!;
  client.send(requestOf(1, `${stage.originUrl}/32000000`, { symbolBytes: 64 }));
  expect(await client.heard("plan", 20_000)).toBe(true);
  let grantSequence = 1;
  const grant = (runs: typeof WHOLE): Frame => ({
    type: "grant",
    requestId: 1,
    grantSequence: grantSequence++,
    fromSequence: 0,
    base: 0,
    runs,
  });
  const small = (): Frame => grant([{ generationIndex: 0, count: 1 }]);
  await silence(client);
  const firstMs = await grantsCpuMs(client, small);
  client.send(grant(WHOLE));
  await silence(client);
  const laterMs = await grantsCpuMs(client, small);
  console.log(
    `3,000 small grants: ${ms(firstMs)} of the processor, after ${WHOLE.length * 255} packets ${ms(laterMs)}`,
  );
  expect(laterMs).toBeLessThan(4 * firstMs);
  const seen = await flood(client, 4000, small);
  client.end();
  console.log(`grants: ${seen}`);
});

/** Waits until nothing arrives any more. */
async function silence(client: UdpClient): Promise<void> {
  for (let before = -1; before !== client.receivedBytes; await after(500)) before = client.receivedBytes;
}

test("a flood of every other frame costs a bounded share of the time", async () => {
  // Without a rate, this process would be busy reading the answers.
  stage = await startStage({ RATE_BYTES_PER_SEC: "1000000" });
  const client = (await UdpClient.open(stage.udpPort, ATTACKER))!;
  client.send(
    requestOf(1, `${stage.originUrl}/32000000`, { mode: "uncoded-mutp", symbolBytes: 64, windowPackets: 4096 }),
  );
  expect(await client.heard("plan", 20_000)).toBe(true);
  const received = { kind: "symbols", count: 4096, bitmap: new Uint8Array(512) } as const;
  const seen = await flood(client, 12_000, (index) => {
    if (index % 4 === 0) return { type: "ping", token: index };
    if (index % 4 === 1) return requestOf(1000 + index, `${stage.originUrl}/1000`);
    if (index % 4 === 2) return requestOf(1, `${stage.originUrl}/32000000`);
    const counts = { feedbackSequence: index, nextSequence: 0, receivedPackets: 0, base: 0 };
    return { type: "feedback", requestId: 1, epoch: index, final: false, reason: "none", received, ...counts };
  });
  client.end();
  console.log(`other frames: ${seen}`);
});

test("messages beyond a client's part of the time are not read, and a viewer is heard", async () => {
  const udpPort = await freeUdpPort();
  const fleet = await startFleet({
    proxyCount: 1,
    ports: "any",
    proxyEnv: () => ({ UDP_PLAIN_PORT: String(udpPort) }),
  });
  try {
    await configure(fleet.origo.url, { "proxy.controlPerMille": 10 });
    const [flooding, viewer] = [(await UdpClient.open(udpPort, ATTACKER))!, (await UdpClient.open(udpPort, VIEWER))!];
    const unread = async (): Promise<number> => {
      const answer = await fetch(`${fleet.origo.url}/v1/fleet`);
      const { proxies } = (await answer.json()) as { proxies: { status: { rejectedMessages: number } }[] };
      return proxies[0]!.status.rejectedMessages;
    };
    let [sent, refused] = [0, 0];
    for (const endMs = Date.now() + 30_000; refused < 100 && Date.now() < endMs; refused = await unread())
      for (let turn = 0; turn < 50; turn++, await after(5))
        for (let count = 0; count < 100; count++) flooding.send({ type: "ping", token: sent++ });
    viewer.send({ type: "ping", token: 1 });
    const isHeard = await viewer.heard("pong", SERVED_MS_MAX);
    for (const client of [flooding, viewer]) client.end();
    console.log(`messages beyond the part: ${refused} of ${sent} were not read`);
    expect([refused >= 100, isHeard]).toEqual([true, true]);
  } finally {
    await fleet.stop();
  }
});

test("a request ends when its token's bytes are used up, and an address gets few tokens", async () => {
  const udpPort = await freeUdpPort();
  const fleet = await startFleet({
    proxyCount: 1,
    ports: "any",
    proxyEnv: () => ({ UDP_PLAIN_PORT: String(udpPort) }),
  });
  try {
    await configure(fleet.origo.url, { "origo.tokenBytes": TOKEN_BYTES });
    const tokenOf = async (): Promise<string> =>
      ((await (await fetch(`${fleet.origo.url}/v1/proxies`)).json()) as { token: string }).token;
    const url = `${fleet.sample.url}/__size/30000000.mp4`;
    const overHttp = await httpBytes(
      `${fleet.proxies[0]!.url}/v1/fetch?url=${encodeURIComponent(url)}&token=${await tokenOf()}`,
    );
    const client = (await UdpClient.open(udpPort, ATTACKER))!;
    client.send(requestOf(1, url, { token: await tokenOf() }));
    await client.heard("plan", 10_000);
    for (let grantSequence = 1; grantSequence < 100; grantSequence++, await after(10))
      client.send({ type: "grant", requestId: 1, grantSequence, fromSequence: 0, base: 0, runs: WHOLE });
    await client.heard("reject", 5000);
    client.end();
    const [reject] = client.frames.filter((frame) => frame.type === "reject");
    const asked = await Promise.all(
      Array.from({ length: 1000 }, async () => (await fetch(`${fleet.origo.url}/v1/proxies`)).status),
    );
    const tokens = asked.filter((status) => status === 200).length;
    console.log(
      `budget of ${TOKEN_BYTES} bytes: ${overHttp} over HTTP, ${client.receivedBytes} over UDP; ` +
        `${tokens} of 1,000 tokens`,
    );
    expect(reject).toMatchObject({ rejection: { kind: "budgetSpent" } });
    expect(overHttp).toBeLessThan(2 * TOKEN_BYTES);
    expect(client.receivedBytes).toBeLessThan(2 * TOKEN_BYTES);
    expect(tokens).toBeLessThanOrEqual(400);
  } finally {
    await fleet.stop();
  }
});

/** The bytes of an answer until it ends or breaks off. */
async function httpBytes(url: string): Promise<number> {
  let bytes = 0;
  try {
    const { body } = await fetch(url, { headers: { "tributary-client": "test" } });
    for await (const piece of body as unknown as AsyncIterable<Uint8Array>) bytes += piece.length;
  } catch {
    // It broke off.
  }
  return bytes;
}

/** Changes Origo's settings. */
async function configure(origoUrl: string, values: Record<string, number>): Promise<void> {
  const { csrfToken } = (await (await fetch(`${origoUrl}/v1/login`)).json()) as { csrfToken: string };
  const response = await fetch(`${origoUrl}/v1/config`, {
    method: "PUT",
    headers: { "content-type": "application/json", "x-csrf-token": csrfToken },
    body: JSON.stringify({ baseVersion: 0, values, reason: "attack" }),
  });
  if (!response.ok) throw new Error(await response.text());
}
