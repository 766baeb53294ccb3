import { build, EVERY_MODE, expectSums, expectWhole, fetchAll, scene } from "../test/scene";
import { readAll } from "../test/support";
import type { Mode } from "./api";
import { ProxyClient } from "./client";

describe.each(EVERY_MODE)("%s", (mode) => {
  test.each([0, 1, 1100, 300_000])("client: delivers %i bytes as the origin has them", async (bytes) => {
    const { origin } = await build([{}, {}, {}, {}], bytes);
    const outcome = await fetchAll("file", { mode });
    expectWhole(outcome, origin.body);
    expect(outcome.record).toMatchObject({ mode, status: 200, fallback: null, connections: 4 });
    expect(outcome.record.proxies).toHaveLength(mode === "direct" ? 0 : 4);
  });

  test("client: delivers a range, both ends included", async () => {
    const { origin } = await build([{}, {}], 50_000);
    const outcome = await fetchAll("file", { mode, range: { start: 100, end: 20_099 }, connections: 2 });
    expectWhole(outcome, origin.body.subarray(100, 20_100));
    expect(outcome.record).toMatchObject({ status: 206, range: { start: 100, end: 20_099 }, fallback: null });
  });

  test("client: an origin that ignores ranges gives the bytes that were asked for, or an error", async () => {
    const { origin } = await build([{}, {}], 50_000);
    const range = { start: 100, end: 20_099 };
    const outcome = await fetchAll("no-range", { mode, range, connections: 2 });
    expectWhole(outcome, origin.body.subarray(100, 20_100));
    expect(outcome.record.status).toBe(206);
    expectWhole(await fetchAll("no-range", { mode, range, connections: 2, verbatim: true }), origin.body);
    if (mode === "direct") return;
    const { record } = await fetchAll("no-range", { mode, range, connections: 2, allowFallback: false });
    expect(record.error).toMatchObject({
      kind: "rangeRefused",
      message: expect.stringContaining("asked for bytes 100-20099, got the whole in 50000 bytes"),
    });
  });

  test.each([404, 416, 500])("client: returns the status %i of the origin itself as a result", async (status) => {
    await build([{}, {}], 10);
    const outcome = await fetchAll(`status-${status}`, { mode });
    expectWhole(outcome, Buffer.from(`status ${status}`));
    expect(outcome.record.status).toBe(status);
    expect(outcome.record.fallback?.kind).toBe(mode === "direct" ? undefined : "otherStatus");
    expect(outcome.record.directBytes).toBe(outcome.record.netBytes);
  });

  test("client: a status that only proxies may ask for ends the download, and the error names it", async () => {
    if (mode === "direct") return;
    const { client, origin } = await build([{}, {}], 10);
    const { head, record } = client.get(`${origin.url}/status-429`, { mode, allowFallback: "proxies" });
    await expect(head).rejects.toMatchObject({ kind: "otherStatus", got: 429 });
    await record;
  });

  test("client: an abort during the download ends the body with its reason and leaves nothing open", async () => {
    const { client, origin, proxies, bench } = await build([{ packetEveryMs: 5 }, { packetEveryMs: 5 }], 2_000_000);
    const controller = new AbortController();
    const download = client.get(`${origin.url}/${mode === "direct" ? "stall" : "file"}`, {
      mode,
      signal: controller.signal,
    });
    const reader = download.body.getReader();
    await reader.read();
    controller.abort(new Error("enough seen"));
    await expect(reader.read().then(() => reader.closed)).rejects.toThrow("enough seen");
    const record = await download.record;
    expect(record).toMatchObject({
      outcome: "aborted",
      sha256: null,
      error: { kind: "aborted", message: "enough seen" },
    });
    expectSums(record);
    if (mode.endsWith("mutp")) expect(proxies.map(({ outcomes }) => outcomes)).toEqual([["aborted"], ["aborted"]]);
    for (const engine of bench.engines) expect(engine.openCount).toBe(0);
  });

  test("client: cancelling the body aborts the download", async () => {
    const { client, origin } = await build([{ packetEveryMs: 5 }], 2_000_000);
    const download = client.get(`${origin.url}/${mode === "direct" ? "stall" : "file"}`, { mode });
    const reader = download.body.getReader();
    await reader.read();
    await reader.cancel("seen enough");
    expect(await download.record).toMatchObject({ outcome: "aborted" });
  });

  test("client: reports an abort before the first byte as aborted", async () => {
    const { client, origin } = await build([{}], 100_000);
    const download = client.get(`${origin.url}/file`, { mode });
    download.abort();
    await expect(download.head).rejects.toMatchObject({ name: "AbortError" });
    expect(await download.record).toMatchObject({ outcome: "aborted", netBytes: 0 });
  });
});

test.each([
  ["direct", "stall", "originSilent"],
  ["parallel-http", "file", "stalled"],
] as const)("client: %s notices a silent source although the reader was slow", async (mode, path, kind) => {
  const settings = { queuedBytesMax: 64_000, directSilenceMs: 300, firstByteMs: 5000, stallMs: 300 };
  const { client, origin } = await build([{ stallAfterBytes: 64_000 }], 128_000, settings);
  const download = client.get(`${origin.url}/${path}`, { mode, connections: 1, allowFallback: false });
  await download.head;
  await new Promise((resolve) => setTimeout(resolve, 200));
  await expect(readAll(download.body)).rejects.toMatchObject({ kind });
});

describe("arguments and reports", () => {
  test.each([
    ["ftp://example.org/a", {}, /url is not valid: got "ftp:/],
    ["no url", {}, /url is not valid: got "no url"/],
    ["http://user:secret@example.org/", {}, /without user name/],
    ["http://example.org/", { mode: "fast" as Mode }, /mode is not valid: got "fast", allowed: direct, parallel-http/],
    ["http://example.org/", { connections: 0 }, /connections is not valid: got 0, allowed: a whole number 1..32/],
    ["http://example.org/", { connections: 33 }, /got 33/],
    ["http://example.org/", { range: { start: 5, end: 4 } }, /range is not valid: got "5-4"/],
    [
      "http://example.org/",
      { symbolBytes: 1141 },
      /symbolBytes is not valid: got 1141, allowed: a whole number 64..1140/,
    ],
  ])("client: get(%s, %j) throws before any network", async (url, options, message) => {
    const { client, origo } = await build([], 0);
    expect(() => client.get(url, options)).toThrow(TypeError);
    expect(() => client.get(url, options)).toThrow(message);
    expect(origo.requests).toHaveLength(0);
  });

  test("client: reports each download once, without the query of its URL", async () => {
    const { client, origo } = await build([{}], 1000);
    const outcome = await fetchAll("file?token=secret#part", { mode: "uncoded-mutp", comment: "a test" });
    await client.close();
    expect(origo.records).toEqual([JSON.parse(JSON.stringify(outcome.record))]);
    expect(origo.records[0]).toMatchObject({ url: `${scene.origin.url}/file`, comment: "a test" });
    expect(JSON.stringify(origo.records)).not.toContain("secret");
  });

  test("client: asks Origo for proxies under a new id if it reports no records", async () => {
    const { bench, origo } = await build([], 0);
    const clientId = "0b8f5a0e-6a1e-4c4e-8b0f-0123456789ab";
    for (const reportRecords of [true, false]) {
      const client = new ProxyClient({
        origoUrl: origo.url,
        platform: bench.platform,
        source: "library",
        clientId,
        reportRecords,
      });
      await client.proxies();
      await client.close();
    }
    const lists = origo.requests.filter(({ path }) => path.startsWith("/v1/proxies?"));
    expect(lists.map(({ path }) => path.includes(clientId))).toEqual([true, false]);
  });

  test("client: hashes nothing if it reports no records", async () => {
    const { bench, origo, origin } = await build([], 1000);
    const createHasher = (): never => {
      throw new Error("nobody compares the digest");
    };
    const client = new ProxyClient({
      origoUrl: origo.url,
      platform: { ...bench.platform, createHasher },
      source: "library",
      reportRecords: false,
    });
    const download = client.get(`${origin.url}/file`, { mode: "direct", retries: 0 });
    expect(Buffer.compare(await readAll(download.body), origin.body)).toBe(0);
    expect(await download.record).toMatchObject({ outcome: "complete", netBytes: 1000, sha256: null });
    await client.close();
  });

  test("client: live totals add up to the records", async () => {
    const { client } = await build([{}, {}], 50_000);
    const first = await fetchAll("file", { mode: "uncoded-mutp", connections: 2 });
    const second = await fetchAll("file", { mode: "parallel-http", connections: 2 });
    const { live } = client;
    for (const proxy of live.proxies) {
      const bytes = [first, second].flatMap(({ record }) => record.proxies).filter(({ id }) => id === proxy.id);
      expect(proxy.bytes).toBe(bytes.reduce((sum, each) => sum + each.bytes, 0));
    }
    expect(live).toMatchObject({ downloads: 2, deliveredBytes: 100_000, directBytes: 0, fallbacks: 0 });
  });
});
