/**
 * `npm run sim`: runs one simulated download and prints its outcome.
 *   npm run sim -- --seed N --scenario NAME [--mode MODE] [--trace FILE] [--plot FILE] [--json]
 * The same seed gives the same event-log hash. The trace is CSV with one line for each event of a packet. The plot is
 * SVG or PNG, as its name says.
 */
import { closeSync, openSync, writeSync } from "node:fs";
import { parseArgs } from "node:util";
import { loadCodec } from "@tributary/native-codec";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { boundMs } from "./bound";
import { drawTo } from "./draw";
import { simulateHttp } from "./http-client";
import type { OnLinkEvent } from "./network";
import { peers, USAGE as PEERS_USAGE } from "./peers/main";
import { findPlanted, USAGE as PLANTED_USAGE } from "./planted/main";
import { Plot } from "./plot";
import { replicate, USAGE as REPLICATE_USAGE } from "./replicate/main";
import { SCENARIOS } from "./scenarios";
import { simulate, speaks } from "./simulate";
import { liars, USAGE as LIARS_USAGE } from "./swarm/liars";
import { swarm, USAGE as SWARM_USAGE } from "./swarm/main";
import { TRACE_HEADER, traceLine } from "./trace";
import { HTTP_MODES, PROTOCOL_MODES, type HttpMode, type Mode, type Outcome, type World } from "./world";

const OTHER_USAGES = [SWARM_USAGE, LIARS_USAGE, PEERS_USAGE, REPLICATE_USAGE, PLANTED_USAGE];

const USAGE = `usage: npm run sim -- --seed N --scenario NAME [--mode MODE]
                      [--trace FILE] [--plot FILE.svg|FILE.png] [--json]
${OTHER_USAGES.map((usage) => usage.replace("usage:", "      ")).join("\n")}
scenarios:
${Object.entries(SCENARIOS)
  .map(([name, { shows }]) => `  ${name.padEnd(14)} ${shows}`)
  .join("\n")}
modes: ${[...PROTOCOL_MODES, ...HTTP_MODES].join(", ")}`;

function main(words: string[]): number {
  const options = readOptions(words);
  if (typeof options === "string") {
    console.error(`${options}\n${USAGE}`);
    return 2;
  }
  const { world, scenario, seed, trace, plot: picture, json } = options;
  const codec = loadCodec(loadWasmCodec);
  const mode = options.mode ?? (speaks("coded", codec) ? "coded" : "coded-mutp");
  if (!isHttp(mode) && !speaks(mode, codec)) {
    console.error(`mode ${mode}: this build of the protocol does not know it`);
    return 2;
  }
  const file = trace === undefined ? undefined : openSync(trace, "w");
  if (file !== undefined) writeSync(file, TRACE_HEADER);
  const plot = picture === undefined ? undefined : new Plot();
  const onLinkEvent: OnLinkEvent = (...event) => {
    if (file !== undefined) writeSync(file, traceLine(...event));
    plot?.onLinkEvent(...event);
  };
  const watch = [file === undefined && !plot ? undefined : onLinkEvent, plot?.onArrival] as const;
  const outcome = isHttp(mode) ? simulateHttp(world, mode, ...watch) : simulate(world, mode, codec, {}, ...watch);
  if (file !== undefined) closeSync(file);
  const bound = boundMs(world, outcome.symbolCount, outcome.packetBytes);
  if (plot)
    drawTo(picture!, plot.specification(`${mode}: ${SCENARIOS[scenario]!.shows}`, outcome, bound, world.links.length));
  print(scenario, seed, mode, world, outcome, json);
  return outcome.completionMs < Infinity && outcome.bytesRight ? 0 : 1;
}

function isHttp(mode: Mode): mode is HttpMode {
  return (HTTP_MODES as readonly string[]).includes(mode);
}

interface Options {
  world: World;
  scenario: string;
  seed: number;
  mode: Mode | undefined;
  trace: string | undefined;
  plot: string | undefined;
  json: boolean;
}

function readOptions(words: string[]): Options | string {
  let values;
  try {
    const string = { type: "string" } as const;
    ({ values } = parseArgs({
      args: words,
      options: { seed: string, scenario: string, mode: string, trace: string, plot: string, json: { type: "boolean" } },
    }));
  } catch (error) {
    return (error as Error).message;
  }
  const { scenario = "lossy", mode, trace, plot, json = false } = values;
  const seed = Number(values.seed ?? 1);
  const found = SCENARIOS[scenario];
  if (!found) return `--scenario: got ${scenario}, wanted one of the scenarios below`;
  if (!Number.isInteger(seed) || seed < 0 || seed > 0xffff_ffff)
    return `--seed: got ${values.seed}, wanted an integer 0 to 4294967295`;
  if (mode !== undefined && ![...PROTOCOL_MODES, ...HTTP_MODES].includes(mode as Mode))
    return `--mode: got ${mode}, wanted one of the modes below`;
  if (plot !== undefined && !/\.(svg|png)$/.test(plot))
    return `--plot: got ${plot}, wanted a name that ends in .svg or .png`;
  return { world: { ...found, seed }, scenario, seed, mode: mode as Mode | undefined, trace, plot, json };
}

function print(scenario: string, seed: number, mode: Mode, world: World, outcome: Outcome, json: boolean): void {
  const bound = boundMs(world, outcome.symbolCount, outcome.packetBytes, world.chunkBytes);
  if (json) {
    console.log(JSON.stringify({ scenario, seed, mode, boundMs: bound, ...outcome }));
    return;
  }
  const ms = (value: number) => (value < Infinity ? `${value.toFixed(1)} ms` : "never");
  console.log(`scenario ${scenario}, mode ${mode}, seed ${seed}: ${SCENARIOS[scenario]!.shows}`);
  console.log(
    `complete ${ms(outcome.completionMs)}, bound ${ms(bound)}, ratio ${(outcome.completionMs / bound).toFixed(3)}, ` +
      `first bytes ${ms(outcome.firstBytesMs)}`,
  );
  console.log(
    `packets: ${outcome.symbolCount} needed, ${outcome.receivedPackets} received, ${outcome.sentPackets} sent; ` +
      `normalized goodput ${outcome.normalizedGoodput.toFixed(3)}`,
  );
  console.log(
    `bytes ${outcome.bytesRight ? "right" : "WRONG"}; ${outcome.events} events, hash ${outcome.eventHash}` +
      (outcome.failure ? `; failed: ${outcome.failure}` : ""),
  );
}

async function run([command, ...rest]: string[]): Promise<number> {
  if (command === "planted") return findPlanted(rest);
  if (command === "liars") return liars(rest);
  if (command === "peers") return peers(rest);
  if (command === "replicate") return replicate(rest);
  return command === "swarm" ? swarm(rest) : main(command === undefined ? [] : [command, ...rest]);
}

if (require.main === module) void run(process.argv.slice(2)).then((status) => (process.exitCode = status));
