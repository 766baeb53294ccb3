/**
 * `npm run bench -- origo`: Origo over 1.3 million generated records (generate.sql.mjs), as a process of its own, asked
 * over HTTP on loopback, on DuckDB and on PostgreSQL; then intake at 5,000 records a second. Before that, what a
 * thousand proxies cost (fleet.mjs).
 *
 *     npm run bench -- origo [--quick] [--json FILE] [--only duckdb|postgres]
 *
 *     --quick      130,000 records, 5 questions of a kind, 10 s of intake
 *     --json FILE  what was measured
 *
 * Each question carries a filter that was not asked before. Times are from the request to the last byte of the answer,
 * so they hold HTTP and JSON too. The same SQL is run straight in DuckDB, over a copy of the file, in turns with the
 * question.
 */
import { spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { copyFileSync, createWriteStream, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { pipeline } from "node:stream/promises";
import { performance } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { postgresFolder, startPostgres } from "../../../infra/postgres.mjs";
import { root, setUp } from "../../../infra/setup.mjs";
import { fleetSentence, measureFleet } from "./fleet.mjs";
import { FIRST_MS, generateSql, LAST_MS } from "./generate.sql.mjs";

const require = createRequire(import.meta.url);
const origoModule = (name) => require(path.join(root, "origo/dist", name));
const stack = require(path.join(root, "lab/stack/dist/index.js"));
const { table } = require(path.join(root, "lab/bench/dist/kit/table.js"));
const RATE = 5000;
const BATCH = 25;
const LIMITS = { first: 150, box: 400, group: 500, memory: 1000, p99: 250, core: 0.15, paint: 1000 };
const PAINTS = 9;
/** It is reported, without limits: fewer rounds do. */
const POSTGRES_ROUNDS = 5;

const quantile = (values, share) =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(share * values.length))];
const median = (values) => quantile(values, 0.5);

let asked = 0;
/** A filter that leaves about this share, a little different each time. */
function fresh(share = 1) {
  asked++;
  return {
    field: "startedAtMs",
    op: ">=",
    value: Math.round(FIRST_MS + (1 - share) * (LAST_MS - FIRST_MS) + asked * 977),
  };
}

const COLUMNS = [
  "startedAtMs",
  "mode",
  "connections",
  "netBytes",
  "grossBytes",
  "firstPacketMs",
  "serverFetchMs",
  "durationMs",
  "throughputBytesPerSec",
  "goodputBytesPerSec",
  "userComment",
  "outcome",
  "proxiesUsed",
  "host",
];
const GOODPUT = { chart: "box", metric: "goodputBytesPerSec", groupBy: ["mode", "connections"] };
const chart = (name, limit, make) => ({ name, limit, kind: "chart", make });

const QUESTIONS = [
  {
    name: "downloads, newest first, all",
    limit: LIMITS.first,
    kind: "downloads",
    make: () => ({ columns: COLUMNS, where: [fresh()] }),
  },
  {
    name: "downloads of one mode, sorted by goodput",
    limit: LIMITS.first,
    kind: "downloads",
    make: () => ({
      columns: COLUMNS,
      where: [fresh(), { field: "mode", op: "=", value: "coded" }],
      sort: { field: "goodputBytesPerSec", descending: true },
    }),
  },
  chart("boxplot of goodput by mode and connections, all", LIMITS.box, () => ({ ...GOODPUT, where: [fresh()] })),
  chart("boxplot of normalized goodput by mode and size class, all", LIMITS.box, () => ({
    chart: "box",
    metric: "normalizedGoodput",
    groupBy: ["mode", "sizeClass"],
    where: [fresh()],
  })),
  chart("boxplot of goodput by mode and connections, the complete ones of half", LIMITS.group, () => ({
    ...GOODPUT,
    where: [fresh(0.5), { field: "outcome", op: "=", value: "complete" }],
  })),
  chart("boxplot of duration by arm, one host", LIMITS.group, () => ({
    chart: "box",
    metric: "durationMs",
    groupBy: ["arm:e1"],
    where: [fresh(), { field: "host", op: "=", value: "media7.example" }],
  })),
  chart("histogram of duration by mode, half", LIMITS.group, () => ({
    chart: "histogram",
    metric: "durationMs",
    groupBy: ["mode"],
    where: [fresh(0.5)],
  })),
  chart("CDF of goodput by mode, half", LIMITS.group, () => ({
    chart: "cdf",
    metric: "goodputBytesPerSec",
    groupBy: ["mode"],
    where: [fresh(0.5)],
  })),
  chart("scatter of net bytes and duration by mode, half", LIMITS.group, () => ({
    chart: "scatter",
    x: "netBytes",
    y: "durationMs",
    groupBy: ["mode"],
    where: [fresh(0.5)],
  })),
  chart("median goodput a day by mode, half", LIMITS.group, () => ({
    chart: "time",
    metric: "goodputBytesPerSec",
    bucketMs: 86_400_000,
    groupBy: ["mode"],
    where: [fresh(0.5)],
  })),
  {
    name: "difference of goodput between two modes, half",
    limit: LIMITS.group,
    kind: "difference",
    make: () => ({ metric: "goodputBytesPerSec", field: "mode", a: "uncoded-mutp", b: "coded", where: [fresh(0.5)] }),
  },
];

async function startOrigo(environment) {
  const child = spawn(process.execPath, [path.join(root, "origo/dist/main.js")], {
    env: {
      ...process.env,
      PORT: "0",
      HOST: "127.0.0.1",
      ORIGO_SECRET: "bench",
      LOGIN: "off",
      LOG_LEVEL: "error",
      ...environment,
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  const lines = createInterface(child.stdout);
  const [line] = await Promise.race([
    once(lines, "line"),
    ended.then(() => Promise.reject(new Error("Origo did not start"))),
  ]);
  const stop = async () => {
    child.kill("SIGTERM");
    await ended;
  };
  /** At most so far. */
  const memoryMb = () => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))[1]) / 1000;
  return { url: JSON.parse(line).url, stop, memoryMb };
}

async function ask(url, kind, body) {
  const response = await fetch(`${url}/v1/query/${kind}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${kind} answered ${response.status}: ${text}`);
  return text;
}

/**
 * Answers a question with Origo's own code and gives back the time that its statements took, one beside the other as
 * Origo runs them.
 */
async function straightMs(database, kind, body) {
  const schema = origoModule("query-schema.js");
  const { queryChart, queryDifference, queryDownloads } = origoModule("store/index.js");
  const [query, Shape] = {
    downloads: [queryDownloads, schema.DownloadsQuery],
    chart: [queryChart, schema.ChartQuery],
    difference: [queryDifference, schema.DifferenceQuery],
  }[kind];
  let [spentMs, running, sinceMs] = [0, 0, 0];
  const all = async (sql, values) => {
    if (running++ === 0) sinceMs = performance.now();
    try {
      return await database.all(sql, values);
    } finally {
      if (--running === 0) spentMs += performance.now() - sinceMs;
    }
  };
  await query({ kind: database.kind, all }, Shape.parse(body));
  return spentMs;
}

async function measureQuestions(url, straight, rounds, print) {
  const rows = [];
  for (const { name, kind, limit, make } of QUESTIONS) {
    await ask(url, kind, make());
    const [times, alone] = [[], []];
    for (let round = 0; round < rounds; round++) {
      const body = make();
      const startMs = performance.now();
      await ask(url, kind, body);
      times.push(performance.now() - startMs);
      if (straight) alone.push(await straightMs(straight, kind, make()));
    }
    const row = {
      name,
      limitMs: limit,
      ms: median(times),
      leastMs: Math.min(...times),
      worstMs: Math.max(...times),
      ...(straight ? { straightMs: median(alone), ratio: median(times) / median(alone) } : {}),
    };
    rows.push(row);
    print(
      `${row.ms.toFixed(0).padStart(6)} ms (limit ${limit}, least ${row.leastMs.toFixed(0)})` +
        `${straight ? `, ${row.ratio.toFixed(2)}x of the SQL alone` : ""}  ${name}`,
    );
  }
  return rows;
}

/** Batches at their times, whether those before were answered or not; latency from the time a batch was due. */
async function measureIntake(url, seconds) {
  const sample = JSON.parse(readFileSync(path.join(root, "lab/bench/origo/record.json"), "utf8"));
  const [before, after] = JSON.stringify({ ...sample, id: "THE-ID" }).split("THE-ID");
  const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
  const latencies = [];
  let [acknowledged, refused] = [0, 0];
  const send = (dueMs) =>
    new Promise((resolve, reject) => {
      const body = `{"records":[${Array.from({ length: BATCH }, () => before + randomUUID() + after).join(",")}]}`;
      const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
      const request = http.request(`${url}/v1/records`, { method: "POST", agent, headers }, (response) => {
        const parts = [];
        response.on("data", (part) => parts.push(part));
        response.on("end", () => {
          latencies.push(performance.now() - dueMs);
          if (response.statusCode === 202) acknowledged += JSON.parse(Buffer.concat(parts).toString()).accepted;
          else refused += BATCH;
          resolve();
        });
      });
      request.on("error", reject);
      request.end(body);
    });
  const batches = Math.round((RATE * seconds) / BATCH);
  const startMs = performance.now();
  const sent = [];
  for (let index = 0; index < batches; index++) {
    const dueMs = startMs + (index * BATCH * 1000) / RATE;
    const waitMs = dueMs - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    sent.push(send(dueMs));
  }
  await Promise.all(sent);
  const tookMs = performance.now() - startMs;
  agent.destroy();
  return {
    records: batches * BATCH,
    acknowledged,
    refused,
    perSec: (acknowledged * 1000) / tookMs,
    p50: median(latencies),
    p99: quantile(latencies, 0.99),
    worst: Math.max(...latencies),
  };
}

const countOf = async (url) => JSON.parse(await ask(url, "downloads", { columns: ["id"], limit: 1 })).matching;

async function measure(origo, straight, { rounds, seconds }, print) {
  const paint = await measurePaint(origo.url);
  print(
    `first paint of the downloads page: ${paint.ms.toFixed(0)} ms (limit ${LIMITS.paint}, worst of ` +
      `${paint.rounds} ${paint.worstMs.toFixed(0)})`,
  );
  const questions = await measureQuestions(origo.url, straight, rounds, print);
  const afterQuestions = origo.memoryMb();
  const had = await countOf(origo.url);
  const intake = await measureIntake(origo.url, seconds);
  intake.lost = had + intake.acknowledged - (await countOf(origo.url));
  const memoryMb = { questions: afterQuestions, all: origo.memoryMb() };
  print(
    `intake: ${intake.perSec.toFixed(0)} records/s, p50 ${intake.p50.toFixed(0)} ms, p99 ` +
      `${intake.p99.toFixed(0)} ms (limit ${LIMITS.p99}), refused ${intake.refused}, lost ${intake.lost}`,
  );
  print(
    `memory: at most ${memoryMb.questions.toFixed(0)} MB in questions, ${memoryMb.all.toFixed(0)} MB ` +
      `with intake (limit ${LIMITS.memory})`,
  );
  return { paint, questions, intake, memoryMb };
}

/** Leaves DATA_DIR/origo.duckdb and, where PostgreSQL is to have the same, records.csv. */
async function generate(folder, count, withCsv, print) {
  const { exportCsv, Store } = origoModule("store/index.js");
  const store = await Store.open(folder);
  await store.database.run(generateSql(count));
  await store.database.all("SELECT max(nextval('downloads_seq')) AS last FROM downloads");
  await store.database.run("CHECKPOINT");
  if (withCsv) await pipeline(exportCsv(store.database), createWriteStream(path.join(folder, "records.csv")));
  await store.close();
  print(
    `${count.toLocaleString("en")} records, ` +
      `${(statSync(path.join(folder, "origo.duckdb")).size / 1e6).toFixed(0)} MB in DuckDB`,
  );
}

async function onDuckDb(folder, pace, print) {
  const { openDuckDb } = origoModule("store/duckdb.js");
  const copy = path.join(folder, "copy");
  await (await openDuckDb(copy)).close();
  copyFileSync(path.join(folder, "origo.duckdb"), path.join(copy, "origo.duckdb"));
  const straight = await openDuckDb(copy);
  const origo = await startOrigo({ DATA_DIR: folder });
  try {
    return await measure(origo, straight, pace, print);
  } finally {
    await origo.stop();
    await straight.close();
  }
}

async function onPostgres(folder, { rounds, seconds }, print) {
  const pace = { rounds: Math.min(rounds, POSTGRES_ROUNDS), seconds };
  const postgres = await startPostgres({ durable: true });
  try {
    await (await origoModule("store/index.js").Store.open(folder, postgres.url)).close();
    const names = origoModule("store/fields.js")
      .COLUMNS.map(({ column }) => column)
      .join(", ");
    const copy =
      `\\copy downloads (${names}) FROM '${path.join(folder, "records.csv")}' WITH (FORMAT csv, ` + "HEADER true)";
    const { status, stderr } = spawnSync(
      path.join(postgresFolder(), "psql"),
      [postgres.url, "-q", "-v", "ON_ERROR_STOP=1", "-c", copy, "-c", "VACUUM ANALYZE downloads"],
      { encoding: "utf8" },
    );
    if (status !== 0) throw new Error(`psql failed: ${stderr}`);
    const origo = await startOrigo({ DATA_DIR: folder, DATABASE_URL: postgres.url });
    try {
      return await measure(origo, undefined, pace, print);
    } finally {
      await origo.stop();
    }
  } finally {
    postgres.stop();
  }
}

const verdict = (value, limit) => (value <= limit ? "met" : "NOT MET");

function partOf(name, { paint, questions, intake, memoryMb }, seconds) {
  const count = (value) => value.toLocaleString("en");
  const cells = ({ name: question, ms, leastMs, limitMs, ratio }) => [
    question,
    ms.toFixed(0),
    leastMs.toFixed(0),
    String(limitMs),
    verdict(ms, limitMs),
    ratio?.toFixed(2) ?? "",
  ];
  const judged = (value, limit) => `limit ${limit}: ${verdict(value, limit)}`;
  return [
    `${name}\n`,
    `${table(["question", "median, ms", "least", "limit", "", "over the SQL alone"], questions.map(cells))}\n`,
    `Memory: at most ${memoryMb.questions.toFixed(0)} MB in questions, ${memoryMb.all.toFixed(0)} MB with intake ` +
      `(${judged(memoryMb.all, LIMITS.memory)}).`,
    `Intake for ${seconds} s: ${count(intake.acknowledged)} of ${count(intake.records)} records acknowledged, ` +
      `${intake.perSec.toFixed(0)}/s, p50 ${intake.p50.toFixed(0)} ms, p99 ${intake.p99.toFixed(0)} ms ` +
      `(${judged(intake.p99, LIMITS.p99)}), ${intake.refused} refused, ${intake.lost} lost.`,
    `First paint of the downloads page: median ${paint.ms.toFixed(0)} ms of ${paint.rounds}, ` +
      `worst ${paint.worstMs.toFixed(0)} (${judged(paint.ms, LIMITS.paint)}).`,
  ].join("\n");
}

function reportOf(run) {
  const parts = [
    run.duckdb && partOf("DuckDB", run.duckdb, run.seconds),
    run.postgres &&
      partOf(
        `PostgreSQL (reported, ${Math.min(run.rounds, POSTGRES_ROUNDS)} of a kind; the limits are set for DuckDB)`,
        run.postgres,
        run.seconds,
      ),
  ];
  const machine = `${run.processor}, ${run.cores} cores, node ${process.versions.node}`;
  return `${run.records.toLocaleString("en")} records; ${machine}.
${run.rounds} questions of a kind. The ratio is the median over that of the same SQL run straight in DuckDB.

${parts.filter(Boolean).join("\n\n")}

Heartbeats: ${fleetSentence(run.fleet)} Limit: ${LIMITS.core * 100} % (${verdict(run.fleet.core, LIMITS.core)}).
`;
}

/** Time to the first contentful paint of the page, each time in a profile that has never seen it. */
async function measurePaint(url) {
  const { browser, close } = await stack.openBrowser({ headless: true });
  try {
    const times = [];
    for (let round = 0; round <= PAINTS; round++) {
      const context = await browser.createBrowserContext();
      const page = await context.newPage();
      await page.goto(`${url}/#/downloads`, { waitUntil: "load" });
      await page.waitForFunction("performance.getEntriesByName('first-contentful-paint').length > 0");
      if (round > 0)
        times.push(await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"));
      await context.close();
    }
    return { ms: median(times), worstMs: Math.max(...times), rounds: PAINTS };
  } finally {
    await close();
  }
}

/**
 * Resolves to the exit status: 0 measured (a limit not met is a result), 2 bad option. Throws when it could not
 * measure.
 */
export async function runOrigoBench(args) {
  const options = { quick: { type: "boolean", default: false }, json: { type: "string" }, only: { type: "string" } };
  let values;
  try {
    ({ values } = parseArgs({ args, options }));
    if (![undefined, "duckdb", "postgres"].includes(values.only))
      throw new Error(`--only must be duckdb or postgres, got ${values.only}`);
  } catch (error) {
    console.error(error.message);
    return 2;
  }
  await setUp({ database: values.only !== "duckdb", browser: true, print: () => undefined });
  return measureAll(values);
}

/** Over what is built. */
export async function measureAll(values, print = console.log) {
  const [records, rounds, seconds] = values.quick ? [130_000, 5, 10] : [1_300_000, 15, 60];
  const run = {
    date: new Date().toISOString().slice(0, 10),
    quick: values.quick,
    records,
    rounds,
    seconds,
    processor: os.cpus()[0]?.model,
    cores: os.cpus().length,
    load: os.loadavg()[0].toFixed(1),
  };
  const folder = mkdtempSync(path.join(os.tmpdir(), "origo-bench-"));
  try {
    run.fleet = await measureFleet({ proxies: 1000, heartbeatMs: 5000, seconds: values.quick ? 10 : 30 });
    print(fleetSentence(run.fleet));
    await generate(folder, records, values.only !== "duckdb", print);
    for (const [name, part] of [
      ["duckdb", onDuckDb],
      ["postgres", onPostgres],
    ]) {
      if (values.only !== undefined && values.only !== name) continue;
      print(name);
      run[name] = await part(folder, { rounds, seconds }, print);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  if (values.json)
    writeFileSync(
      path.resolve(process.env.INIT_CWD ?? process.cwd(), values.json),
      `${JSON.stringify(run, null, 1)}\n`,
    );
  print(`\n${reportOf(run)}`);
  return 0;
}
