/**
 * One set of links with the services, the Node client and browsers on them. Makes single visits. run.ts has the order
 * of visits, rows.ts the statistics.
 */
import { createHash } from "node:crypto";
import type { ChildProcess } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import type { GetOptions, Mode } from "@tributary/client";
import { CLIENT_HEADER } from "@tributary/contract";
import type { Trace } from "@tributary/contract/query-schema";
import type { DownloadRecord } from "@tributary/contract/schema";
import type { Page } from "puppeteer-core";
import { startLinks, type Links } from "@tributary/lab-links";
import { findChromium, openBrowser, repoRoot, sizeBytes, type OpenBrowser } from "@tributary/lab-stack";
import { watchIdleShare } from "../kit/machine";
import { startDriver, type Driver } from "../kit/driver";
import { median } from "../kit/figures";
import { fetchAtOrigo } from "../kit/fetch-at-origo";
import { CHUNKED_BYTES, scenarioOf } from "./boxes";
import type { Box, LinksSpec } from "./boxes";
import type { Order, Pulled, Reply, SessionKind } from "./orders";
import type { Sample } from "./rows";

const DRIVER = path.join(repoRoot, "lab/bench/dist/campaign/driver.js");
const HTTP2_ORIGIN = path.join(repoRoot, "lab/bench/dist/campaign/http2-origin.js");
const HTTP2_PORT = 7681;
const RECORD_MS_MAX = 5000;
const STARTS = 5;
/** Proxies keep a chunk for a minute. Its downloads begin within this time. */
const HELD_MS_MAX = 40_000;

/** A sample without what the machine did during the download. */
type Outcome = Pick<
  Sample,
  | "ok"
  | "problem"
  | "fellBack"
  | "completionMs"
  | "firstByteMs"
  | "netBytes"
  | "grossBytes"
  | "idleShare"
  | "clientCpuMs"
  | "trace"
> & {
  /** Names of the hosts whose links count. */
  hosts: readonly string[];
};

type Cost = Pick<Reply, "cpuMs" | "idleShare">;

export async function startStack(spec: LinksSpec, boxes: readonly Box[]): Promise<Stack> {
  const links = await startLinks(scenarioOf(spec));
  try {
    const stack = new Stack(links, spec);
    await stack.prepare(boxes);
    return stack;
  } catch (error) {
    await links.close();
    throw error;
  }
}

export class Stack {
  readonly #driver: Driver<Order, Reply>;
  readonly #browsers = new Map<string, { open: OpenBrowser; page: Page }>();
  readonly #expected = new Map<number, string>();
  /** By length: the chunk that all proxies hold, and since when. */
  readonly #held = new Map<number, { url: string; sinceMs: number }>();
  #http2Origin: ChildProcess | undefined;
  #ariaStartMs = 0;

  readonly #links: Links;
  readonly #spec: LinksSpec;

  constructor(links: Links, spec: LinksSpec) {
    this.#links = links;
    this.#spec = spec;

    this.#driver = startDriver<Order, Reply>(links, DRIVER);
  }

  /** Uses every program once, so that a first use costs nothing later. */
  async prepare(boxes: readonly Box[]): Promise<void> {
    if (boxes.some(({ mode }) => mode === "direct-http2")) await this.#startHttp2Origin();
    const largestFirst = boxes.filter(({ runner }) => runner === "node").sort((a, b) => b.chunkBytes - a.chunkBytes);
    const byWay = new Map(largestFirst.map((box) => [`${box.mode} ${box.transport}`, box]));
    for (const box of byWay.values()) await this.#download(box, await this.#urlOf(box, "first"));
    if (boxes.some(({ runner }) => runner === "aria2")) {
      const starts: number[] = [];
      for (let start = 0; start < STARTS; start++) starts.push(await this.#timed(["aria2c", "--version"]));
      this.#ariaStartMs = median(starts);
    }
  }

  /**
   * The samples of one visit. `hold` may delay the downloads after all connections are closed. Rejects if the links or
   * the client are gone. A download that fails is a sample.
   */
  async visit(box: Box, visit: number, hold = (downloads: () => Promise<Sample[]>) => downloads()): Promise<Sample[]> {
    if (box.runner === "node") await this.#driver.ask({ kind: "close" });
    return hold(() => this.#downloads(box, visit));
  }

  async #downloads(box: Box, visit: number): Promise<Sample[]> {
    const warmOnly = box.runner === "chromium" || box.links.event !== undefined;
    const sessions: readonly SessionKind[] = box.runner === "aria2" ? ["new"] : warmOnly ? ["warm"] : ["new", "warm"];
    const url = await this.#urlOf(box, `${visit}`);
    const urlFor = (download: string): string => (box.chunkAt === "origin" ? `${url}-${download}` : url);
    if (box.links.event) await this.#download(box, urlFor("before"));
    const samples: Sample[] = [];
    for (const session of sessions)
      samples.push({
        box: box.id,
        visit,
        session,
        ...(await this.#measured(() => this.#download(box, urlFor(session)))),
      });
    if (box.links.event) await this.#links.set("proxy1", { cut: false, up: { rate: "100 %" } });
    return samples;
  }

  async close(): Promise<void> {
    for (const { open } of this.#browsers.values()) await open.close();
    void this.#driver.close();
    this.#http2Origin?.stdin!.end();
    await this.#links.close();
  }

  async #measured(download: () => Promise<Outcome>): Promise<Omit<Sample, "box" | "visit" | "session">> {
    await this.#links.begin();
    const { hosts, ...outcome } = await download();
    const { lateUs } = await this.#links.stats();
    const linkBytesPerSec = hosts.reduce((sum, host) => sum + this.#rateOf(host), 0);
    return { ...outcome, linkBytesPerSec, lateUs: lateUs.p99 };
  }

  #download(box: Box, url: string): Promise<Outcome> {
    if (box.runner === "aria2") return this.#byAria2(box, url);
    if (box.mode === "chunked") return this.#byPull(box, url);
    if (box.mode === "direct-http2") return this.#byHttp2(box);
    return box.runner === "chromium" ? this.#byChromium(box, url) : this.#byNode(box, url);
  }

  async #byNode(box: Box, url: string): Promise<Outcome> {
    const options: GetOptions = {
      mode: box.mode as Mode,
      connections: box.connections,
      comment: `campaign: ${box.id}`.slice(0, 1000),
      ...(box.generationSize ? { generationSize: box.generationSize } : {}),
      ...(box.windowPackets ? { windowPackets: box.windowPackets } : {}),
    };
    const { record, problem, ...cost } = await this.#driver.ask({
      kind: "get",
      url,
      transport: box.transport ?? "auto",
      traced: box.traced === true,
      options,
    });
    if (!record) throw new Error(problem ?? "the Node client gave no record");
    return { ...this.#outcomeOf(record, box, cost), ...(box.traced ? { trace: await this.#traceOf(record) } : {}) };
  }

  async #byPull(box: Box, url: string): Promise<Outcome> {
    const urls = this.#mirrors(url).slice(0, box.connections);
    const { pulled, problem, ...cost } = await this.#driver.ask({
      kind: "pull",
      urls,
      bytes: box.chunkBytes,
      partBytes: CHUNKED_BYTES,
    });
    if (!pulled) throw new Error(problem ?? "the Node client pulled nothing");
    return this.#fetchedOutcome(box, pulled, cost);
  }

  async #byHttp2(box: Box): Promise<Outcome> {
    const url = `http://${this.#links.address("origin")}:${HTTP2_PORT}`;
    const { pulled, problem, ...cost } = await this.#driver.ask({ kind: "http2", url, bytes: box.chunkBytes });
    if (!pulled) throw new Error(problem ?? "the Node client got nothing over HTTP/2");
    return this.#fetchedOutcome(box, pulled, cost, ["origin"]);
  }

  async #startHttp2Origin(): Promise<void> {
    const child = (this.#http2Origin = this.#links.run("origin", [process.execPath, HTTP2_ORIGIN, String(HTTP2_PORT)], {
      stdio: ["pipe", "pipe", "inherit"],
      detached: true,
    }));
    await new Promise<void>((resolve, reject) => {
      createInterface({ input: child.stdout! }).once("line", () => resolve());
      child.once("close", (code) => reject(new Error(`the origin's HTTP/2 server ended with code ${code}`)));
    });
  }

  /** A download without a record. */
  #fetchedOutcome(
    { connections, chunkBytes }: Box,
    { ms, firstByteMs, bytes, sha256 }: Pulled,
    { cpuMs, idleShare }: Cost,
    hosts = this.#proxies().slice(0, connections),
  ): Outcome {
    const ok = sha256 === this.#hashOf(chunkBytes);
    return {
      ok,
      ...(ok ? {} : { problem: `${bytes} bytes of a wrong digest` }),
      fellBack: false,
      completionMs: ms,
      firstByteMs,
      netBytes: bytes,
      grossBytes: bytes,
      idleShare,
      clientCpuMs: cpuMs,
      hosts,
    };
  }

  #outcomeOf(record: DownloadRecord, box: Box, { cpuMs, idleShare }: Cost): Outcome {
    const fellBack = record.fallback !== null && record.fallback !== undefined;
    const isWhole =
      record.outcome === "complete" &&
      record.netBytes === box.chunkBytes &&
      (record.sha256 === null || record.sha256 === this.#hashOf(box.chunkBytes));
    const problem = isWhole
      ? fellBack
        ? `fell back: ${record.fallback?.message}`
        : undefined
      : (record.error?.message ?? `${record.netBytes} bytes of outcome ${record.outcome}, or of a wrong digest`);
    return {
      ok: isWhole && !fellBack,
      ...(problem ? { problem } : {}),
      fellBack,
      completionMs: record.durationMs,
      firstByteMs: record.firstByteMs,
      netBytes: record.netBytes,
      grossBytes: record.grossBytes,
      idleShare,
      clientCpuMs: cpuMs,
      hosts: box.mode === "direct" ? ["origin"] : record.proxies.flatMap(({ name }) => name ?? []),
    };
  }

  /**
   * There is no record of what the extension leaves to the browser. A download that does not count goes right before
   * each one that counts, because connections may have been closed since the last visit.
   */
  async #byChromium(box: Box, url: string): Promise<Outcome> {
    const key = `${box.mode} ${box.connections} ${box.transport}`;
    if (!this.#browsers.has(key)) this.#browsers.set(key, await this.#openPage(box));
    const { page } = this.#browsers.get(key)!;
    await fetchInPage(page, box.chunkAt === "origin" ? `${url}-before` : url);
    const startedMs = Date.now();
    const seen = await fetchInPage(page, url);
    if (box.mode === "direct")
      return this.#fetchedOutcome(
        box,
        { ...seen, firstByteMs: seen.firstMs },
        { cpuMs: 0, idleShare: seen.idleShare },
        ["origin"],
      );
    const record = await this.#recordSince(startedMs);
    const outcome = this.#outcomeOf(record, box, { cpuMs: 0, idleShare: seen.idleShare });
    const isRight =
      seen.bytes === box.chunkBytes && seen.sha256 === this.#hashOf(box.chunkBytes) && record.mode === box.mode;
    return {
      ...outcome,
      ok: outcome.ok && isRight,
      ...(isRight ? {} : { problem: `the page got ${seen.bytes} bytes in mode ${record.mode}` }),
      completionMs: seen.ms,
      firstByteMs: seen.firstMs,
    };
  }

  async #openPage({ mode, connections, transport }: Box): Promise<{ open: OpenBrowser; page: Page }> {
    const chromium = findChromium();
    if (!chromium) throw new Error("no Chromium found: install it, or name its path in the variable CHROMIUM");
    if (transport === "udp") throw new Error("a browser has no plain UDP");
    const executable = await this.#links.wrapper("client", chromium);
    const defaults = { origoUrl: this.#env("ORIGO_URL"), mode, connections, ...(transport ? { transport } : {}) };
    const open = await openBrowser({ headless: true, executable, defaults });
    const page = await open.browser.newPage();
    await page.goto(`${this.#env("ORIGIN_URL")}/`, { waitUntil: "load" });
    await new Promise((resolve) => setTimeout(resolve, 1000));
    return { open, page };
  }

  /** The extension's record of its last download. */
  #recordSince(sinceMs: number): Promise<DownloadRecord> {
    return this.#atOrigo("record of the extension's download", "records?limit=5", (json) =>
      (json as { records: DownloadRecord[] }).records.find(
        ({ source, startedAtMs }) => source === "extension" && startedAtMs >= sinceMs,
      ),
    );
  }

  /** The arrival of each packet of a download, and its proxy. */
  async #traceOf({ id, proxies }: DownloadRecord): Promise<NonNullable<Sample["trace"]>> {
    const { packets, feedback } = await this.#atOrigo("trace of the download", `records/${id}/trace`, (json) =>
      "packets" in (json as object) ? (json as Trace) : undefined,
    );
    return { packets, feedback, proxies: proxies.map(({ name }, index) => name ?? `proxy ${index + 1}`) };
  }

  /** Asks Origo again until `find` finds something. */
  async #atOrigo<T>(what: string, question: string, find: (json: unknown) => T | undefined): Promise<T> {
    for (const deadlineMs = Date.now() + RECORD_MS_MAX; ; await new Promise((resolve) => setTimeout(resolve, 100))) {
      const { json } = await this.#driver.ask({ kind: "json", url: `${this.#env("ORIGO_URL")}/v1/${question}` });
      const found = find(json);
      if (found !== undefined) return found;
      if (Date.now() > deadlineMs) throw new Error(`Origo got no ${what} within ${RECORD_MS_MAX} ms`);
    }
  }

  /**
   * One connection a mirror, and pieces of 1 MiB, the smallest that aria2 makes. The program's start does not count.
   */
  async #byAria2(box: Box, url: string): Promise<Outcome> {
    const folder = await mkdtemp(path.join(os.tmpdir(), "tributary-aria2-"));
    try {
      const options = [
        "--no-conf",
        "--quiet",
        "--file-allocation=none",
        "--max-connection-per-server=1",
        `--split=${box.connections}`,
        "--min-split-size=1M",
        "--piece-length=1M",
        `--dir=${folder}`,
        "--out=chunk",
        `--header=${CLIENT_HEADER}: bench`,
      ];
      const idleShare = watchIdleShare();
      const ms = await this.#timed(["aria2c", ...options, ...this.#mirrors(url).slice(0, box.connections)]);
      const cost = { cpuMs: 0, idleShare: idleShare() };
      const body = await readFile(path.join(folder, "chunk")).catch(() => Buffer.alloc(0));
      const sha256 = createHash("sha256").update(body).digest("hex");
      return this.#fetchedOutcome(
        box,
        { ms: Math.max(1, ms - this.#ariaStartMs), firstByteMs: 0, bytes: body.length, sha256 },
        cost,
      );
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /** Origo's host asks for the URLs, so that the proxies' own links stay free. */
  #timed(command: readonly string[]): Promise<number> {
    const startedMs = performance.now();
    const child = this.#links.run("client", command, { stdio: "ignore", detached: true });
    return new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("close", () => resolve(performance.now() - startedMs));
    });
  }

  #env(name: string): string {
    return this.#links.env[name]!;
  }

  #proxies(): string[] {
    return this.#spec.ratesKB.map((_, index) => `proxy${index + 1}`);
  }

  #mirrors(url: string): string[] {
    return this.#env("PROXY_URLS")
      .split(",")
      .map((proxy) => `${proxy}/v1/fetch?url=${encodeURIComponent(url)}`);
  }

  /** The URL of a chunk that no proxy has seen, or that all of them hold. */
  async #urlOf({ chunkAt, chunkBytes, runner, mode, transport, connections }: Box, name: string): Promise<string> {
    if (chunkAt === "origin")
      return this.#chunkUrl(chunkBytes, `${runner}-${mode}-${transport}-${connections}-${name}`);
    const held = this.#held.get(chunkBytes);
    const sinceMs = performance.now();
    if (held && sinceMs - held.sinceMs < HELD_MS_MAX) return held.url;
    const url = this.#chunkUrl(chunkBytes, `held-${sinceMs}`);
    await fetchAtOrigo(this.#links, this.#mirrors(url));
    this.#held.set(chunkBytes, { url, sinceMs });
    return url;
  }

  #chunkUrl(bytes: number, name: string): string {
    return `${this.#env("ORIGIN_URL")}/__size/${bytes}.mp4?${name}`;
  }

  #rateOf(host: string): number {
    return this.#links.scenario.hosts.find(({ name }) => name === host)?.up.rateBytesPerSec ?? 0;
  }

  #hashOf(bytes: number): string {
    let hash = this.#expected.get(bytes);
    if (hash === undefined)
      this.#expected.set(bytes, (hash = createHash("sha256").update(sizeBytes(0, bytes)).digest("hex")));
    return hash;
  }
}

/** Times in ms since the page's request. Nothing counts after the last byte. */
async function fetchInPage(
  page: Page,
  url: string,
): Promise<{ ms: number; firstMs: number; idleShare: number; bytes: number; sha256: string }> {
  const idleShare = watchIdleShare();
  const seen = (await page.evaluate(`(async () => {
    const startedMs = performance.now();
    const reader = (await fetch(${JSON.stringify(url)})).body.getReader();
    const pieces = [];
    let firstMs = 0;
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      firstMs ||= performance.now() - startedMs;
      pieces.push(piece.value);
    }
    window.downloaded = pieces;
    return { ms: performance.now() - startedMs, firstMs };
  })()`)) as { ms: number; firstMs: number };
  const idle = idleShare();
  const text = (await page.evaluate(
    `(async () => {
      const bytes = new Uint8Array(await new Blob(window.downloaded).arrayBuffer());
      return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
    })()`,
  )) as string;
  const body = Buffer.from(text, "base64");
  return { ...seen, idleShare: idle, bytes: body.length, sha256: createHash("sha256").update(body).digest("hex") };
}
