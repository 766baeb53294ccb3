import type { OwnRest } from "./api";
import { build, expectWhole, fetchAll, IMPATIENT, PROXIED_MODES } from "../test/scene";
import { readAll } from "../test/support";

describe.each(PROXIED_MODES)("%s", (mode) => {
  test("client: completes through the other proxies if one proxy dies during the download", async () => {
    const { origin, proxies } = await build(
      [{ dieAfterBytes: mode === "split-http" ? 6000 : 40_000 }, { packetEveryMs: 1 }, { packetEveryMs: 1 }],
      400_000,
    );
    const outcome = await fetchAll("file", { mode, connections: 3 });
    expectWhole(outcome, origin.body);
    expect(outcome.record.fallback).toBeNull();
    const dead = outcome.record.proxies.find(({ id }) => id === proxies[0]!.id);
    expect(dead).toMatchObject({ state: "failed" });
  });

  test("client: fetches the rest from the origin when every proxy dies, and says so", async () => {
    const dieAfterBytes = mode === "split-http" ? 6000 : 60_000;
    const { origin, client } = await build([{ dieAfterBytes }, { dieAfterBytes }], 400_000);
    const outcome = await fetchAll("file", { mode, connections: 2 });
    expectWhole(outcome, origin.body);
    const { fallback } = outcome.record;
    expect(fallback!.bytes).toBeGreaterThan(0);
    expect(fallback!.bytes).toBeLessThanOrEqual(origin.body.length);
    expect(fallback!.kind).toMatch(/proxyLost|proxyFailed|bodyShort/);
    expect(client.live.fallbacks).toBe(1);
    expect(client.live.directBytes).toBe(fallback!.bytes);
  });

  test("client: skips the bytes it already has if the origin ignores the range", async () => {
    const { origin } = await build([{ dieAfterBytes: 60_000 }], 200_000);
    const outcome = await fetchAll("no-range", { mode, connections: 1 });
    expectWhole(outcome, origin.body);
    expect(outcome.record.fallback!.bytes).toBe(200_000);
  });

  test("client: does not mix two versions of a resource", async () => {
    const { client, origin } = await build([{ dieAfterBytes: 60_000, packetEveryMs: 1 }], 200_000);
    const download = client.get(`${origin.url}/file`, { mode, connections: 1 });
    await download.head;
    [origin.etag, origin.body] = ['"two"', origin.body.map((byte) => byte ^ 1)];
    const body = await readAll(download.body).catch((error: { kind: string }) => error.kind);
    if (typeof body === "string") expect(body).toBe("originChanged");
    else expect(Buffer.compare(body, origin.body)).toBe(0);
  });

  test("client: joins what a server with another ETag sends if its first bytes are the same", async () => {
    const { client, origin } = await build([{ dieAfterBytes: 60_000, packetEveryMs: 1 }], 200_000);
    const download = client.get(`${origin.url}/file`, { mode, connections: 1 });
    await download.head;
    origin.etag = '"two"';
    expect(Buffer.compare(await readAll(download.body), origin.body)).toBe(0);
  });

  test("client: falls back when nothing comes", async () => {
    const { origin } = await build([{ mute: true }, { mute: true }], 100_000, IMPATIENT);
    const outcome = await fetchAll("file", { mode });
    expectWhole(outcome, origin.body);
    expect(outcome.record.fallback).toMatchObject({ kind: "stalled", bytes: 100_000 });
  });

  test("client: fails with the reason when the fallback is not allowed", async () => {
    await build([{ mute: true }], 100_000, IMPATIENT);
    const outcome = await fetchAll("file", { mode, allowFallback: false });
    expect(outcome.error).toMatchObject({ kind: "stalled" });
    expect(outcome.record).toMatchObject({ outcome: "failed", error: { kind: "stalled" }, fallback: null });
    expect((await fetchAll("file", { mode, allowFallback: "proxies" })).record).toMatchObject({
      outcome: "failed",
      error: { kind: "stalled" },
    });
  });

  test("client: fails after patienceMs without a byte", async () => {
    await build([{ mute: true }], 100_000, { firstByteMs: 60_000 });
    const outcome = await fetchAll("file", { mode, allowFallback: false, patienceMs: 300 });
    expect(outcome.error).toMatchObject({ kind: "stalled" });
  });

  test("client: joins the answers of different ETags only where digests show that their bytes agree", async () => {
    const { origin } = await build([{ packetEveryMs: 1 }, { etag: '"other"', packetEveryMs: 1 }], 200_000);
    const outcome = await fetchAll("file", { mode, connections: 2 });
    expect(outcome.record.outcome).toBe("complete");
    expect(Buffer.compare(outcome.body!, origin.body)).toBe(0);
    const dropped = outcome.record.proxies.filter(({ error }) => error?.kind === "planMismatch");
    expect(dropped).toHaveLength(0);
  });

  test("client: fetches directly if Origo is dead or knows no proxy", async () => {
    const { origin, origo } = await build([], 5000);
    const none = await fetchAll("file", { mode });
    expectWhole(none, origin.body);
    expect(none.record.fallback).toMatchObject({
      kind: "noProxies",
      message: expect.stringMatching(/^Origo knows no live proxy/),
    });
    await origo.stop();
    const dead = await fetchAll("file", { mode });
    expectWhole(dead, origin.body);
    expect(dead.record.fallback).toMatchObject({
      kind: "origoUnreachable",
      message: expect.stringMatching(/^Origo at .* cannot be reached/),
    });
    await origo.start();
  });

  test("client: fails if the origin breaks off its body", async () => {
    await build([{}], 100_000);
    const outcome = await fetchAll("short", { mode });
    expect(outcome.record).toMatchObject({ outcome: "failed", sha256: null });
    expect(outcome.error).toBeInstanceOf(Error);
  });

  test("client: fails on a redirect loop", async () => {
    await build([{}], 100);
    expect((await fetchAll("loop", { mode })).record).toMatchObject({ outcome: "failed", status: 0 });
  });

  test("client: delivers a whole body of unknown length", async () => {
    const { origin } = await build([{}, {}], 100_000);
    const outcome = await fetchAll("no-length", { mode });
    expectWhole(outcome, origin.body);
    if (mode.endsWith("mutp")) expect(outcome.record.fallback!.kind).toBe("lengthUnknown");
  });
});

describe("the caller finishes a download itself", () => {
  const mode = "coded";

  test("client: the record of a download that the caller finishes itself tells both parts", async () => {
    await build([{ mute: true }], 100_000, IMPATIENT);
    const rest = { offset: 0, bytes: 100_000, status: 200, headMs: 5, outcome: "complete" } as const;
    const ownRest = new Promise<OwnRest>((resolve) =>
      setTimeout(() => resolve({ reason: { kind: "stalled", message: "Nothing came." }, ...rest }), 500),
    );
    const { record, error } = await fetchAll("file", { mode, allowFallback: "proxies", ownRest });
    expect(error).toMatchObject({ kind: "stalled" });
    expect(record).toMatchObject({
      ...{ mode, outcome: "complete", status: 200, netBytes: 100_000, directBytes: 100_000, sha256: null },
      ...{
        fallback: { kind: "stalled", message: "Nothing came.", bytes: 100_000 },
        firstByteMs: 5,
        purpose: "request",
      },
    });
    expect(record.error).toBeUndefined();
    expect(record.durationMs).toBeGreaterThan(400);
    expect(record.grossBytes).toBe(100_000 + record.proxies.reduce((sum, { bytes }) => sum + bytes, 0));
  });

  test("client: what the caller did not finish is not complete, and a closed client waits for nobody", async () => {
    const { client, origin } = await build([{ mute: true }], 100_000, IMPATIENT);
    const rest = { offset: 0, bytes: 7, status: 200, headMs: 5, reason: { kind: "stalled", message: "" } } as const;
    const broken = await fetchAll("file", {
      mode,
      allowFallback: "proxies",
      ownRest: Promise.resolve({ ...rest, outcome: "failed" }),
    });
    expect(broken.record).toMatchObject({ outcome: "failed", netBytes: 7, error: { kind: "originFailed" } });
    const given = await fetchAll("file", {
      mode,
      allowFallback: "proxies",
      ownRest: Promise.resolve({ ...rest, outcome: "aborted" }),
    });
    expect(given.record).toMatchObject({ outcome: "aborted", fallback: { kind: "stalled", bytes: 7 } });
    const { record } = client.get(`${origin.url}/file`, { mode, ownRest: new Promise(() => undefined) });
    await client.close();
    expect(await record).toMatchObject({ outcome: "aborted", fallback: null });
  });
});
