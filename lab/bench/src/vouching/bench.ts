/**
 * `npm run bench -- vouching`: what it costs that a client checks each byte of a published file. Processor time and
 * start-up are those of the Node client over emulated links, beside the same file without proofs, and beside the same
 * bytes of a site: with the digests on which proxies agree, and with no check at all. What a liar costs is simulated.
 * Exit status 0 measured, 1 could not measure, 2 bad option.
 */
import { loadCodec } from "@tributary/native-codec";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { countOf, optionsOf, runBench, TEXT } from "../kit/command";
import { median } from "../kit/figures";
import { machineText, watchIdleShare } from "../kit/machine";
import { percent, table } from "../kit/table";
import { atMost, verdictOf } from "../kit/verdict";
import { Clients, FILES, PROXIES, RATE_KB, RTT_MS } from "./clients";
import type { Got } from "./driver";
import { roundTripsMore, shareOfMore } from "./figures";
import { CHUNKS, measureLiars } from "./liars";

const USAGE = `npm run bench -- vouching [--rounds N] [--seeds N]
  --rounds N    downloads of each kind, in turns (default 12)
  --seeds N     simulated downloads with each lie (default 4: each proxy lies once)`;
/** Floor and aim of each figure. */
const LIMITS = { share: [0.05, 0.02], roundTrips: [1, 0], liar: [1.1] } as const;
/** Of each link while processor time is measured. */
const COST_RATE = "2000 KB/s";
/** An object's symbols are that short because generations are whole blocks. */
const OBJECT_SYMBOL_BYTES = 1024;

const CHECKED = "published, each block proven";
const UNPROVEN = "published, unproven";
const AGREED = "a site's, digests agreed";
const UNCHECKED = "a site's, unchecked";
const SHORT = `a site's, unchecked, symbols of ${OBJECT_SYMBOL_BYTES} bytes`;

type Runs = Record<string, Got[]>;

async function measureCost(clients: Clients, rounds: number): Promise<Runs> {
  const ways: Record<string, (name: string) => Promise<Got>> = {
    [CHECKED]: () => clients.published("checked", "film"),
    [UNPROVEN]: () => clients.published("unchecked", "film"),
    [AGREED]: (name) => clients.site("checked", "film", name),
    [UNCHECKED]: (name) => clients.site("unchecked", "film", name),
    [SHORT]: (name) => clients.site("unchecked", "film", name, OBJECT_SYMBOL_BYTES),
  };
  await clients.setRate(COST_RATE);
  const runs: Runs = Object.fromEntries(Object.keys(ways).map((way) => [way, []]));
  // The first round opens sessions and compiles code.
  for (let round = 0; round <= rounds; round++) {
    await clients.hold(["film"], `cost-${round}`);
    for (const [way, get] of Object.entries(ways)) {
      const got = await get(`cost-${round}`);
      if (round > 0) runs[way]!.push(got);
    }
  }
  return runs;
}

const NEW = "new client, first file";
const USED = "used client, first file";
const LATER = "later file";

/** By situation, then by kind. */
async function measureStart(clients: Clients, rounds: number): Promise<Record<string, Runs>> {
  const kinds = (): Runs => ({ [CHECKED]: [], [UNPROVEN]: [], [AGREED]: [], [UNCHECKED]: [] });
  const runs: Record<string, Runs> = { [NEW]: kinds(), [USED]: kinds(), [LATER]: kinds() };
  for (let round = 0; round < rounds; round++) {
    const name = `start-${round}`;
    await clients.hold(["first", "later"], name);
    for (const [kind, published, who] of [
      [UNCHECKED, UNPROVEN, "unchecked"],
      [AGREED, CHECKED, "checked"],
    ] as const) {
      await clients.renew(who);
      runs[NEW]![kind]!.push(await clients.site(who, "first", name));
      const next = await clients.site(who, "later", name);
      runs[USED]![kind]!.push(next);
      runs[LATER]![kind]!.push(next);
      // The client has open sessions now, and knows no manifest.
      runs[USED]![published]!.push(await clients.published(who, "first"));
      runs[LATER]![published]!.push(await clients.published(who, "later"));
      await clients.renew(who);
      runs[NEW]![published]!.push(await clients.published(who, "first"));
    }
  }
  return runs;
}

function reportCost(runs: Runs): void {
  const cpu = (way: string): number[] => runs[way]!.map(({ cpuMs }) => cpuMs);
  const lines = Object.keys(runs).map((way) => {
    const share = shareOfMore(cpu(CHECKED), cpu(way));
    const isRival = way !== CHECKED;
    const said = way === UNPROVEN ? verdictOf(atMost(way, share, LIMITS.share)) : "";
    return [
      way,
      median(cpu(way)).toFixed(0),
      median(runs[way]!.map(({ ms }) => ms)).toFixed(0),
      isRival ? `${(100 * share).toFixed(1)} %` : "",
      said,
    ];
  });
  const head = ["download", "client's processor (ms)", "time (ms)", "share of it", "floor 5 %, aim 2 %"];
  console.log(`\nCost of checking: ${FILES.film / 1e6} MB, ${PROXIES} links of ${COST_RATE}. "Share of it" is what`);
  console.log(`the published download takes more, as a share of its processor time.\n\n${table(head, lines)}`);
}

function reportStart(runs: Record<string, Runs>): void {
  const lines = Object.entries(runs).map(([situation, kinds]) => {
    const first = (kind: string): number[] => kinds[kind]!.map(({ firstByteMs }) => firstByteMs);
    const more = (kind: string): number => roundTripsMore(first(CHECKED), first(kind), RTT_MS);
    const times = [CHECKED, UNPROVEN, AGREED, UNCHECKED].map((kind) => median(first(kind)).toFixed(0));
    const trips = [UNPROVEN, AGREED, UNCHECKED].map((kind) => more(kind).toFixed(2));
    return [situation, ...times, ...trips, verdictOf(atMost(situation, more(UNPROVEN), LIMITS.roundTrips))];
  });
  const trips = ["round trips over unproven", "over agreed", "over unchecked"];
  const head = ["first byte (ms)", CHECKED, UNPROVEN, AGREED, UNCHECKED, ...trips];
  console.log(`\nStart-up: ${PROXIES} links of ${RATE_KB} KB/s, round trip ${RTT_MS} ms to proxies and Origo.`);
  console.log(`A later file's manifest is known.\n\n${table([...head, "floor 1, aim 0"], lines)}`);
}

function reportLiars(seeds: number): void {
  const codec = loadCodec(loadWasmCodec);
  const lines = CHUNKS.flatMap((chunkBytes) => {
    const { threeHonestMs, fourHonestMs, withLiarMs } = measureLiars(chunkBytes, seeds, codec);
    return Object.entries(withLiarMs).map(([about, ms]) => {
      const times = [ms, threeHonestMs, fourHonestMs].map((value) => value.toFixed(0));
      const ratio = ms / threeHonestMs;
      return [
        `${chunkBytes / 1e6} MB, ${about}`,
        ...times,
        ratio.toFixed(3),
        verdictOf(atMost(about, ratio, LIMITS.liar)),
      ];
    });
  });
  const head = ["the liar falsifies", "with it (ms)", "three honest (ms)", "four honest (ms)", "ratio", "floor 1.10"];
  console.log("\nOne liar of four, simulated: equal links of 896 KB/s, round trip 50 ms, and a client that");
  console.log(`has not met the liar before.\n\n${table(head, lines)}`);
}

async function main(): Promise<number> {
  const words = optionsOf({ rounds: TEXT, seeds: TEXT });
  const rounds = countOf("rounds", words.rounds) ?? 12;
  const seeds = countOf("seeds", words.seeds) ?? 4;
  console.log(machineText());
  reportLiars(seeds);
  const clients = await Clients.start();
  const idleShare = watchIdleShare();
  try {
    reportStart(await measureStart(clients, rounds));
    reportCost(await measureCost(clients, rounds));
  } finally {
    await clients.close();
  }
  console.log(`\nIdle processors while links were used: ${percent(idleShare())}.`);
  return 0;
}

runBench(USAGE, main);
