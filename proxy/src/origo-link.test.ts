/** Tests the link with a real Origo process that is killed and restarted. */
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import type { FleetResponse, ProxiesResponse } from "@tributary/contract/schema";
import { openIdentity } from "./identity";
import { OrigoLink } from "./origo-link";

const ORIGO = path.resolve(__dirname, "../../origo/dist/main.js");
const HELLO = {
  name: "p",
  url: "http://127.0.0.1:1",
  version: "0.1.0",
  engine: "e",
  udpPort: 1,
  rateBytesPerSec: 0,
  startedAtMs: 1,
};
const STATUS = {
  sessions: 1,
  activeRequests: 0,
  sentBytes: 2,
  sentPackets: 3,
  originBytes: 4,
  cacheBytes: 5,
  cacheHits: 6,
  rejectedMessages: 0,
  errors: 7,
  latestErrors: [{ kind: "dnsFailed", count: 7, ageMs: 1 }],
  uptimeMs: 8.5,
};

const dataDir = mkdtempSync(path.join(tmpdir(), "tributary-link-"));
let origo: ChildProcess | undefined;
let link: OrigoLink | undefined;

beforeAll(() => {
  if (!existsSync(ORIGO)) throw new Error(`${ORIGO} is missing: run npm run build first`);
});
afterEach(() => {
  link?.close();
  origo?.kill("SIGKILL");
});
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

async function startOrigo(port = "0"): Promise<string> {
  const child = spawn(process.execPath, [ORIGO], {
    env: { PATH: process.env["PATH"], PORT: port, DATA_DIR: dataDir, LOGIN: "off" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  origo = child;
  const line = await new Promise<string>((resolve) => createInterface({ input: child.stdout }).once("line", resolve));
  return (JSON.parse(line) as { url: string }).url;
}

const codeFile = path.join(dataDir, "enrolment-code");
const identity = path.join(dataDir, "proxy");
const prove = openIdentity(identity);

function connect(origoUrl: string, code = () => readFileSync(codeFile, "utf8").trim(), as = prove): string[] {
  const logged: string[] = [];
  link = new OrigoLink({
    origoUrl,
    prove: as,
    code,
    hello: () => HELLO,
    status: () => STATUS,
    log: (event, { reason } = {}) => logged.push(reason === undefined ? event : `${event}: ${String(reason)}`),
  });
  return logged;
}

async function until<T>(what: () => Promise<T | undefined>, withinMs: number): Promise<T> {
  const endMs = performance.now() + withinMs;
  for (;;) {
    const value = await what().catch(() => undefined);
    if (value !== undefined) return value;
    if (performance.now() > endMs) throw new Error(`not within ${withinMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const listed = (origoUrl: string) => async () => {
  const { proxies } = (await (await fetch(`${origoUrl}/v1/proxies?count=4`)).json()) as ProxiesResponse;
  return proxies.length > 0 ? proxies : undefined;
};

test("origo link: registers, reports, and is back within two heartbeats after Origo was restarted", async () => {
  const url = await startOrigo();
  const logged = connect(url);
  expect(await until(listed(url), 10_000)).toEqual([expect.objectContaining({ name: "p", url: "http://127.0.0.1:1" })]);
  const status = await until(
    async () => ((await (await fetch(`${url}/v1/fleet`)).json()) as FleetResponse).proxies[0]?.status ?? undefined,
    10_000,
  );
  expect(status).toEqual(STATUS);
  const gone = new Promise((resolve) => origo!.once("exit", resolve));
  origo!.kill("SIGKILL");
  await gone;
  await startOrigo(new URL(url).port);
  await until(listed(url), 10_000);
  expect(logged[0]).toBe("registered");
  expect(logged.some((line) => line.startsWith("origoLost"))).toBe(true);
  expect(logged.at(-1)).toBe("registered");
});

test("origo link: a new heartbeat starts with a report at once", async () => {
  const url = await startOrigo();
  connect(url);
  const seenAt = async (): Promise<number | undefined> => {
    const proxy = ((await (await fetch(`${url}/v1/fleet`)).json()) as FleetResponse).proxies[0];
    return proxy?.status ? proxy.lastSeenMs : undefined;
  };
  const before = await until(seenAt, 10_000);
  link!.setHeartbeat(30_000);
  await until(async () => ((await seenAt())! > before ? true : undefined), 10_000);
});

test("origo link: a proxy with a closed link leaves the list at once", async () => {
  const url = await startOrigo();
  connect(url);
  await until(listed(url), 10_000);
  link!.close();
  await until(async () => ((await listed(url)()) === undefined ? true : undefined), 10_000);
});

test("origo link: a wrong code is logged once and tried again without end", async () => {
  const url = await startOrigo();
  const logged = connect(url, () => "wrong", openIdentity(path.join(dataDir, "other")));
  await new Promise((resolve) => setTimeout(resolve, 1500));
  expect(logged).toEqual([expect.stringMatching(/^origoRefused: .*the enrolment code is wrong/)]);
});

test("identity: the key is made once, and only its owner can read it", () => {
  const of = (folder: string): string => openIdentity(path.join(dataDir, folder))("x").publicKey;
  expect(of("proxy")).toBe(prove("x").publicKey);
  expect(of("third")).not.toBe(prove("x").publicKey);
  const modes = [identity, path.join(identity, "proxy-key.pem")].map((file) => statSync(file).mode & 0o777);
  expect(modes).toEqual([0o700, 0o600]);
});
