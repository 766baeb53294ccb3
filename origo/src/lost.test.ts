/**
 * Tests Origo when its database is gone or silent, and when the disk is full: answers stay clear, reads work where they
 * can, and no batch is stored in part.
 */
import { spawnSync } from "node:child_process";
import { mkdtemp, rm, statfs, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pino from "pino";
import { startOrigo, type Origo } from "./server";
import type { ErrorResponse, RecordsResponse } from "@tributary/contract/schema";
import { startPostgres } from "../test/postgres";
import { startRelay } from "../test/relay";
import { recordOf } from "../../contract/test/samples";

jest.setTimeout(60_000);

const MIB = 1024 * 1024;
let folder: string;
let origo: Origo;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "origo-lost-"));
});
afterEach(async () => {
  await origo.close();
  await rm(folder, { recursive: true, force: true });
});

let logged: unknown[] = [];

const start = (dataDir: string, databaseUrl?: string): Promise<Origo> => {
  logged = [];
  const log = pino({ level: "warn" }, { write: (line) => void logged.push(JSON.parse(line)) });
  return startOrigo({ host: "127.0.0.1", port: 0, dataDir, databaseUrl, dashboardDir: folder, login: "off", log });
};

const post = (records: readonly unknown[]): Promise<Response> =>
  fetch(`${origo.url}/v1/records`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ records }),
  });

const statusOf = async (path: string): Promise<number> => {
  const response = await fetch(origo.url + path);
  await response.text();
  return response.status;
};

const stored = async (): Promise<number> =>
  ((await (await fetch(`${origo.url}/v1/records?limit=500`)).json()) as RecordsResponse).records.length;

/** Reads all pages. */
async function storedIds(): Promise<Set<string>> {
  const ids: string[] = [];
  for (let before: string | null = ""; before !== null;) {
    const from: string = before === "" ? "" : `&before=${before}`;
    const page = (await (await fetch(`${origo.url}/v1/records?limit=500${from}`)).json()) as RecordsResponse;
    ids.push(...page.records.map(({ id }) => id));
    before = page.next;
  }
  expect(new Set(ids).size).toBe(ids.length);
  return new Set(ids);
}

test("PostgreSQL stops: intake answers 503, clients get proxies, and all works again when it is back", async () => {
  const postgres = await startPostgres({ durable: true });
  try {
    origo = await start(folder, await postgres.newDatabase());
    const first = recordOf();
    expect((await post([first])).status).toBe(202);
    await postgres.halt();
    const refused = await Promise.all(Array.from({ length: 20 }, () => post([recordOf()])));
    for (const response of refused) {
      expect(response.status).toBe(503);
      expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(((await response.json()) as ErrorResponse).error.kind).toBe("unavailable");
    }
    for (const path of ["/healthz", "/v1/proxies", "/v1/client-config", "/v1/fleet", "/v1/config", "/metrics"])
      expect([path, await statusOf(path)]).toEqual([path, 200]);
    for (const path of ["/readyz", "/v1/records"]) expect([path, await statusOf(path)]).toEqual([path, 503]);
    await postgres.resume();
    const again = await post([first, recordOf()]);
    expect(await again.json()).toEqual({ accepted: 1, duplicate: 1 });
    expect(await stored()).toBe(2);
    expect(await statusOf("/readyz")).toBe(200);
  } finally {
    await postgres.stop();
  }
});

test("PostgreSQL restarts three times under load: no acknowledged record is lost, and intake goes on", async () => {
  const postgres = await startPostgres({ durable: true });
  try {
    origo = await start(folder, await postgres.newDatabase());
    const acknowledged: string[] = [];
    const sent = new Set<string>();
    let done = false;
    const send = async (): Promise<void> => {
      let waiting: ReturnType<typeof recordOf>[] = [];
      while (!done || waiting.length > 0) {
        if (waiting.length === 0) waiting = [recordOf(), recordOf(), recordOf()];
        for (const { id } of waiting) sent.add(id);
        const response = await post(waiting);
        expect([202, 503]).toContain(response.status);
        if (response.status !== 202) {
          // A slow restart must not bring this address to its limit of bytes.
          await sleep(200);
          continue;
        }
        const { accepted, duplicate } = (await response.json()) as { accepted: number; duplicate: number };
        expect(accepted + duplicate).toBe(3);
        acknowledged.push(...waiting.map(({ id }) => id));
        waiting = [];
      }
    };
    const senders = Promise.all(Array.from({ length: 8 }, send));
    const more = async (): Promise<void> => {
      const before = acknowledged.length;
      while (acknowledged.length < before + 60) await Promise.race([sleep(10), senders]);
    };
    for (let restart = 0; restart < 3; restart++) {
      await more();
      await Promise.race([postgres.halt().then(() => postgres.resume()), senders]);
    }
    await more();
    done = true;
    await senders;
    const found = await storedIds();
    expect(acknowledged.filter((id) => !found.has(id))).toEqual([]);
    expect([...found].sort()).toEqual([...sent].sort());
  } finally {
    await postgres.stop();
  }
});

test("PostgreSQL falls silent: intake answers 503 in time, uses new connections, and Origo can close", async () => {
  const postgres = await startPostgres();
  const url = await postgres.newDatabase();
  const relay = await startRelay(Number(new URL(url).port));
  const inTime = async <T>(work: Promise<T>): Promise<T> => {
    const answer = await Promise.race([work, sleep(20_000, undefined, { ref: false })]);
    if (answer === undefined) throw new Error("not within 20 s");
    return answer;
  };
  try {
    origo = await start(folder, relay.through(url));
    expect((await post([recordOf()])).status).toBe(202);
    relay.silence("pass");
    const record = recordOf();
    const refused = await inTime(post([record]));
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
    await inTime(
      (async () => {
        while ((await post([record])).status !== 202) await new Promise((resolve) => setTimeout(resolve, 100));
        return true;
      })(),
    );
    expect(await stored()).toBe(2);
    relay.silence("silent");
    expect(await inTime(statusOf("/v1/records"))).toBe(503);
    expect(await statusOf("/healthz")).toBe(200);
    const lost = post([recordOf()]).catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, 200));
    await inTime(origo.close().then(() => true));
    await lost;
  } finally {
    relay.close();
    await postgres.stop();
  }
});

/** Mounts a new file system of this size. Undefined when mounting is not allowed. */
async function smallDisk(mib: number): Promise<string | undefined> {
  const place = await mkdtemp(join(tmpdir(), "origo-disk-"));
  return spawnSync("mount", ["-t", "tmpfs", "-o", `size=${mib}m,mode=700`, "tmpfs", place]).status === 0
    ? place
    : undefined;
}

/** Changes settings of an Origo that has none of its own yet. */
async function configure(values: Record<string, number>): Promise<void> {
  const { csrfToken } = (await (await fetch(`${origo.url}/v1/login`)).json()) as { csrfToken: string };
  const put = await fetch(`${origo.url}/v1/config`, {
    method: "PUT",
    headers: { "content-type": "application/json", "x-csrf-token": csrfToken },
    body: JSON.stringify({ baseVersion: 0, values, reason: "a small disk" }),
  });
  expect(put.status).toBe(200);
}

/** Runs `work` with a small disk, and says so if this machine lets nobody mount one. */
async function onSmallDisk(mib: number, work: (disk: string) => Promise<void>): Promise<void> {
  const disk = await smallDisk(mib);
  if (disk === undefined) {
    console.warn(
      "NOT CHECKED: what happens on a full disk needs a small file system, and this machine lets nobody mount one",
    );
    origo = await start(folder);
    return;
  }
  try {
    origo = await start(disk);
    await work(disk);
  } finally {
    await origo.close();
    spawnSync("umount", [disk]);
    await rm(disk, { recursive: true, force: true });
  }
}

test.each([0, 4096, 40_000])(
  "the disk fills up in mid-write, with %i bytes left: the answer and the log say so, and no record is lost",
  (leftBytes) =>
    onSmallDisk(64, async (disk) => {
      await configure({ "origo.diskReserveBytes": 0, "origo.intakeBytesPerSecPerAddress": 2 ** 30 });
      const acknowledged: string[] = [];
      const send = async (): Promise<Response> => {
        const records = Array.from({ length: 100 }, () => recordOf());
        const response = await post(records);
        if (response.status === 202) acknowledged.push(...records.map(({ id }) => id));
        return response;
      };
      expect((await send()).status).toBe(202);
      const { bavail, bsize } = await statfs(disk);
      const ballast = join(disk, "ballast");
      await writeFile(ballast, new Uint8Array(bavail * bsize - leftBytes));
      for (let batch = 0; batch < 3; batch++) {
        const refused = await send();
        expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "30"]);
        const { error } = (await refused.json()) as ErrorResponse;
        expect([error.kind, error.message]).toEqual(["diskFull", expect.stringContaining("disk of Origo's database")]);
      }
      const reason = expect.stringMatching(/origo\.duckdb cannot be used: the disk is full: free some/) as string;
      expect(logged).toContainEqual(expect.objectContaining({ event: "requestFailed", reason }));
      await rm(ballast);
      expect((await send()).status).toBe(202);
      expect([...(await storedIds())].sort()).toEqual(acknowledged.sort());
      await origo.close();
      origo = await start(disk);
      expect([...(await storedIds())].sort()).toEqual(acknowledged.sort());
    }),
);

test("the disk is full: intake answers 503 until there is space again, and reads still work", async () => {
  await onSmallDisk(64, async (disk) => {
    await configure({ "origo.diskReserveBytes": 16 * MIB });
    const first = recordOf();
    expect((await post([first])).status).toBe(202);
    const { bavail, bsize } = await statfs(disk);
    const ballast = join(disk, "ballast");
    await writeFile(ballast, new Uint8Array(bavail * bsize - 15 * MIB));
    let refused = await post([recordOf()]);
    for (let tries = 0; refused.status === 202 && tries < 50; tries++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      refused = await post([recordOf()]);
    }
    expect(refused.status).toBe(503);
    expect(refused.headers.get("retry-after")).toBe("30");
    expect((await refused.json()) as ErrorResponse).toMatchObject({ error: { kind: "diskFull", limit: 16 * MIB } });
    const before = await stored();
    expect(before).toBeGreaterThanOrEqual(1);
    expect(await statusOf(`/v1/records/${first.id}`)).toBe(200);
    await rm(ballast);
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect((await post([recordOf()])).status).toBe(202);
    expect(await stored()).toBe(before + 1);
    await origo.close();
    origo = await start(disk);
    expect(await stored()).toBe(before + 1);
  });
});
