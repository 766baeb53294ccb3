/**
 * `npm run bench -- spread`: what it costs and saves that proxies read a chunk from its origin together, over emulated
 * links. Each download is made with sharing and without, in turns, of a new URL. Exit status 0 measured, 1 could not
 * measure, 2 bad option.
 */
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { startLinks, type Links } from "@tributary/lab-links";
import { repoRoot } from "@tributary/lab-stack";
import { countOf, optionsOf, runBench, TEXT } from "../kit/command";
import { startDriver, type Driver } from "../kit/driver";
import { median } from "../kit/figures";
import { machineText, processorSecOf, watchIdleShare } from "../kit/machine";
import { percent, table } from "../kit/table";
import { atMost, verdictOf } from "../kit/verdict";
import type { Order, Reply } from "./driver";

const USAGE = `npm run bench -- spread [--rounds N] [--rate KB] [--only TEXT]
  --rounds N    downloads of each kind with sharing, and as many without (default 5)
  --rate KB     KB/s of each proxy's link (default 500)
  --only TEXT   the cases whose names contain this`;
const ONE_WAY_MS = 10;
/** One proxy breaks this share of the usual time after the request. */
const BREAKS_AT = 0.5;

interface Case {
  proxies: number;
  /** The origin's link, in links of a proxy. */
  origin: number;
  bytes: number;
  viewers?: number;
  broken?: "dies" | "falls to a tenth";
  /** Floor and aim of the time with sharing over the time without. */
  limits?: readonly [number, number];
}

const FAST = (proxies: number) => ({ proxies, origin: 4 * proxies, limits: [1.05, 1] as const });
const CASES: readonly Case[] = [
  ...[4, 6].flatMap((proxies) => [20_000, 100_000, 1_500_000].map((bytes) => ({ ...FAST(proxies), bytes }))),
  ...[4, 6].map((proxies) => ({ proxies, origin: 1, bytes: 1_500_000, limits: [0.6, 0.4] as const })),
  { proxies: 6, origin: 24, bytes: 300_000, viewers: 20 },
  { proxies: 6, origin: 24, bytes: 1_500_000, broken: "dies", limits: [1.15, 1.05] },
  { proxies: 6, origin: 24, bytes: 1_500_000, broken: "falls to a tenth", limits: [1.15, 1.05] },
];
const nameOf = ({ proxies, origin, bytes, viewers = 1, broken }: Case): string =>
  `${bytes / 1000} KB, ${proxies} proxies, origin of ${origin} links` +
  `${viewers > 1 ? `, ${viewers} viewers` : ""}${broken ? `, one ${broken}` : ""}`;

interface Run {
  ms: number;
  firstByteMs: number;
  /** Bytes on the origin's line over those of the body. */
  factor: number;
  clientMs: number;
  proxiesMs: number;
}

const scenario = ({ proxies, origin }: Case, rateKB: number) => ({
  services: true,
  backbone: { delay: ONE_WAY_MS, rate: `${origin * rateKB} KB/s`, queue: "100 ms" },
  hosts: {
    client: {},
    origin: {},
    origo: { link: { delay: ONE_WAY_MS } },
    proxy: { count: proxies, link: { delay: ONE_WAY_MS, up: { rate: `${rateKB} KB/s`, queue: "100 ms" } } },
  },
});

let urls = 0;

async function once(
  links: Links,
  driver: Driver<Order, Reply>,
  own: Case,
  sharing: boolean,
  breaksMs?: number,
): Promise<Run> {
  const { proxies, bytes, viewers = 1, broken } = own;
  const url = `${links.env["ORIGIN_URL"]}/__size/${bytes}?${urls++}`;
  const sentBytes = async () => (await links.stats()).hosts["origin"]!.backbone.outBytes;
  const proxyMs = () => links.services!.proxies.reduce((sum, { pid }) => sum + 1000 * processorSecOf(pid), 0);
  const [bytesBefore, msBefore] = [await sentBytes(), proxyMs()];
  const asked = driver.ask({ url, connections: proxies, sharing, viewers });
  if (broken && breaksMs !== undefined) {
    await pause(breaksMs);
    await links.set("proxy2", broken === "dies" ? { cut: true } : { up: { rate: "10 %" } });
  }
  const reply = await asked;
  if (broken) await links.set("proxy2", broken === "dies" ? { cut: false } : { up: { rate: "100 %" } });
  if ("problem" in reply) throw new Error(`${nameOf(own)}, sharing ${sharing}: ${reply.problem}`);
  if (reply.bytes !== bytes * viewers) throw new Error(`${nameOf(own)}: ${reply.bytes} bytes came`);
  const factor = ((await sentBytes()) - bytesBefore) / bytes;
  const { ms, firstByteMs, cpuMs } = reply;
  return { ms, firstByteMs, factor, clientMs: cpuMs, proxiesMs: proxyMs() - msBefore };
}

/** With sharing, and without. */
async function measure(own: Case, rounds: number, rateKB: number): Promise<[Run[], Run[]]> {
  const links = await startLinks(scenario(own, rateKB));
  const driver = startDriver<Order, Reply>(links, path.join(repoRoot, "lab/bench/dist/spread/driver.js"));
  try {
    const runs: [Run[], Run[]] = [[], []];
    const usual = { ...own };
    delete usual.broken;
    // Sessions open, code is compiled, and the client learns rates.
    for (const sharing of [true, false, true]) await once(links, driver, { ...usual, bytes: 1_500_000 }, sharing);
    const usualMs = (await once(links, driver, usual, true)).ms;
    for (let round = 0; round < rounds; round++)
      for (const sharing of round % 2 ? [false, true] : [true, false]) {
        runs[sharing ? 0 : 1].push(await once(links, driver, own, sharing, usualMs * BREAKS_AT));
        // A proxy that broke is found again.
        if (own.broken) await once(links, driver, usual, true);
      }
    return runs;
  } finally {
    await driver.close();
    await links.close();
  }
}

async function main(): Promise<number> {
  const words = optionsOf({ rounds: TEXT, rate: TEXT, only: TEXT });
  const [rounds, rateKB] = [countOf("rounds", words.rounds) ?? 5, countOf("rate", words.rate, 100_000) ?? 500];
  const lines: string[][] = [];
  const idleShare = watchIdleShare();
  for (const own of CASES.filter((each) => nameOf(each).includes(words.only ?? ""))) {
    const runs = await measure(own, rounds, rateKB);
    const of = (key: keyof Run) => runs.map((each) => median(each.map((run) => run[key])));
    const [shared, alone] = of("ms");
    const both = (key: keyof Run, digits: number) =>
      of(key)
        .map((value) => value.toFixed(digits))
        .join(" / ");
    const figure = atMost(nameOf(own), shared! / alone!, own.limits ?? []);
    const cells = [both("ms", 0), figure.got.toFixed(2), verdictOf(figure), both("firstByteMs", 0), both("factor", 2)];
    lines.push([nameOf(own), ...cells, both("clientMs", 0), both("proxiesMs", 0)]);
    console.log(lines.at(-1)!.join(" | "));
  }
  const head = ["with sharing / without", "ms", "ratio", "", "first byte (ms)", "origin's bytes over the body's"];
  console.log(`\n${machineText()}. Links of ${rateKB} KB/s, ${2 * ONE_WAY_MS} ms to proxies and to the origin.`);
  console.log(`Medians of ${rounds}. Idle processors: ${percent(idleShare())}.\n`);
  console.log(table([...head, "client's processor (ms)", "proxies' processor (ms)"], lines));
  return 0;
}

runBench(USAGE, main);
