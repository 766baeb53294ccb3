/** Tests publishing at Origo: real HTTP, real socket.io, both databases; proxies that only report what they hold. */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decodeJwt } from "jose";
import type { Socket } from "socket.io-client";
import type { PublicationRow, PublishedFile } from "@tributary/contract/publication-schema";
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
    await writeFile(join(folder, "player.html"), "<p>the page</p>");
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
    const serve = (bytes: number, reportId = randomUUID(), content = SEGMENT): Promise<unknown> =>
      socket.emitWithAck("served", {
        id: reportId,
        served: [{ object: objectOf(content), bytes }],
      }) as Promise<unknown>;
    return { socket, id, url, report, serve, forgotten };
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

  const servedOf = async (): Promise<Record<string, number>> => {
    const { publications } = (await publisher.act({ kind: "list" })).body as never as {
      publications: PublicationRow[];
    };
    return Object.fromEntries(publications.map(({ name, servedBytes }) => [name, servedBytes]));
  };

  test("what was served adds up for each publication: each report once, over restarts and revisions", async () => {
    await enrol();
    const [a, b] = [await library("a"), await library("b")];
    for (const name of ["film", "same"]) expect((await publish(name, 1, [a, b])).status).toBe(200);
    await publisher.begin("other", 1, files("other"));
    const [id, last] = [randomUUID(), randomUUID()];
    for (const bytes of [1000, 1000]) expect(await a.serve(bytes, id)).toEqual({ id });
    expect(await a.serve(0.5)).toMatchObject({ error: { kind: "badField" } });
    expect(await a.serve(1e13 + 1)).toMatchObject({ error: { kind: "badField" } });
    await Promise.all([a.serve(200, last), b.serve(30), b.serve(500, randomUUID(), "other"), b.serve(9, id, "?")]);
    expect(await servedOf()).toEqual({ film: 1230, same: 1230, other: 0 });

    expect((await publish("film", 2, [a], "two")).status).toBe(200);
    await origo.close();
    origo = await start();
    publisher = publisher.at(origo.url);
    const back = await library("a");
    expect(await back.serve(200, last)).toEqual({ id: last });
    await back.serve(1e13, randomUUID(), "two");
    expect(await servedOf()).toMatchObject({ film: 1230 + 1e13, same: 1230 });
    expect((await admin("GET", "/v1/library")).body["publications"]).toEqual(
      expect.arrayContaining([expect.objectContaining({ name: "same", servedBytes: 1230 })]),
    );
    await publisher.act({ kind: "unpublish", name: "same" });
    expect((await publish("same", 1, [back])).status).toBe(200);
    expect(await servedOf()).toMatchObject({ same: 0 });
  });

  test("what nobody may do is refused, each by its kind, and nothing is stored", async () => {
    const proxy = await library("a", 10 * MIB);
    const stranger = await TestPublisher.make(origo.url);
    expect(kindOf(await stranger.act({ kind: "list" }))).toBe("403 keyUnknown");
    expect(kindOf(await stranger.act({ kind: "enrol", label: "Eve", code: "publisher-wrong" }))).toBe("403 wrongCode");
    expect(kindOf(await stranger.act({ kind: "enrol", label: "Eve", code: "" }))).toBe("403 codeMissing");
    expect(kindOf(await publisher.post("/v1/publisher", "no JWS at all"))).toBe("400 badRequest");
    const code = await newCode();
    expect(kindOf(await publisher.act({ kind: "enrol", label: "Ana", code }))).toBe("200 ok");
    expect(kindOf(await publisher.act({ kind: "enrol", label: "Ana again", code: "" }))).toBe("200 ok");
    expect(kindOf(await stranger.act({ kind: "enrol", label: "Eve", code }))).toBe("403 codeUsed");

    const forged = await stranger.signed({ kind: "list", key: publisher.key, atMs: Date.now() });
    expect(kindOf(await publisher.post("/v1/publisher", forged))).toBe("403 signatureWrong");
    const manifest = { kind: "manifest", key: publisher.key, name: "film", revision: 1, files: files() };
    const [head, , tail] = (await publisher.signed(manifest)).split(".");
    const other = Buffer.from(JSON.stringify({ ...manifest, revision: 2 })).toString("base64url");
    const changed = await publisher.post("/v1/publications", `${head}.${other}.${tail}`);
    expect(kindOf(changed)).toBe("403 signatureWrong");
    for (const wrong of [
      { ...manifest, files: [] },
      { ...manifest, name: ".." },
      { ...manifest, name: "Film" },
      { ...manifest, files: [fileOf("../master.m3u8", "a/b", "x")] },
      { ...manifest, files: [fileOf("a/../b", "a/b", "x")] },
      { ...manifest, files: [fileOf("a", "a/b", "x"), fileOf("a", "a/b", "y")] },
      { ...manifest, files: [{ path: "a", type: "a/b", object: "x".repeat(66) }] },
    ])
      expect(kindOf(await publisher.post("/v1/publications", await publisher.signed(wrong)))).toBe("400 badField");
    const action = await publisher.signed({ kind: "list", key: publisher.key, atMs: Date.now() - 400_000 });
    expect((await publisher.post("/v1/publisher", action)).body.error).toMatchObject({ kind: "clockWrong" });
    expect((await ask(`${origo.url}/v1/publisher`, { method: "POST", body: "x" })).status).toBe(415);
    const large = await publisher.post("/v1/publications", "x".repeat(4 * MIB + 1));
    expect(kindOf(large)).toBe("413 bodyTooLarge");
    expect(kindOf(await publisher.putPlaylist(PLAYLIST))).toBe("404 notFound");
    const { publications } = (await admin("GET", "/v1/library")).body as never as { publications: unknown[] };
    expect(publications).toEqual([]);

    expect(kindOf(await publisher.begin("film", 1, files()))).toBe("201 ok");
    expect(kindOf(await publisher.putPlaylist(PLAYLIST.toLowerCase(), objectOf(PLAYLIST)))).toBe("422 rootMismatch");
    expect(kindOf(await publisher.act({ kind: "release", name: "film", revision: 1 }))).toBe("409 objectsMissing");
    expect(kindOf(await publisher.act({ kind: "release", name: "film", revision: 2 }))).toBe("404 notFound");
    expect(kindOf(await publisher.begin("film", 1, files("other")))).toBe("409 revisionOld");
    const large10 = [fileOf("b", "a/b", "x")].map((file) => ({ ...file, object: `${"0".repeat(64)}-${11 * MIB}` }));
    expect((await publisher.begin("big", 1, large10)).body.error).toMatchObject({ kind: "noRoom", got: 11 * MIB });
    expect(proxy.forgotten).toEqual([]);
  });

  test("quotas of bytes and publications; a revoked publisher can do nothing", async () => {
    await enrol();
    const proxy = await library("a");
    const change = { baseVersion: 0, values: { "origo.publicationsPerPublisher": 2 }, reason: "a test" };
    expect((await admin("PUT", "/v1/config", change)).status).toBe(200);
    expect(kindOf(await admin("PATCH", `/v1/publishers/${publisher.key}`, { quotaBytes: 31_000 }))).toBe("200 ok");
    expect(kindOf(await publish("one", 1, [proxy]))).toBe("200 ok");
    const other = await publisher.begin("two", 1, files("another".repeat(1000)));
    expect(other.body.error).toMatchObject({ kind: "quotaExceeded", limit: 31_000 });
    expect(kindOf(await publish("two", 1, [proxy]))).toBe("200 ok");
    expect(kindOf(await publisher.begin("three", 1, files()))).toBe("409 tooManyPublications");
    // The same objects count once, and a new revision may use them again.
    expect(kindOf(await publish("one", 2, [proxy]))).toBe("200 ok");
    // Two publishers may have publications of one name.
    const second = await TestPublisher.make(origo.url);
    expect(kindOf(await enrol(second))).toBe("200 ok");
    expect(kindOf(await second.begin("one", 1, files("second")))).toBe("201 ok");

    expect(kindOf(await admin("DELETE", `/v1/publishers/${publisher.key}`))).toBe("200 ok");
    expect(kindOf(await publisher.act({ kind: "list" }))).toBe("403 keyRevoked");
    expect(kindOf(await publisher.act({ kind: "enrol", label: "Ana", code: await newCode() }))).toBe("403 keyRevoked");
    // What it published plays until an admin unpublishes it.
    const at = `${origo.url}/v/${publisher.key}/one/master.m3u8`;
    expect((await ask(at)).status).toBe(200);
    expect(kindOf(await admin("DELETE", `/v1/publications/${publisher.key}/one`))).toBe("200 ok");
    expect((await ask(at)).status).toBe(404);
  });

  test("a restart in mid-publish loses nothing, and what stays pending for a day is dropped", async () => {
    await enrol();
    const [a, b] = [await library("a"), await library("b")];
    const begun = await publisher.begin("film", 1, files());
    await publisher.putPlaylist(PLAYLIST);
    await origo.close();
    origo = await start();
    publisher = publisher.at(origo.url);
    const back = await library("a");
    expect(kindOf(await publisher.begin("film", 1, files()))).toBe("201 ok");
    expect(begun.body["proxies"]).toHaveLength(2);
    await back.report([objectOf(SEGMENT)], [], true);
    expect(kindOf(await publisher.act({ kind: "release", name: "film", revision: 1 }))).toBe("200 ok");
    expect(kindOf(await publisher.act({ kind: "release", name: "film", revision: 1 }))).toBe("200 ok");
    expect(kindOf(await publisher.begin("film", 2, files("two")))).toBe("201 ok");
    await origo.close();
    skewMs = 86_400_001;
    origo = await start();
    publisher = publisher.at(origo.url);
    const { publications } = (await publisher.act({ kind: "list" })).body as never as { publications: unknown[] };
    expect(publications).toMatchObject([{ revision: 1, state: "released", missingObjects: 1, holders: [] }]);
    const lost = await ask(`${origo.url}/v/${publisher.key}/film/seg%201.m4s`);
    expect(kindOf(lost)).toBe("503 objectsMissing");
    expect([a.id, b.id]).toContain(back.id);
  });

  test("players: every page may read, no script of a publisher runs as Origo, and holders come first", async () => {
    await enrol();
    const [a] = [await library("a"), await library("b"), await library("c")];
    const evil = "<html xmlns='http://www.w3.org/1999/xhtml'><script>alert(1)</script></html>";
    const all = [
      fileOf("a b/späť.m3u8", "text/html", PLAYLIST),
      fileOf("x.mpd", "text/html", evil),
      fileOf("index.html", "text/html", evil),
      fileOf("nothing.bin", "application/octet-stream", ""),
    ];
    await publisher.begin("site", 1, all);
    for (const content of [PLAYLIST, evil]) expect(kindOf(await publisher.putPlaylist(content))).toBe("204 ok");
    await a.report([objectOf(evil), objectOf("")]);
    expect(kindOf(await publisher.act({ kind: "release", name: "site", revision: 1 }))).toBe("200 ok");
    const at = `${origo.url}/v/${publisher.key}/site`;
    const playlist = await ask(`${at}/a%20b/${encodeURIComponent("späť")}.m3u8`);
    expect(playlist.body["text"]).toBe(PLAYLIST);
    const mpd = await ask(`${at}/x.mpd`);
    expect(mpd.headers.get("content-type")).toMatch("application/dash+xml");
    expect(mpd.headers.get("content-security-policy")).toMatch("sandbox");
    expect(mpd.headers.get("x-content-type-options")).toBe("nosniff");
    const html = await ask(`${at}/index.html`);
    expect([html.status, new URL(html.headers.get("location")!).origin]).toEqual([307, a.url]);
    const page = await ask(`${at}/`);
    expect([page.status, page.body["text"], page.headers.get("x-frame-options")]).toEqual([
      200,
      "<p>the page</p>",
      null,
    ]);
    expect(page.headers.get("content-security-policy")).toMatch("default-src 'none'; script-src 'self';");
    expect((await ask(at)).headers.get("location")).toBe("site/");
    for (const path of ["/..%2fx.mpd", "/y.mpd", "/x.mpd/", "-not/"]) expect((await ask(at + path)).status).toBe(404);
    expect((await ask(`${at}/%ff`)).status).toBe(400);
    const headers = { "if-none-match": mpd.headers.get("etag")!, "cache-control": "max-age=0" };
    const again = await ask(`${at}/x.mpd`, { headers });
    expect(again.status).toBe(304);
    const preflight = await ask(`${at}/index.html`, { method: "OPTIONS", headers: { origin: "https://any.example" } });
    expect(preflight.headers.get("access-control-allow-headers")).toMatch("range");
    const described = await ask(`${origo.url}/v1/publications/${publisher.key}/site?count=2`, {
      headers: { origin: "https://any.example" },
    });
    expect(described.headers.get("access-control-allow-origin")).toBe("*");
    expect(described.body).toMatchObject({ holders: 1, proxies: [{ id: a.id }, {}] });
    a.socket.disconnect();
    await until(async () => (await ask(`${at}/index.html`)).status === 503);
    expect((await admin("GET", "/v1/library")).body["publications"]).toMatchObject([{ missingObjects: 2 }]);
  });
});

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 10));
}
