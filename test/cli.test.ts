/** `tributary get` with a real fleet: every mode, the smallest files, and every kind of failure. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { repoRoot, sizeBytes, startFleet, type Fleet } from "@tributary/lab-stack";
import type { DownloadRecord } from "@tributary/contract/schema";
import { cli, getJson, runToEnd } from "./support";

const MODES = ["direct", "parallel-http", "split-http", "uncoded-mutp", "coded-mutp"];
const THROUGH_PROXIES = MODES.slice(1);
const sha256 = (data: Uint8Array): string => createHash("sha256").update(data).digest("hex");

/**
 * A file longer than a chunk, at addresses that expire after a few requests. One from each proxy is enough. One for
 * each of the five ranges from each proxy is too many.
 */
const LONG = sizeBytes(0, 36_000_000);
const REQUESTS_MAX = 12;
const served = new Map<string, number>();
const expiring = http.createServer(({ url = "", headers }, response) => {
  const count = (served.get(url) ?? 0) + 1;
  served.set(url, count);
  if (count > REQUESTS_MAX) return void response.writeHead(403, { "content-length": 7 }).end("expired");
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? "") ?? [];
  const [start, end] = [Number(first ?? 0), Math.min(Number(last ?? Infinity), LONG.length - 1)];
  const range = first === undefined ? {} : { "content-range": `bytes ${start}-${end}/${LONG.length}` };
  response.writeHead(first === undefined ? 200 : 206, { etag: '"one"', "content-length": end + 1 - start, ...range });
  response.end(LONG.subarray(start, end + 1));
});

let fleet: Fleet;
let folder: string;
let outputs = 0;
let expiringUrl: string;
beforeAll(async () => {
  await new Promise<void>((resolve) => expiring.listen(0, "127.0.0.1", resolve));
  const host = `127.0.0.1:${(expiring.address() as AddressInfo).port}`;
  expiringUrl = `http://${host}`;
  fleet = await startFleet({ proxyCount: 4, ports: "any", allow: [host] });
  folder = mkdtempSync(path.join(os.tmpdir(), "tributary-cli-"));
});
afterAll(async () => {
  await fleet?.stop();
  expiring.closeAllConnections();
  expiring.close();
  rmSync(folder, { recursive: true });
});

interface Got {
  status: number;
  record: DownloadRecord;
  file: Buffer;
  stderr: string;
}

/** Runs one `get` with --json and --output. */
async function get(url: string, ...words: string[]): Promise<Got> {
  const output = path.join(folder, `output-${++outputs}`);
  const run = await cli("get", url, "--origo", fleet.origo.url, "--json", "--output", output, ...words);
  let record: DownloadRecord;
  try {
    record = JSON.parse(run.stdout.toString()) as DownloadRecord;
  } catch {
    throw new Error(`no JSON on stdout (exit status ${run.status}): ${run.stdout.toString()}\n${run.stderr}`);
  }
  let file = Buffer.alloc(0);
  try {
    file = readFileSync(output);
  } catch {
    // Without a download there is no file.
  }
  return { status: run.status, record, file, stderr: run.stderr };
}

const sample = (pathname: string): string => `${fleet.sample.url}${pathname}`;

describe.each(MODES)("mode %s", (mode) => {
  test.each([5_000_000, 1, 0])("a file of %i bytes", async (bytes) => {
    const { status, record, file } = await get(sample(`/__size/${bytes}`), "--mode", mode, "--connections", "4");
    const expected = sizeBytes(0, bytes);
    expect({
      status,
      outcome: record.outcome,
      mode: record.mode,
      fallback: record.fallback,
      http: record.status,
    }).toEqual({ status: 0, outcome: "complete", mode, fallback: null, http: 200 });
    expect(record.netBytes).toBe(bytes);
    expect(record.sha256).toBe(sha256(expected));
    expect(sha256(file)).toBe(sha256(expected));
    for (const proxy of record.proxies)
      expect(proxy.packets).toBe(proxy.innovative + proxy.duplicate + proxy.late + proxy.rejected);
    if (mode.endsWith("mutp")) expect(record.engine).toMatch(/^native\//);
    if (mode.endsWith("mutp") && bytes > 1000)
      expect(record.proxies.filter((proxy) => proxy.innovative > 0).length).toBeGreaterThanOrEqual(2);
  });

  test("a range in the middle", async () => {
    const { status, record, file } = await get(sample("/__size/5000000"), "--mode", mode, "--range", "1000000-1999999");
    expect({ status, http: record.status, bytes: record.netBytes }).toEqual({ status: 0, http: 206, bytes: 1_000_000 });
    expect(sha256(file)).toBe(sha256(sizeBytes(1_000_000, 2_000_000)));
  });

  test("404 and 416 are passed on as failures of the origin, not of the proxies", async () => {
    const [missing, beyond] = await Promise.all([
      get(sample("/__status/404"), "--mode", mode),
      get(sample("/__size/10"), "--mode", mode, "--range", "10-19"),
    ]);
    expect(missing.record.status).toBe(404);
    expect(missing.status).not.toBe(0);
    expect(beyond.record.status).toBe(416);
    expect(beyond.status).not.toBe(0);
  });

  test("a redirect loop ends with an error", async () => {
    const { status, record } = await get(sample("/__loop"), "--mode", mode);
    expect(status).not.toBe(0);
    expect(record.outcome).toBe("failed");
    expect(record.error?.message).toBeTruthy();
  });

  test("a body that ends early is a failure, not a short success", async () => {
    const { status, record } = await get(sample("/__short/400000"), "--mode", mode, "--retry", "1");
    expect(status).not.toBe(0);
    expect(record.outcome).toBe("failed");
    expect(record.sha256).toBeNull();
  });

  test("a body of unknown length arrives in full", async () => {
    const { status, record } = await get(sample("/__chunked/300000"), "--mode", mode);
    expect(status).toBe(0);
    expect(record.sha256).toBe(sha256(sizeBytes(0, 300_000)));
  });
});

test("the command is a script of npm, too", async () => {
  const run = await runToEnd("npm", ["run", "-s", "tributary", "--", "get"]);
  expect([run.status, run.stderr]).toEqual([2, expect.stringMatching(/URL/i)]);
});

test.each([[[]], [["--range", "1000-35999000"]]])(
  "a file longer than a chunk comes whole although its address expires (%j)",
  async (words) => {
    const { status, record, file } = await get(
      `${expiringUrl}/${words.length}`,
      ...words,
      "--no-fallback",
      "--timeout",
      "60",
    );
    expect({ status, outcome: record.outcome, error: record.error }).toEqual({ status: 0, outcome: "complete" });
    expect(sha256(file)).toBe(sha256(words.length === 0 ? LONG : LONG.subarray(1000, 35_999_001)));
  },
  120_000,
);

test("--limit-rate holds for what comes through proxies", async () => {
  const { status, record } = await get(sample("/__size/4000000"), "--limit-rate", "1M", "--no-fallback");
  expect({ status, outcome: record.outcome }).toEqual({ status: 0, outcome: "complete" });
  expect(record.durationMs).toBeGreaterThan(2000);
});

test("the CLI prints the same record that Origo keeps", async () => {
  const { record } = await get(sample("/__size/100000"), "--mode", "coded-mutp");
  const { records } = await getJson<{ records: DownloadRecord[] }>(`${fleet.origo.url}/v1/records?limit=50`);
  expect(records.find((kept) => kept.id === record.id)).toMatchObject({
    netBytes: record.netBytes,
    sha256: record.sha256,
    mode: record.mode,
  });
});

/** Runs the command as the first part of a pipe and kills it after 30 s. */
function getInto(reader: string, url: string): Promise<{ failed: boolean; stdout: Buffer; stderr: string }> {
  const script = `set -o pipefail; timeout -s KILL 30 node client/dist/cli.js get "$0" --origo "$1" | (${reader})`;
  return new Promise((resolve) => {
    execFile(
      "bash",
      ["-c", script, url, fleet.origo.url],
      { cwd: repoRoot, encoding: "buffer" },
      (error, stdout, stderr) => {
        resolve({ failed: error !== null, stdout, stderr: stderr.toString() });
      },
    );
  });
}

test.each([
  ["reads late", "sleep 3; cat", 300_000, "normalized goodput"],
  ["ends without reading", "sleep 3", 0, "its reader is gone (EPIPE)"],
])("the command ends when the reader of its output %s", async (_name, reader, bytes, sentence) => {
  const { failed, stdout, stderr } = await getInto(reader, sample("/__size/300000"));
  expect(failed).toBe(bytes === 0);
  expect(sha256(stdout)).toBe(sha256(sizeBytes(0, bytes)));
  expect(stderr).toContain(sentence);
});

test.each([
  ["an unknown mode", ["get", "http://127.0.0.1/", "--mode", "warp"], /warp.*(direct|allowed|one of)/s],
  ["an unknown option", ["get", "http://127.0.0.1/", "--bogus"], /--bogus/],
  ["an unknown command", ["fetch", "http://127.0.0.1/"], /fetch/],
  ["a malformed URL", ["get", "not a url"], /not a url/],
  ["a URL that is not http", ["get", "ftp://example.org/a.mp4"], /ftp/],
  ["a range that ends before its start", ["get", "http://127.0.0.1/", "--range", "9-3"], /range.*9.*3/],
  ["no URL", ["get"], /URL/i],
])("%s: a sentence and exit status 2", async (_name, words, sentence) => {
  const run = await cli(...words);
  expect(run.status).toBe(2);
  expect(run.stderr).toMatch(sentence);
});

describe("refused addresses", () => {
  let other: Fleet;
  beforeAll(async () => {
    other = await startFleet({ proxyCount: 2, ports: "any", allowSample: false });
  });
  afterAll(() => other?.stop());

  test.each(["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"])(
    "a proxy refuses http://%s",
    async (host) => {
      const target = `http://${host}:${new URL(other.sample.url).port}/__size/10`;
      const { token } = await getJson<{ token: string }>(`${other.origo.url}/v1/proxies`);
      const response = await fetch(
        `${other.proxies[0]?.url}/v1/fetch?url=${encodeURIComponent(target)}&token=${token}`,
        { headers: { "tributary-client": "test" } },
      );
      expect(response.status).toBe(403);
      expect(((await response.json()) as { error: { kind: string } }).error.kind).toBe("egressRefused");
    },
  );

  test.each(THROUGH_PROXIES)("mode %s: the CLI says why and downloads directly", async (mode) => {
    const { status, record } = await get(
      `${other.sample.url}/__size/50000`,
      "--mode",
      mode,
      "--origo",
      other.origo.url,
    );
    expect(status).toBe(0);
    expect(record.fallback?.bytes).toBe(50_000);
    expect(`${record.fallback?.kind}: ${record.fallback?.message}`).toMatch(/refused|egress/i);
    expect(record.sha256).toBe(sha256(sizeBytes(0, 50_000)));
  });
});

describe("a fleet without proxies, and no fleet", () => {
  test("without a known proxy the download is direct and the CLI says so", async () => {
    const empty = await startFleet({ proxyCount: 0, ports: "any" });
    try {
      const { status, record } = await get(sample("/__size/50000"), "--mode", "coded-mutp", "--origo", empty.origo.url);
      expect({ status, bytes: record.fallback?.bytes, sha256: record.sha256 }).toEqual({
        status: 0,
        bytes: 50_000,
        sha256: sha256(sizeBytes(0, 50_000)),
      });
      expect(`${record.fallback?.kind}: ${record.fallback?.message}`).toMatch(/prox/i);
    } finally {
      await empty.stop();
    }
  });

  test("without Origo the download is direct and the CLI says so", async () => {
    const { status, record } = await get(
      sample("/__size/50000"),
      "--mode",
      "coded-mutp",
      "--origo",
      "http://127.0.0.1:9",
    );
    expect({ status, bytes: record.fallback?.bytes, sha256: record.sha256 }).toEqual({
      status: 0,
      bytes: 50_000,
      sha256: sha256(sizeBytes(0, 50_000)),
    });
    expect(`${record.fallback?.kind}: ${record.fallback?.message}`).toMatch(/origo/i);
  });
});
