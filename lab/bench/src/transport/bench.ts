/**
 * `npm run bench -- transport`: transports against HTTP over emulated links, beside TCP, and over loopback. Prints the
 * figures to reach beside what was measured; exit status 0 measured, 1 could not measure, 2 bad option.
 *
 *     npm run bench -- transport [--quick] [--json FILE] [--docs] [--row TEXT]
 *
 *     --quick      few runs and short flows, downloads beside flows, about five minutes
 *     --json FILE  the rows as an array (rows.ts)
 *     --docs       writes the section of docs/measurements.md, or with --row one of that name, and its picture
 * --row TEXT   only the parts whose name contains TEXT: single-chromium, single-firefox, single-node, single-start,
 * six-node,
 * loopback, cost, sharing-bbr, sharing-cubic, webrtc-beside-bbr, webrtc-beside-cubic, sharing-many, reactions
 */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { repoRoot, writeSection } from "@tributary/lab-stack";
import { measureCost } from "./cost";
import { measureDownloads } from "./downloads";
import type { Plan } from "./downloads";
import { measureLoopback } from "./loopback";
import { specificationOf } from "./picture";
import { markdownOf, tableOf } from "./report";
import { figuresOf, SHARING_SEC } from "./rows";
import type { Carrier, Host, Results } from "./rows";
import { measureAlone, measureSharing } from "./sharing";
import type { Crowd } from "./sharing";

const ALL: readonly Carrier[] = ["webtransport", "webrtc", "udp", "http-bbr", "http-reno"];
const BROWSERS: readonly Carrier[] = ["webtransport", "webrtc", "http-bbr", "http-reno"];

/** Three of ours beside three of TCP. */
const CROWDS: readonly Crowd[] = [
  { transport: "webtransport", ours: 3, theirs: ["cubic", "cubic", "cubic"], queueProducts: 1 },
  { transport: "webtransport", ours: 3, theirs: ["cubic", "cubic", "cubic"], queueProducts: 2.5 },
  { transport: "webtransport", ours: 3, theirs: ["bbr", "cubic", "cubic"], queueProducts: 2.5 },
];

type Print = (line: string) => void;

interface Part {
  name: string;
  /** Downloads and flows leave the machine time for each other; what counts processor time is to be alone. */
  needs: "downloads" | "flows" | "machine";
  run(results: Results, print: Print): Promise<void>;
}

function downloads(name: string, plan: Plan): Part {
  return {
    name,
    needs: "downloads",
    run: async (results, print) => {
      const { rows, hosts } = await measureDownloads(plan, print);
      results.rows.push(...rows);
      results.hosts.push(...hosts);
    },
  };
}

function partsOf(quick: boolean): Part[] {
  const runs = quick ? 1 : 7;
  const long = quick ? 2_500_000 : 5_000_000;
  return [
    downloads("single-chromium", {
      set: "single",
      receiver: "chromium",
      transports: BROWSERS,
      losses: [0, 0.01, 0.03],
      bytes: long,
      states: ["warm"],
      runs,
    }),
    downloads("single-firefox", {
      set: "single",
      receiver: "firefox",
      transports: BROWSERS,
      losses: quick ? [0.01] : [0, 0.01, 0.03],
      bytes: long,
      states: ["warm"],
      runs,
    }),
    downloads("single-node", {
      set: "single",
      receiver: "node",
      transports: quick ? BROWSERS.slice(0, 3) : ALL,
      losses: quick ? [0.01] : [0, 0.01, 0.03],
      bytes: long,
      states: ["warm"],
      runs,
    }),
    downloads("single-start", {
      set: "single",
      receiver: "node",
      transports: quick ? BROWSERS : ALL,
      losses: [0],
      bytes: 1_500_000,
      states: ["cold", "warm"],
      runs: quick ? 2 : 7,
    }),
    downloads("six-node", {
      set: "six",
      receiver: "node",
      transports: ["webtransport", "webrtc", "udp"],
      losses: [0, 0.02],
      bytes: 1_500_000,
      states: ["warm"],
      runs: quick ? 3 : 10,
    }),
    {
      name: "loopback",
      needs: "machine",
      run: async (results, print) => {
        results.loopback.push(...(await measureLoopback(quick ? 1 : 3, print)));
      },
    },
    {
      name: "cost",
      needs: "machine",
      run: async (results, print) => {
        results.costs.push(...(await measureCost(quick ? 1 : 5, quick ? 4 : 10, print)));
      },
    },
    ...(["webtransport", "webrtc"] as const).flatMap((transport) =>
      ["bbr", "cubic"].map((rival) => ({
        name: transport === "webrtc" ? `webrtc-beside-${rival}` : `sharing-${rival}`,
        needs: "flows" as const,
        run: (results: Results, print: Print) =>
          share(
            results,
            [1, 2.5].map((queueProducts) => ({ transport, ours: 1, theirs: [rival], queueProducts })),
            3,
            quick,
            print,
          ),
      })),
    ),
    { name: "sharing-many", needs: "flows", run: (results, print) => share(results, CROWDS, 1, quick, print) },
    { name: "reactions", needs: "flows", run: (results, print) => react(results, quick ? 8 : 20, print) },
  ];
}

/**
 * Beside ours as many of Cubic in their place: what such rivals leave to one of their own. One flow alone differs from
 * run to run by a quarter and more.
 */
async function share(
  results: Results,
  crowds: readonly Crowd[],
  runs: number,
  quick: boolean,
  print: Print,
): Promise<void> {
  const all = quick
    ? crowds
    : crowds.flatMap((crowd) =>
        crowd.transport === "webtransport" ? [crowd, { ...crowd, transport: "cubic" as const }] : [crowd],
      );
  for (const crowd of Array.from({ length: quick ? 1 : runs }, () => all).flat()) {
    const { sharing, host } = await measureSharing(crowd, quick ? 10 : SHARING_SEC);
    results.sharing.push(sharing);
    results.hosts.push(host);
    print(
      `  ${sharing.ourFlows} ${sharing.transport} beside ${sharing.theirFlows} ${sharing.rivals}, queue ${sharing.queueProducts} BDP: ${Math.round(sharing.ourBytesPerSec / 1000)} and ${Math.round(sharing.theirBytesPerSec / 1000)} KB/s, ${(100 * sharing.ourLossShare).toFixed(1)} % of ours lost`,
    );
  }
}

async function react(results: Results, seconds: number, print: Print): Promise<void> {
  const cases = [
    { what: "queue 1 BDP", queueProducts: 1, loss: 0 },
    { what: "queue 2.5 BDP", queueProducts: 2.5, loss: 0 },
    { what: "3 % random loss", queueProducts: 2.5, loss: 0.03 },
    { what: "link halves", queueProducts: 2.5, loss: 0, halvesAtMs: seconds * 600 },
    { what: "loss 0, 1, 3, 0 %", queueProducts: 2.5, loss: 0, lossSteps: [0.01, 0.03, 0] },
  ];
  for (const { what, ...settings } of cases) {
    const { reaction, host } = await measureAlone(what, settings, seconds);
    results.reactions.push(reaction);
    results.hosts.push(host);
    print(
      `  alone, ${what}: ${reaction.share.toFixed(3)} of the link, queue ${reaction.queueMean.toFixed(2)} mean, ${reaction.queueMost.toFixed(2)} most${reaction.backOffRounds === null ? "" : `, backs off in ${reaction.backOffRounds.toFixed(1)} RTT`}`,
    );
  }
}

function drawTo(file: string, specification: object): void {
  const done = spawnSync(process.execPath, [path.join(repoRoot, "lab/sim/draw.mjs"), file], {
    input: JSON.stringify(specification),
    encoding: "utf8",
  });
  if (done.status !== 0) throw new Error(`the picture could not be drawn: ${done.stderr.slice(-500)}`);
}

/**
 * What the machine did in all that went over links: the worst of the parts, so that figures can be doubted where they
 * should be.
 */
function hostLine(hosts: readonly Host[]): string | undefined {
  if (hosts.length === 0) return undefined;
  const most = (values: number[]): number => Math.max(0, ...values);
  const busy = hosts.map((host) => host.busy).sort((a, b) => a - b);
  return `machine: processors busy ${Math.round(100 * (busy[Math.floor(busy.length / 2)] ?? 0))} % in the median part, ${Math.round(100 * most(busy))} % at most; packets late by at most ${most(hosts.map(({ lateUs }) => lateUs.p99))} us (99 %), ${hosts.reduce((sum, { interfaceDrops }) => sum + interfaceDrops, 0)} dropped by the machine itself`;
}

async function main(): Promise<number> {
  let options;
  try {
    options = parseArgs({
      options: {
        quick: { type: "boolean", default: false },
        json: { type: "string" },
        docs: { type: "boolean", default: false },
        row: { type: "string", default: "" },
      },
    }).values;
  } catch (error) {
    console.error(
      `usage: npm run bench -- transport [--quick] [--json FILE] [--docs] [--row TEXT]; ${(error as Error).message}`,
    );
    return 2;
  }
  const results: Results = { rows: [], sharing: [], reactions: [], loopback: [], costs: [], hosts: [] };
  const failures: string[] = [];
  const parts = partsOf(options.quick).filter(({ name }) => name.includes(options.row));
  const runAll = async (own: readonly Part[]): Promise<void> => {
    for (const part of own) {
      console.log(part.name);
      await part.run(results, console.log).catch((error: unknown) => {
        failures.push(`${part.name}: ${error instanceof Error ? error.message : String(error)}`);
        console.error(`  could not be measured: ${failures.at(-1)}`);
      });
    }
  };
  const needing = (what: Part["needs"]): Part[] => parts.filter(({ needs }) => needs === what);
  if (options.quick) {
    await Promise.all([runAll(needing("downloads")), runAll(needing("flows"))]);
    await runAll(needing("machine"));
  } else await runAll(parts);
  const figures = figuresOf(results);
  console.log(`\n${tableOf(figures)}\n\n${hostLine(results.hosts) ?? "no links"}\n`);
  if (options.json !== undefined)
    writeFileSync(
      path.resolve(process.env["INIT_CWD"] ?? process.cwd(), options.json),
      `${JSON.stringify(results.rows, null, 1)}\n`,
    );
  if (options.docs) {
    const name = ["transport", options.row].filter(Boolean).join("-");
    const picture = results.sharing.length + results.reactions.length > 0 ? `images/${name}.png` : undefined;
    if (picture) drawTo(path.join(repoRoot, "docs", picture), specificationOf(results));
    const command = [
      "npm run bench -- transport",
      options.quick && "--quick",
      options.row && `--row ${options.row}`,
      "--docs",
    ]
      .filter(Boolean)
      .join(" ");
    writeSection(
      name,
      command,
      markdownOf({ results, figures, command, machine: hostLine(results.hosts), failures, picture, part: options.row }),
    );
  }
  return failures.length > 0 ? 1 : 0;
}

void main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
