/** Tests a real Origo and a real proxy as processes: a change in Origo reaches the proxy. */
/* eslint-disable @typescript-eslint/no-explicit-any -- answers are looked at field by field, as a stranger would */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";

jest.setTimeout(60_000);

const BODY = Buffer.alloc(600_000, 7);
const origin = http.createServer(
  (_request, response) =>
    void response.writeHead(200, { "content-length": BODY.length, "cache-control": "no-store" }).end(BODY),
);
const children: ChildProcess[] = [];
let folder: string;
let originUrl: string;
let origoUrl: string;
let proxyUrl: string;
let csrfToken: string;
let proxyId: string;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "control-"));
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  const originHost = `127.0.0.1:${(origin.address() as AddressInfo).port}`;
  originUrl = `http://${originHost}/video`;
  origoUrl = await run("../../origo/dist/main.js", { DATA_DIR: folder, LOGIN: "off" });
  proxyUrl = await run("../dist/main.js", {
    ORIGO_URL: origoUrl,
    ORIGO_CODE_FILE: path.join(folder, "enrolment-code"),
    DATA_DIR: path.join(folder, "proxy"),
    ALLOW_PRIVATE_HOSTS: originHost,
    PROXY_NAME: "live",
    PLACE: "47.5,19.05",
    OPERATOR: "us",
    WEBTRANSPORT_PORT: "off",
  });
  csrfToken = (await call("GET", "/v1/login")).csrfToken;
  await until(async () => (await fleet()) !== undefined);
  proxyId = (await fleet()).id;
});
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  origin.closeAllConnections();
  origin.close();
  await rm(folder, { recursive: true, force: true });
});

/** Starts a process and gives the URL of its ready line. */
async function run(script: string, env: Record<string, string>): Promise<string> {
  const child = spawn(process.execPath, [path.resolve(__dirname, script)], {
    env: { PATH: process.env["PATH"], ...env },
    stdio: ["ignore", "pipe", "ignore"],
  });
  children.push(child);
  const [line] = (await once(createInterface(child.stdout!), "line")) as [string];
  return (JSON.parse(line) as { url: string }).url;
}

async function call(method: string, resource: string, body?: unknown): Promise<any> {
  const response = await fetch(origoUrl + resource, {
    method,
    headers: { "content-type": "application/json", "x-csrf-token": csrfToken ?? "" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${resource}: ${response.status} ${await response.text()}`);
  return response.json();
}

const fleet = async (): Promise<any> => (await call("GET", "/v1/fleet")).proxies[0];
const configure = async (values: object): Promise<void> => {
  const { version } = await call("GET", "/v1/config");
  await call("PUT", "/v1/config", { baseVersion: version, values, reason: "test" });
};
const health = async (): Promise<string> =>
  ((await (await fetch(`${proxyUrl}/healthz`)).json()) as { status: string }).status;
const offer = async (): Promise<string> => {
  const response = await fetch(`${proxyUrl}/v1/sessions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ sdp: "v=0" }),
  });
  return ((await response.json()) as { error: { kind: string } }).error.kind;
};

async function until(check: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 500; tries++) {
    if (await check()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error("it did not come true within 10 s");
}

const CLIENT = { headers: { "tributary-client": "test" } };

async function downloadMs(): Promise<number> {
  const startMs = performance.now();
  const bytes = (await (await fetch(`${proxyUrl}/v1/fetch?url=${encodeURIComponent(originUrl)}`, CLIENT)).arrayBuffer())
    .byteLength;
  expect(bytes).toBe(BODY.length);
  return performance.now() - startMs;
}

test("a proxy reports its place, operator, capacity and load", async () => {
  await until(async () => (await fleet()).status?.load !== undefined);
  expect(await fleet()).toMatchObject({
    place: { lat: 47.5, lon: 19.05 },
    operator: "us",
    capacity: 256,
    state: "live",
    name: "live",
  });
});

test("a rate set in Origo limits the running proxy until it is removed", async () => {
  await configure({ "proxy.rateBytesPerSec": 400_000 });
  await until(async () => (await downloadMs()) > ((BODY.length - 100_000) * 1000) / 400_000);
  await configure({});
  await until(async () => (await downloadMs()) < 700);
});

test("a limit of sessions set in Origo holds for the running proxy", async () => {
  expect(await offer()).toBe("badOffer");
  await configure({ "proxy.sessionsMax": 0 });
  await until(async () => (await offer()) === "tooManySessions");
  await configure({});
  await until(async () => (await offer()) === "badOffer");
});

test("a draining proxy gets no new requests and no new clients, until it is enabled again", async () => {
  await call("POST", `/v1/fleet/${proxyId}`, { action: "drain" });
  await until(async () => (await health()) === "draining");
  expect((await call("GET", "/v1/proxies")).proxies).toEqual([]);
  expect((await fetch(`${proxyUrl}/v1/fetch?url=${encodeURIComponent(originUrl)}`, CLIENT)).status).toBe(503);
  await call("POST", `/v1/fleet/${proxyId}`, { action: "enable" });
  await until(async () => (await health()) === "ok");
  expect((await call("GET", "/v1/proxies")).proxies).toHaveLength(1);
});

test("a proxy that requires tokens serves only clients with a token of its Origo", async () => {
  const statusWith = async (token: string): Promise<number> => {
    const response = await fetch(`${proxyUrl}/v1/fetch?url=${encodeURIComponent(originUrl)}${token}`, CLIENT);
    await response.arrayBuffer();
    return response.status;
  };
  expect(await statusWith("")).toBe(200);
  await configure({ "proxy.requireToken": true });
  await until(async () => (await statusWith("")) === 401);
  const { token } = await call("GET", "/v1/proxies");
  expect(await statusWith(`&token=${token}`)).toBe(200);
  expect(await statusWith(`&token=${token.slice(0, -4)}AAAA`)).toBe(401);
  expect(await offer()).toBe("tokenMissing");
  await configure({});
  await until(async () => (await statusWith("")) === 200);
});

test("the client library uses its token over data channels too, without any work for the caller", async () => {
  await configure({ "proxy.requireToken": true });
  await until(async () => (await offer()) === "tokenMissing");
  const cli = spawn(
    process.execPath,
    [
      path.resolve(__dirname, "../../client/dist/cli.js"),
      "get",
      originUrl,
      "--origo",
      origoUrl,
      "--mode",
      "coded",
      "--json",
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  children.push(cli);
  let out = "";
  cli.stdout.on("data", (text: Buffer) => (out += text.toString()));
  await once(cli, "close");
  expect(JSON.parse(out)).toMatchObject({
    outcome: "complete",
    fallback: null,
    netBytes: BODY.length,
    configVersion: expect.any(Number),
  });
});

test("the arms of an experiment are only in records of downloads that they could change", async () => {
  const arms = [
    { name: "split", weight: 1, values: { "client.mode": "split-http" } },
    { name: "parallel", weight: 1, values: { "client.mode": "parallel-http" } },
  ];
  const { id } = await call("POST", "/v1/experiments", { name: "modes", question: "which is faster?", arms });
  await call("PATCH", `/v1/experiments/${id}`, { state: "running" });
  const download = async (...words: string[]): Promise<any> => {
    const cli = spawn(
      process.execPath,
      [path.resolve(__dirname, "../../client/dist/cli.js"), "get", originUrl, "--origo", origoUrl, "--json", ...words],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    children.push(cli);
    let out = "";
    cli.stdout.on("data", (text: Buffer) => (out += text.toString()));
    await once(cli, "close");
    return JSON.parse(out);
  };
  for (let count = 0; count < 4; count++) {
    const { mode, experiments, outcome } = await download();
    expect([outcome, experiments]).toEqual(["complete", [{ id, arm: mode === "split-http" ? "split" : "parallel" }]]);
    expect(["split-http", "parallel-http"]).toContain(mode);
  }
  expect(await download("--mode", "direct")).toMatchObject({ mode: "direct", outcome: "complete" });
  const { records } = await call("GET", "/v1/records");
  expect(records.filter((record: { experiments?: unknown[] }) => record.experiments?.length === 1)).toHaveLength(4);
  await call("PATCH", `/v1/experiments/${id}`, { state: "stopped" });
});
