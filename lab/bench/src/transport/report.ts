/** What a person reads: the figures to reach, and a table of each kind of measurement. Pure: text out. */
import { median } from "../kit/figures";
import { table } from "../kit/table";
import { figureTable } from "../kit/verdict";
import { crowdsOf, figuresOf, medianRunOf, ratioOf, secPerGbOf } from "./rows";
import type { Cost, Loopback, Results, Row, Sharing } from "./rows";

const number = (value: number): string => (Number.isFinite(value) ? value.toFixed(Math.abs(value) >= 20 ? 0 : 2) : "-");

/** `isPart`: only some parts were measured, so the other figures are left out. */
export function reportOf(results: Results, isPart: boolean): string {
  const { rows, loopback, costs, sharing } = results;
  return [
    ...(rows.length > 0 ? downloadLines(rows) : []),
    ...(loopback.length > 0 ? loopbackLines(loopback) : []),
    ...(costs.length > 0 ? costLines(costs) : []),
    ...(sharing.length > 0 ? sharingLines(sharing) : []),
    "Figures to reach:",
    figureTable(figuresOf(results).filter(({ got }) => !isPart || Number.isFinite(got))),
  ].join("\n\n");
}

/** What loopback.ts sends. */
export const LOOPBACK_MESSAGE_BYTES = 1100;

function downloadLines(rows: readonly Row[]): string[] {
  const head = [
    "links",
    "receiver",
    "transport",
    "loss",
    "state",
    "bytes",
    "runs",
    "share of the links",
    "seconds",
    "first packet, ms",
    "late a proxy",
    "duplicate a proxy",
  ];
  return ["Downloads:", table(head, rows.map(rowCells))];
}

function sharingLines(sharing: readonly Sharing[]): string[] {
  const head = [
    "ours",
    "over",
    "theirs",
    "queue, BDP",
    "seconds",
    "runs",
    "one over one, least",
    "median",
    "most",
    "a flow of ours, KB/s",
    "of theirs, KB/s",
    "of ours lost",
    "mean queue, BDP",
  ];
  return [
    "Beside TCP, on one bottleneck of 10 Mbit/s and 40 ms. Rates, losses and queue are those of the median run:",
    table(head, crowdsOf(sharing).map(sharingCells)),
  ];
}

function loopbackLines(loopback: readonly Loopback[]): string[] {
  const lines = (["webtransport", "webrtc", "http"] as const).map((transport) => {
    const runs = loopback.filter((each) => each.transport === transport);
    const rates = runs.map(({ mbPerSec }) => mbPerSec);
    return [
      transport,
      String(runs.length),
      ...[Math.min(...rates), median(rates), Math.max(...rates)].map((value) => value.toFixed(1)),
      median(runs.map(({ setUpMs }) => setUpMs)).toFixed(0),
      median(runs.map(({ busyCores }) => busyCores)).toFixed(1),
      median(runs.map(({ senderCores }) => senderCores)).toFixed(1),
    ];
  });
  return [
    "Into Chromium over loopback, messages of 1,100 bytes:",
    table(["over", "runs", "least MB/s", "median", "most", "set-up, ms", "cores busy", "of them the sender's"], lines),
  ];
}

function costLines(costs: readonly Cost[]): string[] {
  const lines = (["webtransport", "webrtc", "nginx"] as const).map((sender) => {
    const runs = costs.filter((each) => each.sender === sender);
    const spent = runs.map(secPerGbOf);
    const mbPerSec = median(runs.map(({ bytes, seconds }) => bytes / seconds / 1e6));
    return [
      sender === "nginx" ? "nginx, HTTP/2 and TLS" : `a proxy, ${sender}`,
      String(runs.length),
      mbPerSec.toFixed(1),
      ...[Math.min(...spent), median(spent), Math.max(...spent)].map((value) => value.toFixed(2)),
    ];
  });
  return [
    "Processor time of the sender at a steady rate over loopback to a Node client:",
    table(["sender", "runs", "MB/s", "least s per GB", "median", "most"], lines),
  ];
}

function rowCells({
  set,
  receiver,
  transport,
  loss,
  state,
  bytes,
  runs,
  linkShare,
  completionSec,
  firstPacketMs,
  inVain,
  duplicate,
}: Row): string[] {
  const count = (value: number | null): string => (value === null ? "-" : number(value));
  return [
    set === "six" ? "six, 50 ms" : "one, 40 ms",
    receiver,
    transport,
    `${100 * loss} %`,
    state,
    bytes.toLocaleString("en"),
    String(runs),
    linkShare.toFixed(3),
    completionSec.toFixed(2),
    firstPacketMs.toFixed(0),
    count(inVain),
    count(duplicate),
  ];
}

function sharingCells(runs: readonly [Sharing, ...Sharing[]]): string[] {
  const {
    transport,
    rivals,
    queueProducts,
    seconds,
    ourFlows,
    theirFlows,
    ourBytesPerSec,
    theirBytesPerSec,
    ourLossShare,
    queueMean,
  } = medianRunOf(runs);
  const ratios = runs.map(ratioOf);
  const rate = (bytesPerSec: number): string => (bytesPerSec / 1000).toFixed(0);
  const [over, lost] =
    transport === "cubic" ? ["none: Cubic in our place", "-"] : [transport, `${(100 * ourLossShare).toFixed(1)} %`];
  return [
    String(ourFlows),
    over,
    `${theirFlows} ${rivals}`,
    String(queueProducts),
    String(seconds),
    String(runs.length),
    ...[Math.min(...ratios), median(ratios), Math.max(...ratios)].map(number),
    rate(ourBytesPerSec),
    rate(theirBytesPerSec),
    lost,
    queueMean.toFixed(2),
  ];
}
