/**
 * The figures and rows as text: for a terminal, and as the section of docs/measurements.md. Pure but for the machine's
 * name.
 */
import { markdownTable } from "@tributary/lab-stack";
import { machineText } from "../machine";
import { median } from "../statistics";
import { crowdsOf, medianRunOf, ratioOf, secPerGbOf, verdictOf } from "./rows";
import type { Cost, Figure, Loopback, Results, Row, Sharing } from "./rows";

const number = (value: number): string => (Number.isFinite(value) ? value.toFixed(Math.abs(value) >= 20 ? 0 : 2) : "-");
const limit = ({ better }: Figure, value: number): string =>
  better === "nearOne" ? `${number(1 / value)} .. ${value}` : String(value);

export function tableOf(figures: readonly Figure[]): string {
  const lines = figures.map((figure) => [
    figure.what,
    `${number(figure.got)}${figure.unit}`,
    limit(figure, figure.floor),
    limit(figure, figure.aim),
    verdictOf(figure),
  ]);
  const all = [["what", "got", "floor", "aim", ""], ...lines];
  const widths = all[0]!.map((_, column) => Math.max(...all.map((line) => line[column]!.length)));
  return all
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** What loopback.ts sends. */
export const LOOPBACK_MESSAGE_BYTES = 1100;

export interface Section {
  results: Results;
  figures: readonly Figure[];
  command: string;
  /** Undefined where nothing went over links. */
  machine: string | undefined;
  failures: readonly string[];
  picture: string | undefined;
  /** Of the bench; empty: all of it. */
  part: string;
}

export function markdownOf({ results, figures, command, machine, failures, picture, part }: Section): string {
  const measured = figures.filter(({ got }) => Number.isFinite(got));
  const missing = figures.filter(({ got }) => !Number.isFinite(got)).map(({ what }) => what);
  return [
    part ? `### Transport: ${part}` : "## Transport",
    `Made by \`${command}\` on ${new Date().toISOString().slice(0, 10)}: ${machineText()}. Transports in turns, medians.${machine ? " The product's programs over `lab/links`. Shares of a link count bytes of the body from the asking to the last byte against whole IP packets: about 0.94 is all there is." : ""}`,
    ...(machine ? [`M${machine.slice(1)}.`] : []),
    markdownTable(
      ["what", "got", "floor", "aim", ""],
      measured.map((figure) => [
        figure.what,
        `${number(figure.got)}${figure.unit}`,
        limit(figure, figure.floor),
        limit(figure, figure.aim),
        verdictOf(figure),
      ]),
    ),
    ...(missing.length > 0 && !part ? [`Not measured in this run: ${missing.join("; ")}.`] : []),
    ...(failures.length > 0 ? [`Parts that failed: ${failures.join("; ")}.`] : []),
    ...(results.rows.length > 0 ? downloadLines(results.rows) : []),
    ...(results.loopback.length > 0 ? loopbackLines(results.loopback) : []),
    ...(results.costs.length > 0 ? costLines(results.costs) : []),
    ...(results.sharing.length > 0 ? sharingLines(results.sharing) : []),
    ...(picture ? [`![Rates of ours and of TCP over time, and the queue](${picture})`] : []),
    "",
  ].join("\n\n");
}

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
  return ["Downloads:", markdownTable(head, rows.map(rowCells))];
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
    "Beside TCP, one bottleneck of 10 Mbit/s and 40 ms, the viewer's downlink; what arrived of each, from a fifth of the time after the start of ours. Rates, losses and queue are those of the run with the median:",
    markdownTable(head, crowdsOf(sharing).map(sharingCells)),
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
    "Into Chromium over loopback, sender and browser on this machine's processors together; messages of 1,100 bytes over WebTransport into a Worker and over a data channel into a page, beside a body without end over HTTP/1.1 into a Worker:",
    markdownTable(
      ["over", "runs", "least MB/s", "median", "most", "set-up, ms", "cores busy", "of them the sender's"],
      lines,
    ),
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
    "Processor time of the sender, user and system, all its threads, at a steady rate over loopback to a Node client; bodies of 16 MB from memory:",
    markdownTable(["sender", "runs", "MB/s", "least s per GB", "median", "most"], lines),
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
