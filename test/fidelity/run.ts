/**
 * Runs cases of the fidelity suite: each page once in a Chromium without the extension and once in one with it, at the
 * same time, each with origins of its own. Compares what the pages saw.
 */
import { readFileSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import {
  openBrowser,
  recordsSince,
  repoRoot,
  startFleet,
  type BrowserName,
  type Fleet,
  type OpenBrowser,
} from "@tributary/lab-stack";
import { bodyOf, give, LEAD_NUMBER_MIN, pause, readable } from "./kit";
import type { Asked, Exchange, FidelityCase, Hosts, Proof, Seen, Tab } from "./kit";

const HOSTS = ["home", "away", "third"] as const;
const SIDES = ["without", "with"] as const;
type Side = (typeof SIDES)[number];
const PROXIES = 4;
const CASE_SECONDS_MAX = 45;
const WARM_TRIES = 40;
/** How many runs of cases may be repeated. */
const REPEATS_MAX = 10;
const RUNS_MAX = 3;
const RECORDS_MS_MAX = 5000;
const PROOF_MS_MAX = 5000;
const LEADS_MAX = 8;
/** Files that a case itself does not answer. */
const WARM_UPS = /^\/(warm|lead)\//;
/** Files that leadIn and leadInto fetch. */
const LEADS = /^\/(warm|lead)\/|\/9\d\d\.ts/;
const IN_PAGE = readFileSync(path.join(repoRoot, "test/fidelity/page.js"), "utf8");

export interface Outcome {
  name: string;
  /** Empty: the page saw the same. */
  faults: string[];
  ms: number;
  seen: Record<Side, unknown>;
  /** What the origins were asked, by side. */
  asked: Record<Side, string[]>;
}

export class FidelityLab {
  readonly #origins: Origin[];
  readonly #fleet: Fleet;
  readonly #browsers: Record<Side, OpenBrowser>;
  #repeatsLeft = REPEATS_MAX;

  private constructor(origins: Origin[], fleet: Fleet, browsers: Record<Side, OpenBrowser>) {
    this.#origins = origins;
    this.#fleet = fleet;
    this.#browsers = browsers;
  }

  /** Room for `count` cases. Each case has ports of its own, so that nothing learned about a host reaches the next. */
  static async open(count: number, name: BrowserName = "chromium"): Promise<FidelityLab> {
    const length = (count + REPEATS_MAX) * HOSTS.length * SIDES.length;
    const origins = await Promise.all(Array.from({ length }, startOrigin));
    const allow = origins.map(({ host }) => host);
    const fleet = await startFleet({ proxyCount: PROXIES, ports: "any", allow });
    const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: PROXIES };
    const [without, withIt] = await Promise.all([
      openBrowser({ name, headless: true }),
      openBrowser({ name, headless: true, defaults }),
    ]);
    return new FidelityLab(origins, fleet, { without, with: withIt });
  }

  async close(): Promise<void> {
    await Promise.all(SIDES.map((side) => this.#browsers[side].close()));
    await this.#fleet.stop();
    for (const origin of this.#origins) origin.close();
  }

  /**
   * On a slow machine the site may answer before the proxies do. Then the page may see what proxies would not have
   * shown, and the run says nothing about them. So a run with a difference and such an answer is repeated.
   */
  async run(each: FidelityCase): Promise<Outcome> {
    for (let runs = 1; ; runs++) {
      const startedMs = Date.now();
      const outcome = await this.#runOnce(each, startedMs);
      const mayRepeat = runs < RUNS_MAX && this.#repeatsLeft > 0;
      if (outcome.faults.length === 0 || !mayRepeat || !(await this.#wasSiteFirst(startedMs))) return outcome;
      this.#repeatsLeft -= 1;
    }
  }

  async #wasSiteFirst(sinceMs: number): Promise<boolean> {
    for (const untilMs = Date.now() + RECORDS_MS_MAX; Date.now() < untilMs; await pause(200)) {
      const records = await recordsSince(this.#fleet, sinceMs);
      if (records.some(({ fallback }) => fallback?.kind === "siteFirst")) return true;
    }
    return false;
  }

  async #runOnce(each: FidelityCase, startedMs: number): Promise<Outcome> {
    const [without, withIt] = await Promise.all(SIDES.map((side) => this.#runSide(each, side)));
    const faults: string[] = [];
    if (!isDeepStrictEqual(without!.seen, withIt!.seen))
      faults.push(differences(without!.seen, withIt!.seen).join("; "));
    if (each.proof !== undefined && !PROOFS[each.proof](withIt!.log)) faults.push(`nothing was ${each.proof}`);
    return {
      name: each.name,
      faults,
      ms: Date.now() - startedMs,
      seen: { without: without!.seen, with: withIt!.seen },
      asked: { without: summaryOf(without!.log), with: summaryOf(withIt!.log) },
    };
  }

  async #runSide(each: FidelityCase, side: Side): Promise<{ seen: unknown; log: Asked[] }> {
    const origins = this.#origins.splice(0, HOSTS.length);
    const bases = origins.map(({ host }, at) => [HOSTS[at], `http://${host}`]);
    const hosts = Object.fromEntries(bases) as Hosts;
    const log: Asked[] = [];
    const memory: Record<string, number> = {};
    origins.forEach((origin, host) => (origin.answer = answersOf(host, { each, hosts, log, memory })));
    let page: Awaited<ReturnType<OpenBrowser["newPage"]>> | undefined;
    try {
      page = await this.#browsers[side].newPage();
      // All hosts of all cases share their cookies, which know no ports.
      await page.deleteCookie(...(await page.cookies(hosts.home)));
      await page.goto(`${hosts.home}/page.html`, { waitUntil: "load" });
      await page.evaluate(IN_PAGE);
      const tab = tabOf(page, hosts, memory, log);
      if (side === "with") await warmUp(tab);
      log.length = 0;
      const seen = readable(await within(each.run(tab)), hosts);
      if (side === "with" && each.proof !== undefined) await untilProved(each.proof, log);
      return { seen, log: [...log] };
    } catch (error) {
      return { seen: { threw: String(error) }, log };
    } finally {
      await page?.close().catch(() => undefined);
      for (const origin of origins) origin.close();
    }
  }
}

/** A server that listens from the start, so that the fleet can be told of it, and answers when its case runs. */
interface Origin {
  readonly host: string;
  answer: http.RequestListener;
  close(): void;
}

async function startOrigin(): Promise<Origin> {
  const server = http.createServer({ keepAliveTimeout: 10_000 }, (request, response) => {
    response.sendDate = false;
    origin.answer(request, response);
  });
  const origin = {
    host: "",
    answer: (_request: http.IncomingMessage, response: http.ServerResponse): void => void response.destroy(),
    close: (): void => {
      server.closeAllConnections();
      server.close();
    },
  };
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
  origin.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return origin;
}

interface Scene {
  each: FidelityCase;
  hosts: Hosts;
  log: Asked[];
  memory: Record<string, number>;
}

function answersOf(host: number, { each, hosts, log, memory }: Scene): http.RequestListener {
  return (request, response) => {
    const url = new URL(request.url ?? "/", "http://host");
    const by = "sec-fetch-mode" in request.headers ? "browser" : "proxy";
    const exchange: Exchange = { request, response, url, path: url.pathname, host, by, memory, hosts };
    if (url.pathname === "/favicon.ico") return void response.writeHead(204).end();
    log.push({
      by,
      host,
      method: request.method ?? "",
      path: request.url ?? "",
      range: request.headers.range,
      atMs: Date.now(),
    });
    if (/^\/(warm|lead)\//.test(url.pathname)) return give(exchange, bodyOf("unmarked", 60_000));
    if (url.pathname === "/page.html" && host === 0) {
      const headers = { "content-type": "text/html; charset=utf-8", ...each.pageHeaders?.(hosts) };
      return void response
        .writeHead(200, headers)
        .end(each.pageHtml?.(hosts) ?? "<!doctype html><title>page</title><body>");
    }
    void Promise.resolve(each.answer(exchange)).catch((error: unknown) => {
      console.error(`${each.name}: the origin failed: ${String(error)}`);
      response.destroy();
    });
  };
}

function tabOf(page: Tab["page"], hosts: Hosts, memory: Record<string, number>, log: readonly Asked[]): Tab {
  const call = async (name: string, args: unknown[]): Promise<Seen> =>
    (await page.evaluate(`see.${name}(${args.map((arg) => JSON.stringify(arg ?? {})).join(", ")})`)) as Seen;
  return {
    ...hosts,
    page,
    memory,
    log,
    fetch: (url, init, read = "digest") => call("fetch", [url, init, read]),
    xhr: (url, options) => call("xhr", [url, options]),
    video: (url, options) => call("video", [url, options]),
    run: (script) => page.evaluate(script),
    async leadInto(folder, init) {
      const next = LEAD_NUMBER_MIN + log.filter(({ path }) => LEADS.test(path)).length;
      const start = log.length;
      const hasLed = (): boolean => log.slice(start).some(({ path }) => isCarried(log, path));
      for (let at = 0; at < LEADS_MAX && !hasLed(); at++) await call("fetch", [`${folder}/${next + at}.ts`, init]);
    },
    async leadIn(base) {
      for (let at = 1; at <= 5; at++) await call("fetch", [`${base}/lead/segment-${at}.ts`]);
    },
  };
}

const PROOFS: Readonly<Record<Proof, (log: readonly Asked[]) => boolean>> = {
  carried: (log) => log.some(({ path, range }) => !LEADS.test(path) && isCarried(log, path, range)),
  led: (log) => log.some(({ path, range }) => isCarried(log, path, range)),
  compared: (log) => log.some(({ by, path }) => by === "proxy" && !WARM_UPS.test(path)),
};

/** A page has its answer before the proxies are asked for the comparison. */
async function untilProved(proof: Proof, log: readonly Asked[]): Promise<void> {
  for (const untilMs = Date.now() + PROOF_MS_MAX; Date.now() < untilMs && !PROOFS[proof](log);) await pause(50);
}

/** In a comparison the browser asks first. */
function isCarried(log: readonly Asked[], path: string, range?: string): boolean {
  const first = log.find((asked) => asked.path === path && asked.range === range);
  return !WARM_UPS.test(path) && first?.by === "proxy";
}

/** Fetches until a request of the page comes through a proxy. Until then the extension may still be connecting. */
async function warmUp(tab: Tab): Promise<void> {
  for (let attempt = 0; attempt < WARM_TRIES; attempt++) {
    await tab.fetch(`${tab.home}/warm/${attempt}.ts`);
    if (tab.log.some(({ by }) => by === "proxy")) return;
    await pause(150);
  }
  throw new Error("the extension carried nothing");
}

/** The paths of values that differ. */
function differences(without: unknown, withIt: unknown, at = ""): string[] {
  if (isDeepStrictEqual(without, withIt)) return [];
  const isTree = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
  if (!isTree(without) || !isTree(withIt))
    return [`${at || "it"}: ${show(without)}, with the extension ${show(withIt)}`];
  const keys = new Set([...Object.keys(without), ...Object.keys(withIt)]);
  return [...keys].flatMap((key) => differences(without[key], withIt[key], at ? `${at}.${key}` : key));
}

const show = (value: unknown): string => (value === undefined ? "nothing" : JSON.stringify(value));

function summaryOf(log: readonly Asked[]): string[] {
  const counts = new Map<string, number>();
  for (const { by, host, method, path: asked } of log) {
    const line = `${by} ${method} ${HOSTS[host]}${asked}`;
    counts.set(line, (counts.get(line) ?? 0) + 1);
  }
  return [...counts].map(([line, count]) => (count > 1 ? `${count} x ${line}` : line));
}

async function within<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not finished after ${CASE_SECONDS_MAX} s`)), CASE_SECONDS_MAX * 1000);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
