/**
 * `npm run sim -- peers`: distributes one object from one peer to many over uneven links, with the product's peers.
 *
 *   npm run sim -- peers [--peers 80] [--blocks 100] [--schemes coding,rarest,naive] [--density 1]
 *                        [--aggressiveness 0.01] [--check off|arrival|ahead] [--coder 2006|today|MB/s]
 *                        [--figure 2|3|4|5] [--runs 3] [--seed N]
 *
 * It prints a line for each scheme, or the table of one of the paper's figures: means over the runs, whose seeds are N,
 * N + 1 and so on. Figures 2 and 3 measure the codec on this machine. Exit status: 0 every peer has the
 * right bytes, 1 not so, 2 wrong option.
 */
import { parseArgs } from "node:util";
import { loadCodec } from "@tributary/native-codec";
import {
  DEPENDENCE_CHECKS as CHECKS,
  mixedTopology,
  PEER_SCHEMES as SCHEMES,
  type Codec,
  type DependenceCheck,
  type PeerScheme as Scheme,
} from "@tributary/protocol";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { figure2, figure3 } from "./coder-figures";
import { mean, distribute, type DistributionOptions, type DistributionOutcome } from "./distribution";

export const USAGE = `usage: npm run sim -- peers [--peers 80] [--blocks 100] [--schemes ${SCHEMES.join(",")}]
                      [--density 1] [--aggressiveness 0.01] [--check ${CHECKS.join("|")}]
                      [--coder 2006|today|MB/s] [--figure 2|3|4|5] [--runs 3] [--seed N]`;

/** The paper's blocks. */
const BLOCK_BYTES = 32_768;
const UPSTREAM = 10;
/**
 * Multiplied bytes a second. The paper's coder makes 1 to 2 MB/s with 80 blocks (section II-A). A core of today makes
 * this much without GFNI, and several times as much with it.
 */
const CODERS: Readonly<Record<string, number>> = { "2006": 120e6, today: 50e9 };
/** Time steps. With many peers they are longer, so that a run takes minutes and not hours. */
const STEP_MS = 50;
const STEP_MS_LARGE = 250;
const LARGE = 1000;

const FIGURES = [2, 3, 4, 5] as const;
type Figure = (typeof FIGURES)[number];

interface Options extends Pick<DistributionOptions, "density" | "aggressiveness" | "check" | "blockCount"> {
  peers: number;
  schemes: Scheme[];
  coderBytesPerSec: number;
  figure: Figure | undefined;
  runs: number;
  seed: number;
}

/** One scheme with its settings, over all runs. */
interface Row {
  name: string;
  outcomes: DistributionOutcome[];
}

export function peers(words: string[]): number {
  const options = readOptions(words);
  if (typeof options === "string") {
    console.error(`${options}\n${USAGE}`);
    return 2;
  }
  const { peers, blockCount, runs, seed, figure } = options;
  const codec = loadCodec(loadWasmCodec);
  if (figure === 2 || figure === 3) {
    console.log(`${codec.engine}, one thread\n\n${figure === 2 ? figure2(codec) : figure3(codec)}`);
    return 0;
  }
  console.log(
    `${peers} peers with ${UPSTREAM} upstream neighbours, ${blockCount} blocks of ${BLOCK_BYTES} bytes, ` +
      `${runs} runs from seed ${seed}`,
  );
  const rows = rowsOf(options).map(({ name, ...changed }) => {
    const row = { name, outcomes: runsOf({ ...options, ...changed }, codec) };
    print(row);
    return row;
  });
  const areRight = rows.every(({ outcomes }) => outcomes.every(({ areBytesRight }) => areBytesRight));
  if (!areRight) console.error(`some peers did not get the bytes; to repeat: npm run sim -- peers ${words.join(" ")}`);
  return areRight ? 0 : 1;
}

interface Setting extends Partial<Options> {
  name: string;
  scheme: Scheme;
}

function rowsOf({ figure, schemes, check, density, aggressiveness }: Options): Setting[] {
  const naive: Setting = { name: "naive broadcast", scheme: "naive" };
  const percent = (value: number): string => `${Math.round(100 * value)} %`;
  const nameOf = (own: DependenceCheck): string => (own === "off" ? "no check" : `check ${own}`);
  const rowsAt = (what: "density" | "aggressiveness", values: readonly number[], rest: Partial<Options>): Setting[] => [
    naive,
    ...(["off", "arrival"] as const).flatMap((own) =>
      values.map((value): Setting => ({
        name: `${what} ${percent(value)}, ${nameOf(own)}`,
        scheme: "coding",
        check: own,
        [what]: value,
        ...rest,
      })),
    ),
  ];
  if (figure === 4) return rowsAt("density", [1, 0.5, 0.2, 0.1, 0.06, 0.04, 0.02], { aggressiveness: 1 });
  if (figure === 5) return rowsAt("aggressiveness", [1, 0.96, 0.8, 0.66, 0.5, 0.35, 0.2], { density: 0.06 });
  const coded = `coding, density ${percent(density)}, aggressiveness ${percent(aggressiveness)}, ${nameOf(check)}`;
  const names: Record<Scheme, string> = { coding: coded, rarest: "rarest first", naive: "naive broadcast" };
  return schemes.map((scheme) => ({ name: names[scheme], scheme }));
}

function runsOf(options: Options & { scheme: Scheme }, codec: Codec): DistributionOutcome[] {
  const { peers, runs, seed } = options;
  const stepMs = peers > LARGE ? STEP_MS_LARGE : STEP_MS;
  return Array.from({ length: runs }, (_, run) => {
    const nodes = mixedTopology({ peers, upstream: UPSTREAM, seed: seed + run });
    return distribute({ ...options, nodes, codec, blockBytes: BLOCK_BYTES, seed: seed + run, stepMs });
  });
}

function print({ name, outcomes }: Row): void {
  const over = (value: (outcome: DistributionOutcome) => number): number => mean(outcomes.map(value));
  const sec = (ms: number): string => (ms < Infinity ? `${(ms / 1000).toFixed(1)} s` : "never");
  console.log(
    `${name.padEnd(56)} mean ${sec(over(({ completeMs }) => mean(completeMs))).padStart(8)}, last ` +
      `${sec(over(({ completeMs }) => Math.max(...completeMs))).padStart(8)}; received ` +
      `${over(({ receivedShare }) => receivedShare).toFixed(3)} of the bytes needed, control ` +
      `${over(({ controlShare }) => controlShare).toFixed(4)}; ` +
      `${(100 * over(({ decodedAtOnce }) => decodedAtOnce)).toFixed(0)} % of the peers decode with no block more`,
  );
}

function readOptions(words: string[]): Options | string {
  let values;
  try {
    const string = { type: "string" } as const;
    ({ values } = parseArgs({
      args: words,
      options: {
        peers: string,
        blocks: string,
        schemes: string,
        density: string,
        aggressiveness: string,
        check: string,
        coder: string,
        figure: string,
        runs: string,
        seed: string,
      },
    }));
  } catch (error) {
    return (error as Error).message;
  }
  const wrong = (name: keyof typeof values, wanted: string): string =>
    `--${name}: got ${values[name]}, wanted ${wanted}`;
  const [peers, blockCount] = [Number(values.peers ?? 80), Number(values.blocks ?? 100)];
  const [density, aggressiveness] = [Number(values.density ?? 1), Number(values.aggressiveness ?? 0.01)];
  const [runs, seed] = [Number(values.runs ?? 3), Number(values.seed ?? 1)];
  const schemes = (values.schemes ?? SCHEMES.join(",")).split(",") as Scheme[];
  const check = (values.check ?? "ahead") as DependenceCheck;
  const coder = values.coder ?? "today";
  const coderBytesPerSec = CODERS[coder] ?? Number(coder) * 1e6;
  const figure = values.figure === undefined ? undefined : (Number(values.figure) as Figure);
  if (!isIn(peers, 1, 20_000)) return wrong("peers", "an integer 1 to 20000");
  if (!isIn(blockCount, 1, 256)) return wrong("blocks", "an integer 1 to 256");
  if (!schemes.every((scheme) => SCHEMES.includes(scheme))) return wrong("schemes", `some of ${SCHEMES.join(",")}`);
  if (!(density > 0 && density <= 1)) return wrong("density", "a number above 0 and at most 1");
  if (!(aggressiveness > 0 && aggressiveness <= 1)) return wrong("aggressiveness", "a number above 0 and at most 1");
  if (!CHECKS.includes(check)) return wrong("check", CHECKS.join(", "));
  if (!(coderBytesPerSec > 0)) return wrong("coder", "2006, today, or a number of MB/s above 0");
  if (figure !== undefined && !FIGURES.includes(figure)) return wrong("figure", FIGURES.join(", "));
  if (!isIn(runs, 1, 1000)) return wrong("runs", "an integer 1 to 1000");
  if (!isIn(seed, 0, 0xffff_ffff)) return wrong("seed", "an integer 0 to 4294967295");
  return { peers, blockCount, schemes, density, aggressiveness, check, coderBytesPerSec, figure, runs, seed };
}

const isIn = (value: number, least: number, most: number): boolean =>
  Number.isInteger(value) && value >= least && value <= most;
