/** Mode `direct` over real sockets: what servers do wrong, and what comes of it. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import type { DownloadRecord } from "@tributary/contract/schema";
import { bytesOf, Origo, readAll } from "../../test/support";
import type { GetOptions } from "../api";
import { createNodeClient, type ProxyClient } from "../node";
import { SETTINGS_DEFAULT } from "../settings";

const FILE = bytesOf(600_000);
type Handler = (request: IncomingMessage, response: ServerResponse, count: number) => unknown;

let handler: Handler;
let asked: string[] = [];
let client: ProxyClient;
const origo = new Origo();
let url = "";
const server = createServer((request, response) => {
  asked.push(`${request.url} ${request.headers.range ?? "whole"}`);
  response.on("error", () => undefined);
  void handler(request, response, asked.length);
});

beforeAll(async () => {
  await origo.start();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
beforeEach(() => {
  asked = [];
  client = createNodeClient({ origoUrl: origo.url });
});
afterEach(() => client.close());
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await origo.stop();
});

interface Got {
  record: DownloadRecord;
  bytes: Uint8Array;
  status: number | undefined;
  headers: Record<string, string> | undefined;
}

/** Reads the body as far as it comes. */
async function get(path: string, options: GetOptions = {}): Promise<Got> {
  const download = client.get(url + path, { mode: "direct", ...options });
  const pieces: Uint8Array[] = [];
  try {
    for await (const piece of download.body) pieces.push(piece);
  } catch {
    // The record tells.
  }
  const head = await download.head.catch(() => undefined);
  return { record: await download.record, bytes: Buffer.concat(pieces), status: head?.status, headers: head?.headers };
}

function expectFile({ record, bytes }: Got, expected: Uint8Array = FILE): void {
  expect(record).toMatchObject({ outcome: "complete", netBytes: expected.length });
  expect(Buffer.compare(bytes, expected)).toBe(0);
}

/** Answers with FILE or the wanted part of it. `breakAfter`: the connection ends after so many bytes. */
function serve(
  request: IncomingMessage,
  response: ServerResponse,
  { etag = '"one"', breakAfter, body = FILE }: { etag?: string | null; breakAfter?: number; body?: Uint8Array } = {},
): void {
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "") ?? [];
  const start = Number(first ?? 0);
  const end = Math.min(Number(last || Infinity), body.length - 1);
  response.writeHead(first === undefined ? 200 : 206, {
    "content-length": end - start + 1,
    ...(first === undefined ? {} : { "content-range": `bytes ${start}-${end}/${body.length}` }),
    ...(etag === null ? {} : { etag }),
  });
  if (breakAfter === undefined) response.end(body.subarray(start, end + 1));
  else response.write(body.subarray(start, start + breakAfter), () => setTimeout(() => response.destroy(), 20));
}

const partial = (contentRange: string, bytes: Uint8Array, headers = {}): Handler => {
  return (_request, response) =>
    response.writeHead(206, { "content-range": contentRange, "content-length": bytes.length, ...headers }).end(bytes);
};

describe("ranges", () => {
  const range = { start: 1000, end: 1999 };

  test.each([
    ["another range", "bytes 0-99/600000", 100, "asked for bytes 1000-1999, got bytes 0-99/600000"],
    ["a longer range", "bytes 1000-2999/600000", 2000, "asked for bytes 1000-1999, got bytes 1000-2999/600000"],
    ["a beginning without a validator", "bytes 1000-1099/600000", 100, "got bytes 1000-1099/600000"],
    ["another length than it says", "bytes 1000-1999/600000", 50, "got bytes 1000-1999/600000 in 50 bytes"],
    ["no readable Content-Range", "bytes=1000-1999", 1000, "got bytes=1000-1999"],
  ])("direct: an answer with %s is an error that names both", async (_what, told, count, message) => {
    handler = partial(told, FILE.subarray(0, count));
    const { record, bytes } = await get("/", { range });
    expect(record.error).toMatchObject({ kind: "rangeRefused", message: expect.stringContaining(message) });
    expect(bytes).toHaveLength(0);
  });

  test("direct: a range that goes on to the end of the file", async () => {
    handler = (request, response) => serve(request, response);
    expectFile(await get("/", { range: { start: 599_000, end: 2 ** 48 - 1 } }), FILE.subarray(599_000));
  });

  test("direct: a server that ignores ranges gives the bytes that were asked for", async () => {
    handler = (_request, response) => response.writeHead(200, { "content-length": FILE.length }).end(FILE);
    const got = await get("/", { range });
    expectFile(got, FILE.subarray(1000, 2000));
    expect(got).toMatchObject({ status: 206, headers: { "content-range": "bytes 1000-1999/600000" } });
    expectFile(await get("/", { range, verbatim: true }));
    expect((await get("/", { range: { start: 600_000, end: 600_001 } })).record.error?.message).toBe(
      "The origin answers with another range: asked for bytes 600000-600001, got the whole in 600000 bytes.",
    );
  });

  test("direct: a server that ignores ranges and tells no length gives the bytes, or an error", async () => {
    handler = (_request, response) => void response.writeHead(200).write(FILE, () => response.end());
    expectFile(await get("/", { range }), FILE.subarray(1000, 2000));
    const beyond = await get("/", { range: { start: 599_000, end: 600_500 }, retries: 0 });
    expect(beyond.record.error?.kind).toBe("bodyShort");
  });

  test("direct: a whole that is answered 206 comes if the part is all of it, and is an error if not", async () => {
    handler = partial("bytes 0-599999/600000", FILE);
    expectFile(await get("/"));
    handler = partial("bytes 0-599999/900000", FILE);
    expect((await get("/")).record.error?.message).toContain("asked for the whole, got bytes 0-599999/900000");
    handler = partial("bytes 0-599999/*", FILE);
    expect((await get("/")).record.outcome).toBe("failed");
  });

  test("direct: a server that gives ranges piece by piece is asked for the next piece", async () => {
    handler = (request, response) => {
      const start = Number(/bytes=(\d+)/.exec(request.headers.range!)![1]);
      const end = Math.min(start + 99_999, 399_999);
      partial(`bytes ${start}-${end}/600000`, FILE.subarray(start, end + 1), { etag: '"one"' })(request, response, 0);
    };
    const got = await get("/", { range: { start: 100_000, end: 399_999 } });
    expectFile(got, FILE.subarray(100_000, 400_000));
    expect(got.headers).toMatchObject({ "content-range": "bytes 100000-399999/600000" });
    expect(asked).toHaveLength(3);
  });
});

describe("failures that pass", () => {
  test("direct: goes on where a connection breaks, as often as it brings bytes", async () => {
    handler = (request, response) => serve(request, response, { breakAfter: 50_000 });
    expectFile(await get("/", { retries: 1 }));
    expect(asked.slice(0, 3)).toEqual(["/ whole", "/ bytes=50000-599999", "/ bytes=100000-599999"]);
  });

  test("direct: without a validator it starts again and compares, and joins no other version", async () => {
    handler = (request, response, count) =>
      serve(request, response, { etag: null, ...(count === 1 ? { breakAfter: 200_000 } : {}) });
    expectFile(await get("/"));
    asked = [];
    const other = FILE.map((byte) => byte ^ 1);
    handler = (request, response, count) =>
      serve(request, response, { etag: null, ...(count === 1 ? { breakAfter: 200_000 } : { body: other }) });
    const mixed = await get("/");
    expect(mixed.record).toMatchObject({ outcome: "failed", error: { kind: "originChanged" } });
  });

  test("direct: a file that grows comes as its newest version", async () => {
    const longer = bytesOf(700_000);
    longer.set(FILE);
    handler = (request, response, count) =>
      serve(request, response, count === 1 ? { breakAfter: 200_000 } : { body: longer, etag: '"two"' });
    expectFile(await get("/"), longer);
  });

  test.each([429, 503])("direct: waits as long as an origin asks that answers %i", async (status) => {
    const atMs: number[] = [];
    handler = (request, response, count) => {
      atMs.push(performance.now());
      if (count === 1) response.writeHead(status, { "retry-after": "1" }).end("busy");
      else serve(request, response);
    };
    expectFile(await get("/"));
    expect(atMs[1]! - atMs[0]!).toBeGreaterThan(950);
  });

  test("direct: the answer of an origin that stays busy, or asks for too long a wait, is the result", async () => {
    handler = (_request, response) => response.writeHead(503, { "retry-after": "0" }).end("busy");
    const got = await get("/", { retries: 2 });
    expect([got.status, got.bytes.toString(), asked.length]).toEqual([503, "busy", 3]);
    asked = [];
    handler = (_request, response) => response.writeHead(503, { "retry-after": "7200" }).end("busy");
    expect([(await get("/")).status, asked.length]).toEqual([503, 1]);
  });

  test.each(["destroy", "resetAndDestroy"] as const)(
    "direct: a connection that ends before the answer (%s) is tried again",
    async (end) => {
      handler = (request, response, count) => (count === 1 ? request.socket[end]() : serve(request, response));
      expectFile(await get("/"));
    },
  );

  test("direct: a connection that is refused is not tried again", async () => {
    const refused = client.get("http://127.0.0.1:9/", { mode: "direct" });
    const startMs = performance.now();
    expect((await refused.record).error).toMatchObject({
      kind: "originFailed",
      message: expect.stringContaining("ECONNREFUSED"),
    });
    expect(performance.now() - startMs).toBeLessThan(5000);
  });

  test("direct: an origin that is silent for timeoutMs has failed, and another may bring the rest", async () => {
    handler = (request, response, count) => {
      if (count > 1) return serve(request, response);
      response.writeHead(200, { "content-length": FILE.length, etag: '"one"' }).write(FILE.subarray(0, 1000));
    };
    expectFile(await get("/", { timeoutMs: 300 }));
    handler = () => undefined;
    const silent = await get("/", { timeoutMs: 300 });
    expect(silent.record.error).toMatchObject({ kind: "originSilent", message: expect.stringContaining("300 ms") });
  });

  test("direct: a late first byte and a long pause are no silence, although proxies would have failed", async () => {
    const waits = { firstByteMs: 100, stallMs: 100, directSilenceMs: 20_000 };
    const patient = createNodeClient({ origoUrl: origo.url, settings: waits });
    const pause = () => new Promise((resolve) => setTimeout(resolve, 400));
    handler = async (_request, response) => {
      await pause();
      response.writeHead(200, { "content-length": FILE.length }).write(FILE.subarray(0, 1000));
      await pause();
      response.end(FILE.subarray(1000));
    };
    for (const mode of ["direct", "coded"] as const) {
      const download = patient.get(url, { mode });
      expect(Buffer.compare(await readAll(download.body), FILE)).toBe(0);
      expect((await download.record).outcome).toBe("complete");
    }
    expect(asked).toHaveLength(2);
    expect(SETTINGS_DEFAULT.directSilenceMs).toBeGreaterThan(40_000);
    await patient.close();
  });

  test("direct: what came before a failure is delivered, and the record counts it", async () => {
    handler = (request, response) => serve(request, response, { breakAfter: 300_000 });
    const { record, bytes } = await get("/", { retries: 0 });
    expect(record).toMatchObject({ outcome: "failed", netBytes: 300_000 });
    expect(Buffer.compare(bytes, FILE.subarray(0, 300_000))).toBe(0);
  });
});

describe("answers as they are", () => {
  test("direct: a content coding stays, or is removed with decode", async () => {
    const zipped = gzipSync(FILE);
    handler = (_request, response) =>
      response.writeHead(200, { "content-encoding": "gzip", "content-length": zipped.length }).end(zipped);
    const got = await get("/f.tar.gz");
    expectFile(got, zipped);
    expect(got.record.totalBytes).toBe(zipped.length);
    expectFile(await get("/f.tar.gz", { decode: true }));
    handler = (_request, response) => response.writeHead(200, { "content-encoding": "gzip" }).end(FILE);
    expect((await get("/", { decode: true, retries: 0 })).record.outcome).toBe("failed");
  });

  test.each([
    ["deflate", deflateSync(FILE), FILE],
    ["deflate without the zlib format", deflateRawSync(FILE), FILE],
    ["an empty body in gzip", Buffer.alloc(0), Buffer.alloc(0)],
    ["gzip of nothing", gzipSync(""), Buffer.alloc(0)],
  ])("direct: decode asks for codings and unpacks %s", async (name, sent, expected) => {
    let accepted: string | undefined;
    handler = (request, response) => {
      accepted = request.headers["accept-encoding"];
      const coding = name.startsWith("deflate") ? "deflate" : "gzip";
      response.writeHead(200, { "content-encoding": coding, "content-length": sent.length }).end(sent);
    };
    expectFile(await get("/", { decode: true, retries: 0 }), expected);
    expect(accepted).toContain("deflate");
    await get("/");
    expect(accepted).toBe("identity");
  });

  test("direct: follows 20 redirects, and the caller's password does not follow to another origin", async () => {
    const seen: (string | undefined)[] = [];
    handler = (request, response) => {
      seen.push(request.headers.authorization);
      const left = Number(/\d+$/.exec(request.url!)?.[0] ?? 0);
      if (left === 0) return serve(request, response);
      const host = left === 1 ? url.replace("127.0.0.1", "localhost") : "";
      response.writeHead(302, { location: `${host}/${left - 1}` }).end();
    };
    expectFile(await get("/20", { headers: { Authorization: "Basic eA==" } }));
    expect([seen.filter((value) => value !== undefined).length, seen.at(-1)]).toEqual([20, undefined]);
    expect((await get("/21", { retries: 0 })).record.error?.kind).toBe("tooManyRedirects");
  });

  test.each([["ftp://example.org/x"], ["http://u:p@127.0.0.1/"], ["http://["]])(
    "direct: a redirect to %s is an error",
    async (location) => {
      handler = (_request, response) => response.writeHead(302, { location }).end();
      expect((await get("/")).record.error?.kind).toBe("badRedirect");
      expect(JSON.stringify(await get("/"))).not.toContain("u:p");
    },
  );

  test("direct: an empty query and a header of 40 KB come through, and the caller's headers are sent", async () => {
    let accept: string | undefined;
    handler = (request, response) => {
      accept = request.headers.accept;
      response.writeHead(200, { "x-long": "a".repeat(40_000) }).end(FILE);
    };
    const got = await get("/x?", { headers: { Accept: "video/*" } });
    expectFile(got);
    expect([asked, accept, got.headers!["x-long"]!.length]).toEqual([["/x? whole"], "video/*", 40_000]);
  });

  test("direct: headers of the caller never reach proxies", () => {
    expect(() => client.get(url, { mode: "coded", headers: { cookie: "a" } })).toThrow(/headers is not valid/);
    expect(() => client.get(url, { mode: "direct", headers: { "bad name": "a" } })).toThrow(/headers is not valid/);
  });
});

describe("the caller", () => {
  test("client: twenty downloads on one signal cause no warning, and it stops them all", async () => {
    const warnings: Error[] = [];
    const note = (warning: Error): number => warnings.push(warning);
    process.on("warning", note);
    handler = () => undefined;
    const controller = new AbortController();
    const options = { mode: "direct", signal: controller.signal } as const;
    const records = Array.from({ length: 20 }, () => client.get(url, options).record);
    await new Promise((resolve) => setTimeout(resolve, 50));
    controller.abort();
    expect((await Promise.all(records)).map(({ outcome }) => outcome)).toEqual(Array(20).fill("aborted"));
    process.off("warning", note);
    expect(warnings).toEqual([]);
  });

  test("client: a full disk is a failure of the download, and a reader that leaves is an abort", async () => {
    handler = (_request, response) => void response.writeHead(200).write(FILE);
    const full = client.get(url, { mode: "direct" });
    await full.body.cancel(new Error("ENOSPC: no space left on device"));
    expect(await full.record).toMatchObject({
      outcome: "failed",
      error: { kind: "readerFailed", message: expect.stringContaining("ENOSPC") },
    });
    const left = client.get(url, { mode: "direct" });
    await left.body.cancel();
    expect(await left.record).toMatchObject({ outcome: "aborted" });
  });

  test("client: after an abort the record counts only what the reader got", async () => {
    handler = (_request, response) => void response.writeHead(200).write(FILE);
    const download = client.get(url, { mode: "direct" });
    const reader = download.body.getReader();
    const { value } = await reader.read();
    await new Promise((resolve) => setTimeout(resolve, 100));
    download.abort();
    await expect(reader.read()).rejects.toMatchObject({ name: "AbortError" });
    expect((await download.record).netBytes).toBe(value!.length);
    expect(client.live.deliveredBytes).toBe(value!.length);
  });

  test("client: with recordAfterRead a download is complete when its body was read", async () => {
    handler = (request, response) => serve(request, response);
    const options = { mode: "direct", recordAfterRead: true } as const;
    const left = client.get(url, options);
    const reader = left.body.getReader();
    const { value } = await reader.read();
    while (client.live.deliveredBytes < FILE.length) await new Promise((resolve) => setTimeout(resolve, 10));
    left.abort();
    await expect(reader.read()).rejects.toMatchObject({ name: "AbortError" });
    expect(await left.record).toMatchObject({ outcome: "aborted", netBytes: value!.length, sha256: null });
    expect(client.live.deliveredBytes).toBe(value!.length);
    const full = client.get(url, options);
    await full.body.cancel(new Error("ENOSPC"));
    expect(await full.record).toMatchObject({ outcome: "failed", error: { kind: "readerFailed" } });
    expectFile(await get("/", options));
  });

  test("client: the record of a body that nobody takes comes, and the body says why it is gone", async () => {
    const body = bytesOf(400_000);
    handler = (request, response) => serve(request, response, { body });
    const small = createNodeClient({ origoUrl: origo.url, settings: { queuedBytesMax: 64_000 } });
    const download = small.get(url, { mode: "direct" });
    expect(await download.record).toMatchObject({ outcome: "complete", netBytes: 400_000 });
    await expect(readAll(download.body)).rejects.toThrow(/thrown away/);
    await small.close();
  }, 15_000);
});
