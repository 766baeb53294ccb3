/**
 * `npm run bench -- origo`: Origo over 1.3 million generated records (generate.sql.mjs), as a process of its own, asked
 * over HTTP on loopback, on DuckDB and on PostgreSQL; then intake at 5,000 records a second. Before that, what a
 * thousand proxies cost (fleet.mjs).
 *
 * Each question carries a filter that was not asked before. Times are from the request to the last byte of the answer,
 * so they hold HTTP and JSON too. Exit status 0 measured (a limit not met is a result), 1 could not measure, 2 bad
 * option.
 */
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createWriteStream, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { performance } from "node:perf_hooks";
import { postgresFolder, startPostgres } from "../../../infra/postgres.mjs";
import { root, setUp } from "../../../infra/setup.mjs";
import { fleetSentence, measureFleet, setValues, startOrigo } from "./fleet.mjs";
import { FIRST_MS, generateSql, LAST_MS } from "./generate.sql.mjs";

const require = createRequire(import.meta.url);
const origoModule = (name) => require(path.join(root, "origo/dist", name));
const kit = (name) => require(path.join(root, "lab/bench/dist/kit", name));
const { fileOf, FLAG, optionsOf, runBench, TEXT, UsageError } = kit("command.js");
const { median, rankedQuantile } = kit("figures.js");
const { machineText } = kit("machine.js");
const { table } = kit("table.js");

const USAGE = `npm run bench -- origo [--quick] [--json FILE] [--only duckdb|postgres]
  --quick      130,000 records, 5 questions of a kind, 10 s of intake
  --json FILE  what was measured`;
const RATE = 5000;
const BATCH = 25;
const LIMITS = { first: 150, box: 400, group: 500, memory: 1000, p99: 250, core: 0.15 };
/** It is reported, without limits: fewer rounds do. */
const POSTGRES_ROUNDS = 5;

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

async function measureQuestions(url, rounds, print) {
  const rows = [];
  for (const { name, kind, limit, make } of QUESTIONS) {
    await ask(url, kind, make());
    const times = [];
    for (let round = 0; round < rounds; round++) {
      const body = make();
      const startMs = performance.now();
      await ask(url, kind, body);
      times.push(performance.now() - startMs);
    }
    const row = { name, limitMs: limit, ms: median(times), leastMs: Math.min(...times), worstMs: Math.max(...times) };
    rows.push(row);
    print(`${row.ms.toFixed(0).padStart(6)} ms (limit ${limit}, least ${row.leastMs.toFixed(0)})  ${name}`);
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
    p99: rankedQuantile(latencies, 0.99),
    worst: Math.max(...latencies),
  };
}

const countOf = async (url) => JSON.parse(await ask(url, "downloads", { columns: ["id"], limit: 1 })).matching;

async function measure(origo, { rounds, seconds }, print) {
  const questions = await measureQuestions(origo.url, rounds, print);
  const afterQuestions = origo.memoryMb();
  const had = await countOf(origo.url);
  // All records come from one address here.
  await setValues(origo.url, { "origo.intakeBytesPerSecPerAddress": 2 ** 30 });
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
  return { questions, intake, memoryMb };
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
  const origo = await startOrigo({ DATA_DIR: folder });
  try {
    return await measure(origo, pace, print);
  } finally {
    await origo.stop();
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
      return await measure(origo, pace, print);
    } finally {
      await origo.stop();
    }
  } finally {
    postgres.stop();
  }
}

const verdict = (value, limit) => (value <= limit ? "met" : "NOT MET");

function partOf(name, { questions, intake, memoryMb }, seconds) {
  const count = (value) => value.toLocaleString("en");
  const cells = ({ name: question, ms, leastMs, limitMs }) => [
    question,
    ms.toFixed(0),
    leastMs.toFixed(0),
    String(limitMs),
    verdict(ms, limitMs),
  ];
  const judged = (value, limit) => `limit ${limit}: ${verdict(value, limit)}`;
  return [
    `${name}\n`,
    `${table(["question", "median, ms", "least", "limit", ""], questions.map(cells))}\n`,
    `Memory: at most ${memoryMb.questions.toFixed(0)} MB in questions, ${memoryMb.all.toFixed(0)} MB with intake ` +
      `(${judged(memoryMb.all, LIMITS.memory)}).`,
    `Intake for ${seconds} s: ${count(intake.acknowledged)} of ${count(intake.records)} records acknowledged, ` +
      `${intake.perSec.toFixed(0)}/s, p50 ${intake.p50.toFixed(0)} ms, p99 ${intake.p99.toFixed(0)} ms ` +
      `(${judged(intake.p99, LIMITS.p99)}), ${intake.refused} refused, ${intake.lost} lost.`,
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
  return `${run.records.toLocaleString("en")} records; ${machineText()}.
${run.rounds} questions of a kind.

${parts.filter(Boolean).join("\n\n")}

Heartbeats: ${fleetSentence(run.fleet)} Limit: ${LIMITS.core * 100} % (${verdict(run.fleet.core, LIMITS.core)}).
`;
}

async function main() {
  const print = console.log;
  const values = optionsOf({ quick: FLAG, json: TEXT, only: TEXT });
  if (![undefined, "duckdb", "postgres"].includes(values.only))
    throw new UsageError(`--only must be duckdb or postgres, got ${values.only}`);
  await setUp({ database: values.only !== "duckdb", print: () => undefined });
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
  if (values.json) writeFileSync(fileOf(values.json), `${JSON.stringify(run, null, 1)}\n`);
  print(`\n${reportOf(run)}`);
  return 0;
}

runBench(USAGE, main);
