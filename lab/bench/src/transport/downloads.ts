/**
 * Downloads by the product's own programs over emulated links: from one proxy and from six, by the Node client and by
 * Chromium and Firefox with the extension, and beside them HTTP from the same proxies with the kernel's BBR and Reno.
 * Transports take turns, so that what else the machine does reaches all alike.
 */
import path from "node:path";
import { startLinks, type Links } from "@tributary/lab-links";
import type { BrowserName } from "@tributary/lab-stack";
import type { Answer, Order } from "./driver";
import { startDriver } from "../kit/driver";
import { watchHost, type Host } from "../kit/machine";
import { median } from "../kit/figures";
import type { Contender, Receiver, Row } from "./rows";

const DRIVER = path.resolve(__dirname, "../../dist/transport/driver.js");
const RATE_BYTES_PER_SEC = 896_000;
const HTTP: readonly Contender[] = ["http-bbr", "http-reno"];
const BETWEEN_MS = 150;

export interface Plan {
  set: "single" | "six";
  receiver: Receiver;
  transports: readonly Contender[];
  losses: readonly number[];
  bytes: number;
  states: readonly ("cold" | "warm")[];
  runs: number;
}

type Fetcher = (transport: Contender, state: "cold" | "warm") => Promise<Answer>;

/** The proxies of `single` differ only in the congestion control of their TCP. */
function scenarioOf({ set }: Plan): Parameters<typeof startLinks>[0] {
  const delay = set === "single" ? 20 : 25;
  const link = { delay, up: { rate: RATE_BYTES_PER_SEC, queue: "100 ms" } };
  const proxies =
    set === "single"
      ? {
          proxy1: { link, tcp: { congestion: "bbr", slowStartAfterIdle: false } },
          proxy2: { link, tcp: { congestion: "reno", slowStartAfterIdle: false } },
        }
      : { proxy: { count: 6, link, tcp: { congestion: "bbr", slowStartAfterIdle: false } } };
  return {
    services: true,
    backbone: {},
    hosts: { client: {}, origin: { link: { delay } }, origo: { link: { delay } }, ...proxies },
  } as Parameters<typeof startLinks>[0];
}

export async function measureDownloads(
  plan: Plan,
  print: (line: string) => void,
): Promise<{ rows: Row[]; hosts: Host[] }> {
  const links = await startLinks(scenarioOf(plan));
  try {
    const { fetcher, close } =
      plan.receiver === "node" ? nodeFetcher(links, plan) : browserFetcher(links, plan, plan.receiver);
    const rows: Row[] = [];
    const hosts: Host[] = [];
    for (const loss of plan.losses) {
      for (const { name } of links.scenario.hosts)
        if (name.startsWith("proxy")) await links.set(name, { up: { loss } });
      const watch = await watchHost(links);
      await links.begin();
      rows.push(...(await turns(plan, loss, fetcher, print)));
      hosts.push(await watch());
    }
    await close();
    return { rows, hosts };
  } finally {
    await links.close();
  }
}

async function turns(plan: Plan, loss: number, fetcher: Fetcher, print: (line: string) => void): Promise<Row[]> {
  const got = new Map<string, Answer[]>();
  // The first visit brings the body to the proxies and opens what is to be warm; it does not count.
  for (let run = -1; run < plan.runs; run++) {
    for (const transport of plan.transports) {
      for (const state of run < 0 ? (["warm"] as const) : plan.states) {
        const answer = await fetcher(transport, state);
        await new Promise((resolve) => setTimeout(resolve, BETWEEN_MS));
        const problem = problemOf(answer, plan, transport);
        if (problem) print(`  not counted: ${transport} ${state}: ${problem}`);
        else if (run >= 0) got.set(`${transport} ${state}`, [...(got.get(`${transport} ${state}`) ?? []), answer]);
      }
    }
  }
  return plan.transports.flatMap((transport) =>
    plan.states.flatMap((state) => {
      const answers = got.get(`${transport} ${state}`) ?? [];
      if (answers.length === 0) return [];
      const row = rowOf(plan, { transport, state, loss }, answers);
      print(
        `  ${plan.set} ${plan.receiver} ${transport} loss ${100 * loss} % ${state}: ` +
          `${row.linkShare.toFixed(3)} of the link, ${row.completionSec.toFixed(2)} s, first ` +
          `${row.firstPacketMs.toFixed(0)} ms, in vain ${row.inVain ?? "-"} + ${row.duplicate ?? "-"}`,
      );
      return [row];
    }),
  );
}

/** Why a download does not count: it failed, was not whole, or went over another transport. */
function problemOf({ problem, bytes, ms, record }: Answer, plan: Plan, transport: Contender): string | undefined {
  if (problem) return problem;
  if (bytes !== plan.bytes) return `got ${bytes} bytes, expected ${plan.bytes}`;
  const rate = (plan.set === "six" ? 6 : 1) * RATE_BYTES_PER_SEC;
  if ((1000 * bytes) / ms > rate)
    return `faster than its links: ${Math.round((1000 * bytes) / ms)} of ${rate} bytes a second`;
  if (HTTP.includes(transport)) return undefined;
  if (!record) return "no record";
  if (record.fallback) return `fell back: ${record.fallback.message}`;
  const other = record.proxies.find((proxy) => proxy.transport !== transport);
  return other ? `${other.name} was reached over ${other.transport ?? "nothing"}` : undefined;
}

function rowOf(
  { set, receiver, bytes }: Plan,
  key: Pick<Row, "transport" | "state" | "loss">,
  answers: readonly Answer[],
): Row {
  const proxies = set === "six" ? 6 : 1;
  const completionSec = median(answers.map(({ ms }) => ms)) / 1000;
  const records = answers.flatMap(({ record }) => record ?? []);
  const perProxy = (count: "late" | "duplicate"): number | null =>
    records.length === 0
      ? null
      : median(records.map((record) => record.proxies.reduce((sum, proxy) => sum + proxy[count], 0) / proxies));
  return {
    set,
    receiver,
    ...key,
    rateBytesPerSec: RATE_BYTES_PER_SEC,
    rttMs: set === "single" ? 40 : 50,
    bytes,
    proxies,
    runs: answers.length,
    linkShare: bytes / completionSec / (proxies * RATE_BYTES_PER_SEC),
    completionSec,
    firstPacketMs: median(answers.map(({ firstMs }) => firstMs)),
    inVain: perProxy("late"),
    duplicate: perProxy("duplicate"),
  };
}

function urlsOf(links: Links, bytes: number): { origin: string; proxied: (transport: Contender) => string } {
  const origin = `${links.env["ORIGIN_URL"]!}/__size/${bytes}.mp4`;
  const [first, second] = links.env["PROXY_URLS"]!.split(",");
  return {
    origin,
    proxied: (transport) =>
      `${(transport === "http-bbr" ? first : second)!}/v1/fetch?url=${encodeURIComponent(origin)}`,
  };
}

function nodeFetcher(links: Links, plan: Plan): { fetcher: Fetcher; close: () => Promise<void> } {
  const driver = startDriver<Order, Answer>(links, DRIVER);
  const urls = urlsOf(links, plan.bytes);
  const fetcher: Fetcher = (transport, state) =>
    driver.ask(
      HTTP.includes(transport)
        ? { kind: "http", url: urls.proxied(transport), state }
        : {
            kind: "get",
            url: urls.origin,
            transport: transport as "webtransport" | "webrtc" | "udp",
            state,
            connections: plan.set === "six" ? 6 : 1,
          },
    );
  return { fetcher, close: () => driver.close() };
}

/** One browser with the extension for each transport, and one without it for HTTP. */
function browserFetcher(
  links: Links,
  plan: Plan,
  browser: BrowserName,
): { fetcher: Fetcher; close: () => Promise<void> } {
  const driver = startDriver<Order, Answer>(links, DRIVER);
  const urls = urlsOf(links, plan.bytes);
  const [origin, connections] = [links.env["ORIGIN_URL"]!, plan.set === "six" ? 6 : 1];
  const fetcher: Fetcher = async (contender) => {
    const sinceMs = Date.now();
    if (HTTP.includes(contender))
      return driver.ask({
        kind: "browse",
        browser,
        url: urls.proxied(contender),
        origin,
        transport: undefined,
        connections,
      });
    const seen = await driver.ask({
      kind: "browse",
      browser,
      url: urls.origin,
      origin,
      transport: contender as "webtransport" | "webrtc",
      connections,
    });
    if (seen.problem !== undefined) return seen;
    const { record, problem } = await driver.ask({ kind: "record", sinceMs });
    return { ...seen, ...(record ? { record } : {}), ...(problem ? { problem } : {}) };
  };
  return { fetcher, close: () => driver.close() };
}
