/** Tests publishing at Origo: real HTTP, real socket.io, both databases; proxies that only report what they hold. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decodeJwt } from "jose";
import type { Socket } from "socket.io-client";
import type { PublishedFile } from "@tributary/contract/publication-schema";
import { startOrigo, type Origo } from "./server";
import { DATABASES, stopDatabases, type TestDatabase } from "../test/databases";
import { joinProxy } from "../test/proxy";
import { ask, fileOf, objectOf, TestPublisher, type Answered } from "../test/publisher";
import { helloOf, statusOf } from "../../contract/test/samples";

const PLAYLIST = "#EXTM3U\n#EXTINF:1,\nseg 1.m4s\n";
const SEGMENT = "one".repeat(10_000);
const MIB = 1024 * 1024;

afterAll(stopDatabases);

describe.each(DATABASES)("publishing over %s", (_name, make) => {
  let [database, folder, origo, skewMs]: [TestDatabase, string, Origo, number] = [] as never;
  let sockets: Socket[] = [];
  let publisher: TestPublisher;

  const start = (): Promise<Origo> =>
    startOrigo({
      host: "127.0.0.1",
      port: 0,
      dataDir: database.environment.DATA_DIR,
      databaseUrl: database.environment.DATABASE_URL,
      dashboardDir: folder,
      login: "off",
      nowMs: () => Date.now() + skewMs,
    });

  beforeEach(async () => {
    database = await make();
    folder = await mkdtemp(join(tmpdir(), "origo-publishing-"));
    [skewMs, sockets] = [0, []];
    origo = await start();
    publisher = await TestPublisher.make(origo.url, () => Date.now() + skewMs);
  });
  afterEach(async () => {
    for (const socket of sockets) socket.disconnect();
    await origo.close();
    await database.remove();
    await rm(folder, { recursive: true, force: true });
  });

  const admin = async (method: string, path: string, body?: unknown): Promise<Answered> => {
    const { csrfToken } = (await ask(`${origo.url}/v1/login`)).body;
    return ask(origo.url + path, {
      method,
      headers: { "x-csrf-token": String(csrfToken), "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  };
  const newCode = async (): Promise<string> => String((await admin("POST", "/v1/publishers")).body["code"]);
  const enrol = async (who = publisher): Promise<Answered> =>
    who.act({ kind: "enrol", label: "Ana", code: await newCode() });
  const library = async (name: string, freeBytes = 100 * MIB, operator = name) => {
    const forgotten: string[] = [];
    const url = `http://${name}.example:7611`;
    const { socket, id } = await joinProxy(
      origo.url,
      database.environment.DATA_DIR,
      helloOf({ name, url, operator }),
      (event, message) => event === "forget" && forgotten.push(...(message as { objects: string[] }).objects),
    );
    sockets.push(socket);
    const status = { objects: 0, bytes: 0, freeBytes, servedBytes: 0, takenBytes: 0, damagedObjects: 0 };
    await socket.emitWithAck("status", statusOf({ library: status }));
    const report = (added: string[], removed: string[] = [], isFirst = false): Promise<unknown> =>
      socket.emitWithAck("objects", { isFirst, added, removed }) as Promise<unknown>;
    return { socket, id, url, report, forgotten };
  };
  const kindOf = ({ status, body }: Answered): string => `${status} ${body.error?.kind ?? "ok"}`;
  const files = (segment = SEGMENT): PublishedFile[] => [
    fileOf("master.m3u8", "application/vnd.apple.mpegurl", PLAYLIST),
    fileOf("seg 1.m4s", "video/mp4", segment),
  ];
  const publish = async (
    name: string,
    revision: number,
    proxies: Awaited<ReturnType<typeof library>>[],
    segment = SEGMENT,
  ): Promise<Answered> => {
    expect(kindOf(await publisher.begin(name, revision, files(segment)))).toBe("201 ok");
    expect(kindOf(await publisher.putPlaylist(PLAYLIST))).toBe("204 ok");
    for (const proxy of proxies) await proxy.report([objectOf(segment)]);
    return publisher.act({ kind: "release", name, revision });
  };

  test("a publication is pending, then released, then replaced, then gone", async () => {
    expect(kindOf(await publisher.begin("film", 1, files()))).toBe("403 keyUnknown");
    expect((await enrol()).body).toMatchObject({ key: publisher.key, label: "Ana" });
    expect(kindOf(await publisher.begin("film", 1, files()))).toBe("503 noRoom");
    const [a, b] = [await library("a"), await library("b")];
    const begun = await publisher.begin("film", 1, files());
    expect((begun.body["proxies"] as { id: string }[]).map(({ id }) => id).sort()).toEqual([a.id, b.id].sort());
    const at = `${origo.url}/v/${publisher.key}/film/`;
    expect((await ask(`${at}master.m3u8`)).status).toBe(404);
    const [grant] = (await publisher.act({ kind: "grants", name: "film", revision: 1, objects: [objectOf(SEGMENT)] }))
      .body["grants"] as string[];
    expect(decodeJwt(grant!)).toMatchObject({ object: objectOf(SEGMENT), iss: "origo" });
    expect(decodeJwt(grant!)["aud"]).toEqual(expect.arrayContaining([a.id, b.id]));
    expect(kindOf(await publisher.act({ kind: "grants", name: "film", revision: 1, objects: [objectOf("x")] }))).toBe(
      "400 badField",
    );
    expect(kindOf(await publisher.act({ kind: "release", name: "film", revision: 1 }))).toBe("409 objectsMissing");

    expect((await publish("film", 1, [a, b])).body).toEqual({ address: at, embed: at });
    const playlist = await ask(`${at}master.m3u8`);
    expect(playlist.body["text"]).toBe(PLAYLIST);
    expect(playlist.headers.get("content-type")).toMatch("application/vnd.apple.mpegurl");
    expect(playlist.headers.get("access-control-allow-origin")).toBe("*");
    const hosts = new Set<string>();
    for (let index = 0; index < 4; index++) {
      const segment = await ask(`${at}seg%201.m4s`, { headers: { range: "bytes=0-9" } });
      expect(segment.status).toBe(307);
      const to = new URL(segment.headers.get("location")!);
      hosts.add(to.origin);
      expect(to.pathname).toBe(`/v1/objects/${objectOf(SEGMENT)}`);
      expect(to.searchParams.get("type")).toBe("video/mp4");
    }
    expect(hosts.size).toBe(2);

    expect((await publish("film", 2, [a], "two")).status).toBe(200);
    expect(kindOf(await publisher.begin("film", 1, files()))).toBe("409 revisionOld");
    const { publications } = (await publisher.act({ kind: "list" })).body as never as { publications: unknown[] };
    expect(publications).toMatchObject([
      { name: "film", revision: 2, state: "released", files: 2, missingObjects: 0, holders: [{ id: a.id }] },
    ]);
    await until(() => a.forgotten.includes(objectOf(SEGMENT)) && b.forgotten.includes(objectOf(SEGMENT)));
    expect(kindOf(await publisher.act({ kind: "unpublish", name: "film" }))).toBe("200 ok");
    expect((await ask(`${at}master.m3u8`)).status).toBe(404);
    await until(() => a.forgotten.includes(objectOf("two")));
  });
});

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 10));
}
