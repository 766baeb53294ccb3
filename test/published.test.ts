/** A published file through the client: a real Origo and three real proxies, of which one lies over datagrams. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { GetOptions } from "@tributary/client";
import { createNodeClient } from "@tributary/client/node";
import type { DownloadRecord } from "@tributary/contract/schema";
import { repoRoot, startFleet, type Fleet } from "@tributary/lab-stack";
import { eventually, getJson } from "./support";

const LIAR = 1;
/** More than one window of proofs. */
const film = randomBytes(6_000_001);
let fleet: Fleet;
let folder: string;
let client: ReturnType<typeof createNodeClient>;
let address: string;

beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), "tributary-published-"));
  const lie = `--import=${pathToFileURL(path.join(repoRoot, "test/lying-sender.mjs")).href}`;
  const proxyEnv = (index: number): Record<string, string> => ({
    LIBRARY_DIR: path.join(folder, `library-${index}`),
    ...(index === LIAR ? { NODE_OPTIONS: lie } : {}),
  });
  fleet = await startFleet({ proxyCount: 3, ports: "any", proxyEnv });
  mkdirSync(path.join(folder, "film"));
  writeFileSync(path.join(folder, "film/film.mp4"), film);
  writeFileSync(path.join(folder, "film/empty.mp4"), "");
  writeFileSync(path.join(folder, "film/list.m3u8"), "#EXTM3U\n");
  const { csrfToken } = await getJson<{ csrfToken: string }>(`${fleet.origo.url}/v1/login`);
  const headers = { "x-csrf-token": csrfToken, "content-type": "application/json" };
  const made = await fetch(`${fleet.origo.url}/v1/publishers`, { method: "POST", headers, body: "{}" });
  const { code } = (await made.json()) as { code: string };
  const key = path.join(folder, "key.pem");
  const words = ["publish", "film", "--origo", fleet.origo.url, "--key", key, "--code", code, "--json"];
  const printed = execFileSync(process.execPath, [path.join(repoRoot, "client/dist/cli.js"), ...words], {
    cwd: folder,
    encoding: "utf8",
  });
  address = /http[^"]+\/v\/[^/"]+\/film\//.exec(printed)![0];
  const publication = address.replace("/v/", "/v1/publications/").replace(/\/$/, "");
  // Origo releases it when one proxy holds each file.
  const read = () => getJson<{ holders: number }>(publication);
  expect(await eventually(read, ({ holders }) => holders === 3)).toMatchObject({ holders: 3 });
  client = createNodeClient({ origoUrl: fleet.origo.url, reportRecords: false });
});
afterAll(async () => {
  await client?.close();
  await fleet?.stop();
  rmSync(folder, { recursive: true });
});

async function get(
  name: string,
  options: GetOptions,
): Promise<{ status: number; body: Buffer; record: DownloadRecord }> {
  const download = client.get(`${address}${name}`, options);
  const pieces: Uint8Array[] = [];
  const { status } = await download.head;
  for await (const piece of download.body) pieces.push(piece);
  return { status, body: Buffer.concat(pieces), record: await download.record };
}

test("over datagrams every byte is the publisher's, and the proxy that lies is convicted and named", async () => {
  const faults: (string | undefined)[] = [];
  // The honest ones may be done before the liar's session is open.
  for (let tries = 0; tries < 20 && faults.length === 0; tries++) {
    const { body, record } = await get("film.mp4", { mode: "coded", connections: 3 });
    expect(body.equals(film)).toBe(true);
    expect(record).toMatchObject({ outcome: "complete", vouchedBy: "publisher" });
    for (const { name, error } of record.proxies) if (error) faults.push(`${name}: ${error.kind}`);
  }
  expect(faults).toEqual(["proxy-2: digestMismatch"]);
});

test.each<GetOptions["mode"] & string>(["coded-mutp", "uncoded-mutp", "split-http", "parallel-http", "direct"])(
  "mode %s gives the bytes of a range that begins and ends within blocks",
  async (mode) => {
    const { status, body, record } = await get("film.mp4", { mode, range: { start: 100_001, end: 1_200_000 } });
    expect([status, body.equals(film.subarray(100_001, 1_200_001))]).toEqual([206, true]);
    expect(record.vouchedBy).toBe("publisher");
  },
);

test("an empty file, a playlist, a range after the end and a file that does not exist are answered", async () => {
  const empty = await get("empty.mp4", {});
  const list = await get("list.m3u8", {});
  const after = await get("film.mp4", { range: { start: film.length, end: film.length } });
  const missing = await get("other.mp4", {});
  expect([empty, list, after, missing].map(({ status, body }) => [status, body.length])).toEqual([
    [200, 0],
    [200, 8],
    [416, 0],
    [404, 0],
  ]);
});

test("a key that signed nothing here has no files", async () => {
  const other = address.replace(/\/v\/[^/]+/, `/v/${"A".repeat(42)}A`);
  const download = client.get(`${other}film.mp4`, {});
  await expect(download.head).rejects.toThrow(/answered 404/);
});
