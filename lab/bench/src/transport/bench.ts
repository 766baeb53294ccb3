/**
 * `npm run bench -- transport`: transports beside HTTP and TCP over emulated links, and over loopback. Prints the
 * figures to reach and a table of each part. Exit status 0 measured, 1 could not measure, 2 bad option.
 */
import { writeFileSync } from "node:fs";
import { fileOf, FLAG, optionsOf, runBench, TEXT } from "../kit/command";
import { machineText, type Host } from "../kit/machine";
import { measureCost } from "./cost";
import { measureDownloads } from "./downloads";
import type { Plan } from "./downloads";
import { measureLoopback } from "./loopback";
import { reportOf } from "./report";
import { SHARING_SEC } from "./rows";
import type { Contender, Results } from "./rows";
import { measureAlone, measureSharing } from "./sharing";
import type { Crowd } from "./sharing";

const USAGE = `npm run bench -- transport [--quick] [--json FILE] [--row TEXT]
  --quick      few runs and short flows, about five minutes
  --json FILE  the downloads as an array (rows.ts)
  --row TEXT   only the parts whose name contains TEXT: single-chromium, single-firefox, single-node, single-start,
               six-node, loopback, cost, sharing-bbr, sharing-cubic, webrtc-beside-bbr, webrtc-beside-cubic,
               sharing-many, reactions`;

const ALL: readonly Contender[] = ["webtransport", "webrtc", "udp", "http-bbr", "http-reno"];
const BROWSERS: readonly Contender[] = ["webtransport", "webrtc", "http-bbr", "http-reno"];

/** Three flows of ours beside three of TCP. */
const CROWDS: readonly Crowd[] = [
  { transport: "webtransport", ours: 3, theirs: ["cubic", "cubic", "cubic"], queueProducts: 1 },
  { transport: "webtransport", ours: 3, theirs: ["cubic", "cubic", "cubic"], queueProducts: 2.5 },
  { transport: "webtransport", ours: 3, theirs: ["bbr", "cubic", "cubic"], queueProducts: 2.5 },
];

type Print = (line: string) => void;

interface Part {
  name: string;
  /** Downloads and flows may run at the same time. A part that counts processor time runs alone. */
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
 * Also measures Cubic in the place of our flows, to see what the rivals leave to a flow of their kind. One flow alone
 * varies by a quarter and more from run to run.
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
      `  ${sharing.ourFlows} ${sharing.transport} beside ${sharing.theirFlows} ${sharing.rivals}, queue ` +
        `${sharing.queueProducts} BDP: ${Math.round(sharing.ourBytesPerSec / 1000)} and ` +
        `${Math.round(sharing.theirBytesPerSec / 1000)} KB/s, ${(100 * sharing.ourLossShare).toFixed(1)} % ` +
        "of ours lost",
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
      `  alone, ${what}: ${reaction.share.toFixed(3)} of the link, queue ${reaction.queueMean.toFixed(2)} ` +
        `mean, ${reaction.queueMost.toFixed(2)} most` +
        `${reaction.backOffRounds === null ? "" : `, backs off in ${reaction.backOffRounds.toFixed(1)} RTT`}`,
    );
  }
}

/** How busy the machine was while parts went over links, so that a reader knows when to doubt a figure. */
function hostLine(hosts: readonly Host[]): string | undefined {
  if (hosts.length === 0) return undefined;
  const most = (values: number[]): number => Math.max(0, ...values);
  const busy = hosts.map((host) => host.busy).sort((a, b) => a - b);
  return (
    `machine: processors busy ${Math.round(100 * (busy[Math.floor(busy.length / 2)] ?? 0))} % in the ` +
    `median part, ${Math.round(100 * most(busy))} % at most; packets late by at most ` +
    `${most(hosts.map(({ lateUs }) => lateUs.p99))} us (99 %), ` +
    `${hosts.reduce((sum, { interfaceDrops }) => sum + interfaceDrops, 0)} dropped by the machine itself`
  );
}

async function main(): Promise<number> {
  const options = optionsOf({ quick: FLAG, json: TEXT, row: { ...TEXT, default: "" } });
  const results: Results = { rows: [], sharing: [], reactions: [], loopback: [], costs: [], hosts: [] };
  let failures = 0;
  const parts = partsOf(options.quick).filter(({ name }) => name.includes(options.row));
  const runAll = async (own: readonly Part[]): Promise<void> => {
    for (const part of own) {
      console.log(part.name);
      await part.run(results, console.log).catch((error: unknown) => {
        failures++;
        console.error(
          `  ${part.name} could not be measured: ${error instanceof Error ? error.message : String(error)}`,
        );
      });
    }
  };
  const needing = (what: Part["needs"]): Part[] => parts.filter(({ needs }) => needs === what);
  if (options.quick) {
    await Promise.all([runAll(needing("downloads")), runAll(needing("flows"))]);
    await runAll(needing("machine"));
  } else await runAll(parts);
  console.log(
    `\n${machineText()}\n\n${reportOf(results, options.row !== "")}\n\n${hostLine(results.hosts) ?? "no links"}\n`,
  );
  if (options.json !== undefined) writeFileSync(fileOf(options.json), `${JSON.stringify(results.rows, null, 1)}\n`);
  return failures > 0 ? 1 : 0;
}

runBench(USAGE, main);
