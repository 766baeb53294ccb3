/**
 * `npm run links -- --check`: measures how exact the emulator is. Programs at the ends of a link measure it
 * (lab/links/core/probe.cc) and ask the emulator nothing. Exit status 1 if a figure misses its limit.
 */
import { writeFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { startLinks } from "./links";
import type { Links } from "./links";
import type { LinkChangeInput } from "./scenario";

interface CheckRow {
  what: string;
  setting: string;
  got: string;
  limit: string;
  within: boolean;
}

interface UdpTrial {
  count: number;
  ipBytes: number;
  /** 0: as fast as the socket takes packets. */
  perSec: number;
}

interface Received {
  packets: number;
  ipBytes: number;
  seconds: number;
  lossRuns: number;
  delayMs: Record<"p0" | "p1" | "p5" | "p25" | "p50" | "p75" | "p95" | "p99" | "p100" | "mean" | "sd", number>;
}

/** Each trial has its own port, so that late packets of the previous trial reach nobody. */
let port = 5_000;
const QUIET_MS = "3000";
/** The link of a trial that sets nothing: no limits. */
const CLEAN: LinkChangeInput = {
  rate: "unlimited",
  delay: 0,
  jitter: 0,
  distribution: "uniform",
  reorder: false,
  loss: 0,
};

/** Starts a receiver on the client and then a sender on the origin. Resolves with the result of each. */
async function probe<Sent, Got>(
  links: Links,
  receive: readonly string[],
  send: readonly string[],
): Promise<{ sent: Sent; received: Got }> {
  const program = links.words("client")[0]!;
  const receiver = links.run("client", [program, "probe", ...receive], { stdio: ["ignore", "pipe", "inherit"] });
  const receiverLines = linesOf(receiver.stdout!);
  await receiverLines.next();
  const sender = links.run("origin", [program, "probe", ...send], { stdio: ["ignore", "pipe", "inherit"] });
  const sent = JSON.parse((await linesOf(sender.stdout!).next()).value as string) as Sent;
  const received = JSON.parse((await receiverLines.next()).value as string) as Got;
  return { sent, received };
}

async function* linesOf(stream: NodeJS.ReadableStream): AsyncGenerator<string> {
  let unread = "";
  for await (const chunk of stream) {
    unread += String(chunk);
    for (let at = unread.indexOf("\n"); at >= 0; at = unread.indexOf("\n")) {
      yield unread.slice(0, at);
      unread = unread.slice(at + 1);
    }
  }
  throw new Error("a probe ended without its result");
}

async function udp(links: Links, change: LinkChangeInput, trial: UdpTrial): Promise<Received> {
  await links.set("origin", CLEAN);
  await links.set("origin", { up: change });
  const to = String(++port);
  const send = [
    "udp-send",
    links.address("client"),
    to,
    String(trial.count),
    String(trial.ipBytes),
    String(trial.perSec),
  ];
  return (await probe<unknown, Received>(links, ["udp-receive", to, QUIET_MS], send)).received;
}

const ms = (value: number): string => `${value.toFixed(2)} ms`;
const percent = (value: number): string => `${(100 * value).toFixed(2)} %`;
const thousands = (value: number): string => Math.round(value).toLocaleString("en");

async function checkDelay(links: Links, delayMs: number): Promise<CheckRow> {
  const trial = { count: 600, ipBytes: 1_200, perSec: 200 };
  const { delayMs: seen, packets } = await udp(links, { delay: delayMs }, trial);
  const [median, p99] = [seen.p50 - delayMs, seen.p99 - delayMs];
  return {
    what: "one-way delay",
    setting: `${delayMs} ms, ${packets} packets`,
    got: `median ${ms(seen.p50)}, 99 % under ${ms(seen.p99)}, lowest ${ms(seen.p0)}, highest ${ms(seen.p100)}`,
    limit: "median and 99 % within 1 ms, none early",
    within: Math.abs(median) <= 1 && p99 <= 1 && seen.p0 >= delayMs,
  };
}

async function checkRate(links: Links, bytesPerSec: number, seconds: number): Promise<CheckRow> {
  const ipBytes = 1_200;
  const perSec = (2 * bytesPerSec) / ipBytes;
  const {
    ipBytes: got,
    packets,
    seconds: took,
  } = await udp(
    links,
    { rate: bytesPerSec, queue: "400 ms" },
    { count: Math.round(perSec * seconds), ipBytes, perSec },
  );
  // The clock starts when the first packet arrives, so its bytes do not count.
  const rate = (got - ipBytes) / took;
  return {
    what: "rate",
    setting: `${thousands(bytesPerSec)} B/s, offered twice that, ${thousands(packets)} packets`,
    got: `${thousands(rate)} B/s, ${percent(rate / bytesPerSec - 1)} off`,
    limit: "within 2 %",
    within: Math.abs(rate / bytesPerSec - 1) <= 0.02,
  };
}

async function checkLoss(links: Links, loss: number, count: number): Promise<CheckRow[]> {
  const before = await links.stats();
  const { packets } = await udp(links, { loss }, { count, ipBytes: 60, perSec: 50_000 });
  const after = await links.stats();
  const share = 1 - packets / count;
  const overflow = after.hosts["origin"]!.interfaceDrops - before.hosts["origin"]!.interfaceDrops;
  const cpu = (after.cpuSec - before.cpuSec) / ((after.nowNs - before.nowNs) / 1e9);
  const chance = percent(Math.sqrt((1 - loss) / (loss * count)));
  const machine = overflow > 0 ? `; ${overflow} packets the machine itself dropped` : "";
  const rows: CheckRow[] = [
    {
      what: "random loss",
      setting: `${percent(loss)}, ${thousands(count)} packets at 50,000 a second`,
      got: `${percent(share)}, ${percent(share / loss - 1)} off; chance alone: ${chance} (one sigma)${machine}`,
      limit: "within 2 % of itself",
      within: Math.abs(share / loss - 1) <= 0.02,
    },
  ];
  rows.push({
    what: "packets a second",
    setting: "60 bytes, one direction",
    got: `50,000 at ${percent(cpu)} of a core`,
    limit: "-",
    within: true,
  });
  return rows;
}

async function checkBursts(links: Links, count: number): Promise<CheckRow> {
  const [enterBad, leaveBad] = [0.005, 0.2];
  const { packets, lossRuns } = await udp(
    links,
    { loss: { enterBad, leaveBad } },
    { count, ipBytes: 60, perSec: 50_000 },
  );
  const [share, run] = [1 - packets / count, (count - packets) / lossRuns];
  const mean = enterBad / (enterBad + leaveBad);
  return {
    what: "burst loss",
    setting: `Gilbert-Elliott, 0.5 % into and 20 % out of bad, ${thousands(count)} packets`,
    got: `${percent(share)} (wanted ${percent(mean)}) in runs of ${run.toFixed(2)} (wanted 5)`,
    limit: "runs within 5 %, loss within 10 % (bursts are few)",
    within: Math.abs(run / 5 - 1) <= 0.05 && Math.abs(share / mean - 1) <= 0.1,
  };
}

async function checkJitter(links: Links, distribution: "uniform" | "normal"): Promise<CheckRow> {
  const { delayMs: seen, packets } = await udp(
    links,
    { delay: 50, jitter: 10, distribution, reorder: true },
    { count: 4_000, ipBytes: 200, perSec: 1_000 },
  );
  const wanted =
    distribution === "uniform"
      ? { sd: 10 / Math.sqrt(3), p5: 41, p95: 59 }
      : { sd: 10, p5: 50 - 16.45, p95: 50 + 16.45 };
  const close = (got: number, aim: number): boolean => Math.abs(got - aim) <= 1;
  return {
    what: "jitter",
    setting: `50 ms, ${distribution} 10 ms, ${thousands(packets)} packets`,
    got:
      `standard deviation ${ms(seen.sd)} (wanted ${ms(wanted.sd)}), 5 % under ${ms(seen.p5)} (${ms(wanted.p5)}), ` +
      `95 % under ${ms(seen.p95)} (${ms(wanted.p95)})`,
    limit: "each within 1 ms",
    within: close(seen.sd, wanted.sd) && close(seen.p5, wanted.p5) && close(seen.p95, wanted.p95),
  };
}

async function checkQueue(links: Links): Promise<CheckRow> {
  const { packets, delayMs } = await udp(
    links,
    { rate: 896_000, queue: "100 ms" },
    { count: 400, ipBytes: 1_400, perSec: 0 },
  );
  const holds = Math.floor(89_600 / 1_400);
  return {
    what: "queue",
    setting: "100 ms at 896,000 B/s, a burst of 400 packets of 1,400 bytes",
    got: `${packets} passed, the last after ${ms(delayMs.p100)}`,
    limit: `${holds} passed, or at most 2 more that left meanwhile; 100 ms +- 1 ms`,
    within: packets >= holds && packets <= holds + 2 && Math.abs(delayMs.p100 - 100) <= 1,
  };
}

async function checkCapacity(links: Links): Promise<CheckRow> {
  await links.set("origin", CLEAN);
  const before = await links.stats();
  const to = String(++port);
  const { sent, received } = await probe<{ congestion: string; mss: number }, { bytes: number; seconds: number }>(
    links,
    ["tcp-receive", to],
    ["tcp-send", links.address("client"), to, "4"],
  );
  const after = await links.stats();
  const cpu = (after.cpuSec - before.cpuSec) / ((after.nowNs - before.nowNs) / 1e9);
  return {
    what: "capacity",
    setting: `one TCP connection (${sent.congestion}, ${sent.mss} bytes a segment), no limits`,
    got: `${Math.round((received.bytes * 8) / received.seconds / 1e6)} Mbit/s at ${percent(cpu)} of a core`,
    limit: "-",
    within: true,
  };
}

async function checkAll(links: Links, quick: boolean, print: (row: CheckRow) => void): Promise<CheckRow[]> {
  const rows: CheckRow[] = [];
  const add = (...made: CheckRow[]): void => {
    rows.push(...made);
    made.forEach(print);
  };
  for (const delayMs of quick ? [25] : [0, 5, 25, 100]) add(await checkDelay(links, delayMs));
  for (const rate of quick ? [896_000] : [112_000, 896_000, 1_250_000, 12_500_000])
    add(await checkRate(links, rate, 3));
  add(...(await checkLoss(links, 0.02, quick ? 500_000 : 1_000_000)));
  if (!quick) add((await checkLoss(links, 0.1, 200_000))[0]!);
  add(await checkBursts(links, quick ? 200_000 : 500_000));
  for (const distribution of quick ? (["uniform"] as const) : (["uniform", "normal"] as const))
    add(await checkJitter(links, distribution));
  add(await checkQueue(links));
  add(await checkCapacity(links));
  return rows;
}

export async function runCheck(args: string[], here: string): Promise<number> {
  const { values } = parseArgs({
    args,
    options: { quick: { type: "boolean", default: false }, json: { type: "string" } },
  });
  const links = await startLinks({ hosts: { client: null, origin: null } });
  try {
    await links.begin();
    const rows = await checkAll(links, values.quick, (row) =>
      console.log(`${row.within ? "ok  " : "MISS"} ${row.what}: ${row.setting}: ${row.got} (limit: ${row.limit})`),
    );
    const { lateUs, realTime } = await links.stats();
    const late = `${lateUs.p50} us (median), ${lateUs.p99} us (99 %), ${lateUs.max} us (highest)`;
    console.log(
      `packets handed over ${late} late; ` +
        (realTime ? "real-time priority" : "ordinary priority: load on this machine makes packets late"),
    );
    if (values.json) writeFileSync(path.resolve(here, values.json), `${JSON.stringify(rows, null, 1)}\n`);
    return rows.every(({ within }) => within) ? 0 : 1;
  } finally {
    await links.close();
  }
}
