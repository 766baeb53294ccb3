/**
 * Streams of ours and flows of the kernel's TCP through one bottleneck, 10 Mbit/s and 40 ms, which is the viewer's own
 * downlink; and streams of ours alone on a link that halves or loses. What each sent is counted by the emulator, per
 * host.
 */
import path from "node:path";
import type { ChildProcess } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { startLinks, type Links, type PipeSample } from "@tributary/lab-links";
import { exitOf, linesOf } from "../kit/driver";
import { watchHost, type Host } from "../kit/machine";
import type { Reaction, Sharing } from "./rows";

const STREAM = path.resolve(__dirname, "../../dist/transport/stream.js");
export const RATE_BYTES_PER_SEC = 1_250_000;
export const ROUND_TRIP_MS = 40;
const PRODUCT_BYTES = (RATE_BYTES_PER_SEC * ROUND_TRIP_MS) / 1000;
/** A sender's own link is no limit. It has a rate, because pipes without one keep no history. */
const SENDER_BYTES_PER_SEC = 125_000_000;
const TCP_PORT = 6000;
/** Time between the start of our flows and theirs, so short that neither has an empty link for long. */
const APART_MS = 300;

export interface Crowd {
  transport: Sharing["transport"];
  ours: number;
  theirs: readonly string[];
  queueProducts: number;
  loss?: number;
}

const oursName = (index: number): string => `ours${index}`;
const theirsName = (index: number): string => `theirs${index}`;

/** A host for each sender; the client's downlink is what they share. */
function startCrowd({ ours, theirs, queueProducts, loss = 0 }: Crowd): Promise<Links> {
  const server = { link: { delay: ROUND_TRIP_MS / 4, up: { rate: SENDER_BYTES_PER_SEC, queue: "100 ms" } } };
  return startLinks({
    hosts: {
      client: {
        link: {
          delay: ROUND_TRIP_MS / 4,
          down: { rate: RATE_BYTES_PER_SEC, queue: Math.round(queueProducts * PRODUCT_BYTES), loss },
        },
      },
      ...Object.fromEntries(Array.from({ length: ours }, (_, index) => [oursName(index), server])),
      ...Object.fromEntries(theirs.map((_, index) => [theirsName(index), server])),
    },
  });
}

async function startOurs(
  links: Links,
  transport: Exclude<Crowd["transport"], "cubic">,
  index: number,
  seconds: number,
): Promise<ChildProcess> {
  const host = oursName(index);
  const server = links.run(host, [process.execPath, STREAM, "serve", transport, links.address(host)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const address = await linesOf(server).next();
  return links.run("client", [process.execPath, STREAM, "take", transport, address, String(seconds)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
}

async function startTcp(
  links: Links,
  host: string,
  portOffset: number,
  congestion: string,
  seconds: number,
): Promise<ChildProcess> {
  const program = links.words("client")[0]!;
  const port = String(TCP_PORT + portOffset);
  const receiver = links.run("client", [program, "probe", "tcp-receive", port], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await linesOf(receiver).next();
  return links.run(host, [program, "probe", "tcp-send", links.address("client"), port, String(seconds), congestion], {
    stdio: ["ignore", "pipe", "inherit"],
  });
}

/** Bytes between two samples, per second, summed over hosts; samples of all pipes are taken at the same times. */
function ratesOf(pipes: readonly PipeSample[][]): number[] {
  const [first] = pipes;
  if (!first) return [];
  return first.slice(1).map((sample, at) => {
    const spanSec = (sample.atMs - first[at]!.atMs) / 1000;
    return pipes.reduce((sum, pipe) => sum + ((pipe[at + 1]?.outBytes ?? 0) - (pipe[at]?.outBytes ?? 0)), 0) / spanSec;
  });
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);

async function rates(links: Links, names: readonly string[]): Promise<number[]> {
  return ratesOf(await Promise.all(names.map((name) => links.samples(name, "up"))));
}

/** Shares count after a fifth of the time, so that the start does not count. */
export async function measureSharing(crowd: Crowd, seconds: number): Promise<{ sharing: Sharing; host: Host }> {
  const links = await startCrowd(crowd);
  try {
    const watch = await watchHost(links);
    await links.begin();
    const theirs = await Promise.all(
      crowd.theirs.map((congestion, index) => startTcp(links, theirsName(index), index, congestion, seconds)),
    );
    await pause(APART_MS);
    const taken = takeOurs(links, crowd, seconds);
    await Promise.all(theirs.map(exitOf));
    const host = await watch();
    const arrivedShare = arrivedShareOf(await taken);
    const queue = await links.samples("client", "down");
    const ours = await rates(
      links,
      Array.from({ length: crowd.ours }, (_, index) => oursName(index)),
    );
    const history = ours
      .map((rate, at) => ({
        atMs: queue[at + 1]?.atMs ?? 0,
        ours: rate,
        queue: (queue[at + 1]?.queueBytesMax ?? 0) / PRODUCT_BYTES,
      }))
      .filter(({ atMs }) => atMs >= 0 && atMs < seconds * 1000);
    // On a busy machine a sender of ours may take seconds to start: what counts begins when it sends in earnest.
    const startMs = history.find(({ ours: rate }) => rate > RATE_BYTES_PER_SEC / 20)?.atMs ?? Infinity;
    const fromMs = startMs + seconds * 200;
    const settled = history.filter(({ atMs }) => atMs > fromMs);
    if (settled.length < history.length / 2)
      throw new Error(
        `ours began after ${(startMs / 1000).toFixed(1)} s of ${seconds}: the rest is too short to count`,
      );
    const down = queue.filter(({ atMs }) => atMs > fromMs && atMs < seconds * 1000);
    const allBytesPerSec =
      ((down.at(-1)?.outBytes ?? 0) - (down[0]?.outBytes ?? 0)) /
      (((down.at(-1)?.atMs ?? 0) - (down[0]?.atMs ?? 0)) / 1000);
    const oursTogether = arrivedShare * mean(settled.map((each) => each.ours));
    const [ourBytesPerSec, theirBytesPerSec] = [
      oursTogether / crowd.ours,
      (allBytesPerSec - oursTogether) / crowd.theirs.length,
    ];
    const queues = settled.map((each) => each.queue);
    return {
      host,
      sharing: {
        transport: crowd.transport,
        rivals: [...new Set(crowd.theirs)].join(" and "),
        queueProducts: crowd.queueProducts,
        seconds,
        ourFlows: crowd.ours,
        theirFlows: crowd.theirs.length,
        ourBytesPerSec,
        theirBytesPerSec,
        ourLossShare: 1 - arrivedShare,
        queueMost: Math.max(...queues),
        queueMean: mean(queues),
      },
    };
  } finally {
    await links.close();
  }
}

/** Starts our flows and waits for what they received. Packets of Cubic in their place count as arrived even if lost. */
function takeOurs(links: Links, { transport, ours, theirs }: Crowd, seconds: number): Promise<Taken[]> {
  return Promise.all(
    Array.from({ length: ours }, async (_, index) => {
      if (transport !== "cubic")
        return JSON.parse(await linesOf(await startOurs(links, transport, index, seconds)).next()) as Taken;
      await exitOf(await startTcp(links, oursName(index), theirs.length + index, transport, seconds));
      return { messages: 1, sent: 1 };
    }),
  );
}

/** What one flow received, and how much was sent until the newest packet of it. */
interface Taken {
  messages: number;
  sent: number;
}

function arrivedShareOf(taken: readonly Taken[]): number {
  const sum = (of: keyof Taken): number => taken.reduce((all, each) => all + each[of], 0);
  return sum("messages") / Math.max(1, sum("sent"));
}

export interface Alone {
  queueProducts: number;
  loss: number;
  /** The link carries half from this time on. */
  halvesAtMs?: number;
  /** Losses of the link, one after another, for equal parts of the time. */
  lossSteps?: readonly number[];
}

/** The changes of the link, and when. */
function changesOf(
  { halvesAtMs, lossSteps = [] }: Alone,
  seconds: number,
): { atMs: number; down: { rate?: number; loss?: number } }[] {
  const steps = lossSteps.map((loss, index) => ({
    atMs: ((index + 1) * seconds * 1000) / (lossSteps.length + 1),
    down: { loss },
  }));
  return halvesAtMs === undefined ? steps : [...steps, { atMs: halvesAtMs, down: { rate: RATE_BYTES_PER_SEC / 2 } }];
}

export async function measureAlone(
  what: string,
  alone: Alone,
  seconds: number,
): Promise<{ reaction: Reaction; host: Host }> {
  const { queueProducts, loss, halvesAtMs, lossSteps } = alone;
  const links = await startCrowd({ transport: "webtransport", ours: 1, theirs: [], queueProducts, loss });
  try {
    const watch = await watchHost(links);
    const taker = await startOurs(links, "webtransport", 0, seconds);
    await links.begin();
    const timers = changesOf(alone, seconds).map(({ atMs, down }) =>
      setTimeout(() => void links.set("client", { down }), atMs),
    );
    await exitOf(taker);
    timers.forEach(clearTimeout);
    const host = await watch();
    const queue = await links.samples("client", "down");
    const [entering, leaving] = [await rates(links, [oursName(0)]), ratesOf([queue])];
    const history = entering
      .map((rate, at) => ({
        atMs: queue[at + 1]?.atMs ?? 0,
        ours: rate,
        queue: (queue[at + 1]?.queueBytesMax ?? 0) / PRODUCT_BYTES,
      }))
      .filter(({ atMs }) => atMs >= 0 && atMs < seconds * 1000 - 200);
    const settled = history.filter(({ atMs }) => atMs > 2000 && (halvesAtMs === undefined || atMs < halvesAtMs));
    const delivered = mean(
      leaving.filter(
        (_, at) =>
          (queue[at + 1]?.atMs ?? 0) > 2000 && (queue[at + 1]?.atMs ?? 0) < (halvesAtMs ?? seconds * 1000 - 200),
      ),
    );
    return {
      host,
      reaction: {
        what,
        share: delivered / (RATE_BYTES_PER_SEC * (1 - (lossSteps ? mean([loss, ...lossSteps]) : loss))),
        queueMean: mean(settled.map((each) => each.queue)),
        queueMost: Math.max(...settled.map((each) => each.queue)),
        backOffRounds: halvesAtMs === undefined ? null : backOffRounds(history, halvesAtMs),
      },
    };
  } finally {
    await links.close();
  }
}

/** Round trips until a sample of what enters is at most 110 % of the halved link's rate. */
function backOffRounds(history: readonly { atMs: number; ours: number }[], halvesAtMs: number): number {
  const fits = history.find(({ atMs, ours }) => atMs > halvesAtMs + 50 && ours <= 1.1 * (RATE_BYTES_PER_SEC / 2));
  return fits ? (fits.atMs - 50 - halvesAtMs) / ROUND_TRIP_MS : Infinity;
}
