/**
 * What a fleet costs Origo. A real Origo process, N proxies that are only their links (real socket.io connections,
 * hello and heartbeats), and the processor time that the Origo process took meanwhile, from /proc. Linux only.
 */
import { execFileSync, spawn } from "node:child_process";
import { generateKeyPairSync, sign } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { performance } from "node:perf_hooks";
import { createInterface } from "node:readline";
import { clearInterval, setInterval } from "node:timers";
import { boundWords } from "../../../infra/lifetime.mjs";
import { root } from "../../../infra/setup.mjs";

const { io } = createRequire(path.join(root, "proxy/package.json"))("socket.io-client");
/** Connections made at once. */
const CONNECT_BATCH = 50;
const LISTS = 200;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Seconds of processor time of a process, all its threads. */
async function processorSeconds(pid) {
  const fields = (await readFile(`/proc/${pid}/stat`, "utf8")).split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }));
}

/** An Origo process without logins. Its defaults go for what `environment` does not name. */
export async function startOrigo(environment) {
  const child = spawn(process.execPath, [...boundWords, path.join(root, "origo/dist/main.js")], {
    env: { ...process.env, PORT: "0", HOST: "127.0.0.1", LOGIN: "off", LOG_LEVEL: "error", ...environment },
    stdio: ["ignore", "pipe", "inherit", "pipe"],
  });
  const ended = once(child, "exit");
  const [line] = await Promise.race([
    once(createInterface(child.stdout), "line"),
    ended.then(() => Promise.reject(new Error("Origo did not start"))),
  ]);
  const stop = async () => {
    child.kill("SIGTERM");
    await ended;
  };
  /** At most so far. */
  const memoryMb = () => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))[1]) / 1000;
  return { pid: child.pid, url: JSON.parse(line).url, stop, memoryMb };
}

async function change(url, method, route, body) {
  const { csrfToken } = await (await fetch(`${url}/v1/login`)).json();
  const response = await fetch(url + route, {
    method,
    headers: { "content-type": "application/json", "x-csrf-token": csrfToken },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`Origo refused ${method} ${route}: ${await response.text()}`);
  return response.json();
}

export async function setValues(url, values) {
  const { version } = await (await fetch(`${url}/v1/config`)).json();
  await change(url, "PUT", "/v1/config", { baseVersion: version, values, reason: "bench" });
}

/** The proof of a new key, as contract/src/schema.ts describes it. */
function proofOf(challenge) {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const signature = sign(null, Buffer.from(`tributary-proxy:${challenge}`), privateKey).toString("base64url");
  return { publicKey: publicKey.export({ format: "jwk" }).x, signature };
}

/** A proxy's link: hello, then heartbeats, spread evenly over the fleet as they are in life. */
async function startProxy(url, index, heartbeatMs) {
  const { code } = await change(url, "POST", "/v1/enrolment");
  const socket = io(`${url}/proxies`, { transports: ["websocket"], forceNew: true });
  const challenge = await new Promise((resolve, reject) =>
    socket.once("challenge", resolve).once("connect_error", reject),
  );
  const startedMs = Date.now();
  const hello = {
    name: `proxy-${index}`,
    url: `http://10.${index >> 8}.${index & 255}.1:7611`,
    version: "0.1.0",
    engine: "native/avx2",
    udpPort: 7611,
    rateBytesPerSec: 896000,
    startedAtMs: startedMs,
    capacity: 256,
    operator: `operator-${index % 20}`,
    place: { lat: (index % 170) - 85, lon: (index % 350) - 175 },
  };
  const answer = await socket.emitWithAck("hello", hello, { ...proofOf(challenge), code });
  if (answer.error) throw new Error(answer.error.message);
  let beats = 0;
  const beat = () => {
    beats++;
    socket.emit(
      "status",
      {
        sessions: beats % 9,
        activeRequests: beats % 5,
        sentBytes: beats * 1e6,
        sentPackets: beats * 900,
        originBytes: beats * 3e5,
        cacheBytes: 1e8,
        cacheHits: beats,
        errors: 0,
        rejectedMessages: 0,
        uptimeMs: Date.now() - startedMs,
        load: (index % 10) / 10,
      },
      // Origo would forget a proxy whose reports it refuses, and the measurement would be of nothing.
      ({ error }) => {
        if (error) throw new Error(`Origo refused a proxy's report: ${error.message}`);
      },
    );
  };
  const first = setTimeout(() => {
    beat();
    timer = setInterval(beat, heartbeatMs);
  }, Math.random() * heartbeatMs);
  let timer;
  return () => {
    clearTimeout(first);
    clearInterval(timer);
    socket.disconnect();
  };
}

/** Starts an Origo with so many proxies, and stops them again. */
export async function measureFleet({ proxies, heartbeatMs, seconds }) {
  const folder = await mkdtemp(path.join(os.tmpdir(), "bench-origo-"));
  const { pid, url, stop } = await startOrigo({ DATA_DIR: folder });
  const stops = [];
  try {
    await setValues(url, { "proxy.heartbeatMs": heartbeatMs });
    for (let from = 0; from < proxies; from += CONNECT_BATCH) {
      const batch = Array.from({ length: Math.min(CONNECT_BATCH, proxies - from) }, (_, index) =>
        startProxy(url, from + index, heartbeatMs),
      );
      stops.push(...(await Promise.all(batch)));
    }
    await pause(heartbeatMs);
    const before = await processorSeconds(pid);
    const startMs = performance.now();
    await pause(seconds * 1000);
    const core = ((await processorSeconds(pid)) - before) / ((performance.now() - startMs) / 1000);
    const live = (await (await fetch(`${url}/v1/fleet`)).json()).proxies.length;
    if (live !== proxies) throw new Error(`${live} of ${proxies} proxies are live: this machine is too busy to tell`);
    const listMs = [];
    for (let count = 0; count < LISTS; count++) {
      const askedMs = performance.now();
      await (await fetch(`${url}/v1/proxies?count=4`)).json();
      listMs.push(performance.now() - askedMs);
    }
    listMs.sort((a, b) => a - b);
    return {
      proxies,
      heartbeatMs,
      seconds,
      live,
      core,
      listMs: { p50: listMs[LISTS >> 1], p99: listMs[Math.floor(LISTS * 0.99)] },
    };
  } finally {
    for (const stopProxy of stops) stopProxy();
    await stop();
    await rm(folder, { recursive: true, force: true });
  }
}

export function fleetSentence({ proxies, heartbeatMs, seconds, live, core, listMs }) {
  return (
    `${live} of ${proxies} proxies live, a heartbeat every ${heartbeatMs} ms each, over ${seconds} s: ` +
    `Origo took ${(core * 100).toFixed(1)} % of a core. ` +
    `GET /v1/proxies?count=4 beside it, one at a time: median ${listMs.p50.toFixed(2)} ms, p99 ` +
    `${listMs.p99.toFixed(2)} ms.`
  );
}
