/**
 * Tests Origo when its database is gone or silent, and when the disk is full: answers stay clear, reads work where they
 * can, and no batch is stored in part.
 */
import { spawnSync } from "node:child_process";
import { mkdtemp, rm, statfs, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
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

const start = (dataDir: string, databaseUrl?: string): Promise<Origo> =>
  startOrigo({ host: "127.0.0.1", port: 0, dataDir, databaseUrl, dashboardDir: folder, login: "off" });

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

test("the disk is full: intake answers 503 until there is space again, and reads still work", async () => {
  const disk = await smallDisk(64);
  if (disk === undefined) {
    console.warn(
      "NOT CHECKED: what happens on a full disk needs a small file system, and this machine lets nobody mount one",
    );
    origo = await start(folder);
    return;
  }
  try {
    origo = await start(disk);
    const { csrfToken } = (await (await fetch(`${origo.url}/v1/login`)).json()) as { csrfToken: string };
    const change = { baseVersion: 0, values: { "origo.diskReserveBytes": 16 * MIB }, reason: "a small disk" };
    const put = await fetch(`${origo.url}/v1/config`, {
      method: "PUT",
      headers: { "content-type": "application/json", "x-csrf-token": csrfToken },
      body: JSON.stringify(change),
    });
    expect(put.status).toBe(200);
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
  } finally {
    await origo.close();
    spawnSync("umount", [disk]);
    await rm(disk, { recursive: true, force: true });
  }
});
