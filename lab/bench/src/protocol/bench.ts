/**
 * `npm run bench -- protocol`: every mode over the rows of rows.ts, simulated, 60 seeds a row, on all processors.
 * Prints completion over bound and normalized goodput. The seeds are fixed, so the figures are the same on any machine.
 */
import { writeFileSync } from "node:fs";
import { loadCodec } from "@tributary/native-codec";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import type { Codec } from "@tributary/protocol";
import {
  HTTP_MODES,
  inProcesses,
  isHelper,
  PROTOCOL_MODES,
  serve,
  speaks,
  type Mode,
  type World,
} from "@tributary/lab-sim";
import { fileOf, FLAG, optionsOf, runBench, TEXT, UsageError } from "../kit/command";
import { table } from "../kit/table";
import { costText, measureCost, STATE_FLOOR_BYTES } from "./cost";
import { measure, measureSeventh, type Measured, type SeventhMeasured } from "./measure";
import { parseLinks, ROWS, SEVENTHS, SIX, type Row, type Variant } from "./rows";

const USAGE = `npm run bench -- protocol [--quick] [--json FILE] [--mode MODE,...] [--row TEXT]
       npm run bench -- protocol --congestion new|warm [--quick] [--json FILE] [--row TEXT]
       npm run bench -- protocol --links 6x896 | 1x1792+3x896 [--loss 0.02] [--rtt 50] [--jitter 0] [--chunk 1500000]
       npm run bench -- protocol --cost [--mode MODE,...] [--json FILE]
  --congestion  proxies send under the product's congestion control (mode coded; links queue 100 ms). new: in new
              sessions; warm: a second after the same chunk in the same sessions. Without it, as fast as links take
  --cost      time per packet and memory of the protocol alone, at a chunk of 32 MiB
  --quick     10 seeds a row, not 60
  --seeds N   N seeds;  --seed N   the first of them (1); alone, it runs that one seed
  --row TEXT  only the rows whose title has TEXT
  --links     one row of one's own, rates in KB/s (K = 1,000) of whole packets; loss both ways; rtt, jitter in ms
modes: ${[...PROTOCOL_MODES, ...HTTP_MODES].join(", ")}`;

const SESSIONS = ["new", "warm"] as const;

interface Settings {
  rows: Row[];
  seventh: boolean;
  modes: Mode[];
  seeds: number;
  firstSeed: number;
  json: string | undefined;
  cost: boolean;
  congestion: World["congestion"];
}

type Job = { variant: Variant; mode: Mode; seeds: number; firstSeed: number; seventh: boolean };
type Result = { measured?: Measured; sevenths?: SeventhMeasured[] };

function work({ variant, mode, seeds, firstSeed, seventh }: Job, codec: Codec): Result {
  if (seventh) return { sevenths: measureSeventh(variant, SEVENTHS, mode, seeds, firstSeed, codec) };
  return { measured: measure(variant, mode, seeds, firstSeed, codec) };
}

/** Results in the order of the jobs. */
async function runAll(jobs: readonly Job[]): Promise<Result[]> {
  const results: Result[] = new Array(jobs.length);
  await inProcesses<Job, Result>(__filename, jobs, (result, index) => (results[index] = result));
  return results;
}

function readSettings(): Settings {
  const values = optionsOf({
    quick: FLAG,
    cost: FLAG,
    json: TEXT,
    mode: TEXT,
    row: TEXT,
    links: TEXT,
    loss: TEXT,
    rtt: TEXT,
    jitter: TEXT,
    chunk: TEXT,
    seeds: TEXT,
    seed: TEXT,
    congestion: TEXT,
  });
  const congestion = SESSIONS.find((sessions) => sessions === values.congestion);
  if (values.congestion !== congestion)
    throw new UsageError(`--congestion: got ${values.congestion}, wanted new or warm`);
  const known: readonly string[] = congestion ? PROTOCOL_MODES : [...PROTOCOL_MODES, ...HTTP_MODES];
  const modes = values.mode?.split(",") ?? (congestion ? ["coded"] : known);
  const strange = modes.find((mode) => !known.includes(mode));
  if (strange !== undefined) throw new UsageError(`--mode: got ${strange}, which is none of ${known.join(", ")}`);
  const number = (text: string | undefined, otherwise: number) => (text === undefined ? otherwise : Number(text));
  const seeds = number(values.seeds, values.seed !== undefined ? 1 : values.quick ? 10 : 60);
  const firstSeed = number(values.seed, 1);
  if (!Number.isInteger(seeds) || seeds < 1 || seeds > 100_000)
    throw new UsageError(`--seeds: got ${values.seeds}, wanted an integer 1 to 100000`);
  if (!Number.isInteger(firstSeed) || firstSeed < 0 || firstSeed > 0xffff_ffff)
    throw new UsageError(`--seed: got ${values.seed}, wanted an integer 0 to 4294967295`);
  const common = { modes: modes as Mode[], seeds, firstSeed, json: values.json, cost: values.cost, congestion };
  const own = values.links ?? (values.loss ?? values.rtt ?? values.jitter ?? values.chunk) !== undefined;
  if (own === false) {
    const wanted = values.row?.toLowerCase() ?? "";
    return {
      ...common,
      rows: ROWS.filter(({ title }) => title.toLowerCase().includes(wanted)),
      seventh: "adding a 7th source".includes(wanted),
    };
  }
  const row = ownRow(
    values.links ?? "6x896",
    number(values.loss, 0),
    number(values.rtt, 50),
    number(values.jitter, 0),
    number(values.chunk, 1_500_000),
  );
  return { ...common, rows: [row], seventh: false };
}

function ownRow(links: string, loss: number, rttMs: number, jitterMs: number, chunkBytes: number): Row {
  if (!(loss >= 0 && loss < 1))
    throw new UsageError(`--loss: got ${loss}, wanted a share from 0 up to, not including, 1`);
  if (!(rttMs >= 0 && rttMs <= 10_000)) throw new UsageError(`--rtt: got ${rttMs}, wanted 0 to 10000 ms`);
  if (!(jitterMs >= 0 && jitterMs <= 10_000)) throw new UsageError(`--jitter: got ${jitterMs}, wanted 0 to 10000 ms`);
  if (!(Number.isInteger(chunkBytes) && chunkBytes >= 1 && chunkBytes <= 33_554_432))
    throw new UsageError(`--chunk: got ${chunkBytes}, wanted 1 to 33554432 bytes`);
  const made = parseLinks(links, { loss, rttMs, jitterMs });
  if (!made) throw new UsageError(`--links: got ${links}, wanted something like 6x896 or 1x1792+3x896`);
  return {
    title: `${links} KB/s, ${chunkBytes} bytes, jitter ${jitterMs} ms`,
    target: "none",
    variants: [{ links, loss, rttMs, chunkBytes, world: { links: made, chunkBytes } }],
  };
}

/** Length of a link's queue, in seconds at its rate. */
const QUEUE_SEC = 0.1;

function underCongestionControl(variant: Variant, congestion: World["congestion"]): Variant {
  if (congestion === undefined) return variant;
  const links = variant.world.links.map((link) => ({ queueBytes: link.bytesPerSec * QUEUE_SEC, ...link }));
  return { ...variant, world: { ...variant.world, links, congestion } };
}

function jobsOf({ rows, seventh, modes, seeds, firstSeed, congestion }: Settings): Job[] {
  const jobs = rows.flatMap((row) =>
    row.variants.flatMap((variant) =>
      modesOf(row, modes).map((mode) => ({
        variant: underCongestionControl(variant, congestion),
        mode,
        seeds,
        firstSeed,
        seventh: false,
      })),
    ),
  );
  const own = modes.filter((mode) => mode === "coded");
  return seventh && congestion === undefined
    ? [...jobs, ...SIX.flatMap((variant) => own.map((mode) => ({ variant, mode, seeds, firstSeed, seventh: true })))]
    : jobs;
}

function modesOf({ modes: only }: Row, modes: readonly Mode[]): readonly Mode[] {
  return modes.filter((mode) => !only || only.includes(mode));
}

function tableOf(row: Row, measured: readonly Measured[], modeCount: number): string {
  const head = ["links", "loss", "RTT ms", "bytes", "mode", "completion s (95 %)", "over bound (95 %)"];
  head.push("normalized goodput (5 %)", "link share", "first bytes ms", ...headOf(row));
  const lines = measured.map((one, i) => {
    const group = measured.slice(i - (i % modeCount), i - (i % modeCount) + modeCount);
    const { completionSec: median, completionSecP95: slow, boundSec } = one;
    return [
      one.links,
      `${one.loss * 100} %`,
      String(one.rttMs),
      String(one.chunkBytes),
      one.mode,
      `${median.toFixed(3)} (${slow.toFixed(3)})`,
      `${(median / boundSec).toFixed(3)} (${(slow / boundSec).toFixed(3)})`,
      `${one.normalizedGoodput.toFixed(3)} (${one.normalizedGoodputP5.toFixed(3)})`,
      one.linkShare.toFixed(3),
      (one.firstBytesSec * 1000).toFixed(0),
      ...alsoOf(row, one, group),
      one.failed > 0 ? `${one.failed} of ${one.seeds} runs did not end whole` : "",
    ];
  });
  return table(measured.some(({ failed }) => failed > 0) ? [...head, "failed"] : head, lines);
}

function headOf({ also }: Row): string[] {
  if (also === "lag") return ["largest lag ms (95 %)"];
  if (also === "roundTripsOver") return ["RTTs over bound (95 %)"];
  return also === "versusBest" ? ["over best other mode"] : [];
}

function alsoOf({ also }: Row, one: Measured, group: readonly Measured[]): string[] {
  const over = (sec: number) => (((sec - one.boundSec) * 1000) / one.rttMs).toFixed(2);
  if (also === "lag") return [`${(one.lagSec * 1000).toFixed(0)} (${(one.lagSecP95 * 1000).toFixed(0)})`];
  if (also === "roundTripsOver") return [`${over(one.completionSec)} (${over(one.completionSecP95)})`];
  if (also !== "versusBest") return [];
  const best = Math.min(...group.filter(({ mode }) => mode !== one.mode).map(({ completionSec }) => completionSec));
  return [best < Infinity ? (one.completionSec / best).toFixed(3) : "-"];
}

const SEVENTH_TITLE =
  "Adding a 7th source to 6 x 896 KB/s, RTT 50 ms, 1.5 MB, paired seeds (upper 95 % bound of the " +
  "slow-down: floor 2 %, aim 0.5 %)";

function tableOfSevenths(sevenths: readonly SeventhMeasured[]): string {
  const lines = sevenths.map((one) => [
    one.mode,
    `${one.baseLoss * 100} %`,
    String(one.bytesPerSec / 1000),
    String(one.rttMs),
    `${one.loss * 100} %`,
    (one.slowdown * 100).toFixed(2),
    (one.slowdownUpper95 * 100).toFixed(2),
  ]);
  const worst = Math.max(...sevenths.map(({ slowdownUpper95 }) => slowdownUpper95));
  const head = ["mode", "loss of the six", "7th: KB/s", "RTT ms", "loss", "slow-down %", "upper 95 %"];
  return `${table(head, lines)}\n\nWorst upper bound: ${(worst * 100).toFixed(2)} %`;
}

function cost({ modes, json }: Settings): number {
  const rows = measureCost(modes);
  const text = costText(rows);
  console.log(text);
  if (json !== undefined) writeFileSync(fileOf(json), JSON.stringify(rows, null, 1));
  return rows.every(({ stateBytes }) => stateBytes <= STATE_FLOOR_BYTES) ? 0 : 1;
}

/** What was measured, by row, in the order of the jobs. */
function groupsOf(
  rows: readonly Row[],
  modes: readonly Mode[],
  measured: readonly Measured[],
): { row: Row; measured: Measured[] }[] {
  let from = 0;
  return rows.map((row) => ({
    row,
    measured: measured.slice(from, (from += row.variants.length * modesOf(row, modes).length)),
  }));
}

async function main(): Promise<number> {
  const settings = readSettings();
  if (settings.cost) return cost(settings);
  const codec = loadCodec(loadWasmCodec);
  const refused = settings.modes.filter(
    (mode) => !(HTTP_MODES as readonly string[]).includes(mode) && !speaks(mode, codec),
  );
  for (const mode of refused) console.log(`mode ${mode} left out: this build of the protocol does not speak it`);
  const modes = settings.modes.filter((mode) => !refused.includes(mode));
  const startedMs = Date.now();
  const results = await runAll(jobsOf({ ...settings, modes }));
  const measured = results.flatMap(({ measured: one }) => (one ? [one] : []));
  const groups = groupsOf(settings.rows, modes, measured);
  const tables: [string, string][] = groups.flatMap(({ row, measured: own }): [string, string][] =>
    own.length > 0 ? [[`${row.title} (${row.target})`, tableOf(row, own, modesOf(row, modes).length)]] : [],
  );
  const sevenths = results.flatMap(({ sevenths: some }) => some ?? []);
  if (sevenths.length > 0) tables.push([SEVENTH_TITLE, tableOfSevenths(sevenths)]);
  for (const [title, table] of tables) console.log(`\n${title}\n${table}`);
  if (settings.json !== undefined) writeFileSync(fileOf(settings.json), JSON.stringify(measured, null, 1));
  console.log(
    `\nseeds ${settings.firstSeed} to ${settings.firstSeed + settings.seeds - 1}; codec ` +
      `${codec.engine}; ${((Date.now() - startedMs) / 1000).toFixed(0)} s`,
  );
  return measured.some(({ failed }) => failed > 0) ? 1 : 0;
}

if (require.main === module) {
  if (isHelper) {
    const codec = loadCodec(loadWasmCodec);
    serve<Job, Result>((job) => work(job, codec));
  } else runBench(USAGE, main);
}
