/**
 * Runs the campaign: the order of visits, the file of downloads, and the progress. Several sets of links are up at
 * once, with as many downloads as this machine's cores carry. The boxes of a set take turns in random order, so that
 * other load reaches all of them alike. Each download is written to downloads.jsonl when it ends, and a campaign that
 * was stopped continues from there.
 */
import os from "node:os";
import { startLinks } from "@tributary/lab-links";
import { groupBy } from "../kit/figures";
import { appendSamples } from "../kit/samples";
import { scenarioOf } from "./boxes";
import type { Box } from "./boxes";
import { visitsByBox } from "./rows";
import type { Sample } from "./rows";
import { Stack } from "./stack";

export interface CampaignOptions {
  boxes: readonly Box[];
  /** Where the downloads are kept (kit/samples.ts), and those that are there already. New ones are added to both. */
  file: string;
  samples: Sample[];
  /** The links come up once for each of these shares of the visits. */
  passes: readonly number[];
  stopped: () => boolean;
  onProgress: (progress: Progress) => void;
}

export interface Progress {
  visitsDone: number;
  visitsTotal: number;
  secondsLeft: number;
  /** Names of the sets that are up. */
  links: readonly string[];
}

/** Seconds until links, origin, Origo, proxies and client are ready. */
const BRING_UP_SEC = 8;
/** Wire bytes that one core carries with time to spare, with the programs at both ends and the emulator on it. */
const CORE_BYTES_PER_SEC = 3_500_000;
/**
 * Fewer downloads run at once if the idle share is below the first value (they would count half, see rows.ts), and more
 * if it is above the second.
 */
const IDLE_SHARES = [0.25, 0.4] as const;
/** Sets mostly wait: for a slow link, or until connections are closed. */
const SETS_PER_CORE = 3;
/**
 * Share of the room that a start takes, because starting programs makes every emulator late. Downloads over one slow
 * link, which can take minutes, do not suffer from that.
 */
const START_SHARE = 0.8;
/** A download with a packet trace takes fifty times the space. */
const TRACES_KEPT = 5;

/** Resolves to the failures. Links that failed are left until the next pass. */
export async function runCampaign({
  boxes,
  file,
  samples,
  passes,
  stopped,
  onProgress,
}: CampaignOptions): Promise<string[]> {
  const done = visitsByBox(samples);
  const next = new Map<string, number>();
  for (const { box, visit } of samples) next.set(box, Math.max(next.get(box) ?? 0, visit + 1));
  const [startedMs, firstSecondsLeft] = [performance.now(), secondsLeft(boxes, done)];
  const up = new Set<readonly Box[]>();
  const failures: string[] = [];
  const room = new Room(os.cpus().length * CORE_BYTES_PER_SEC);
  for (const share of passes) {
    const isOpen = (box: Box): boolean => (done.get(box.id) ?? 0) < Math.ceil(box.visits * share);
    const longestLast = setsOf(boxes.filter(isOpen)).sort((a, b) => secondsLeft(a, done) - secondsLeft(b, done));
    const visitSets = async (): Promise<void> => {
      for (let set = longestLast.pop(); set && !stopped(); set = longestLast.pop()) await visitAll(set, isOpen);
    };
    await Promise.all(Array.from({ length: SETS_PER_CORE * os.cpus().length }, visitSets));
  }
  return failures;

  async function visitAll(own: readonly Box[], isOpen: (box: Box) => boolean): Promise<void> {
    const spec = own[0]!.links;
    let stack: Stack | undefined;
    up.add(own);
    report();
    try {
      const links = await room.hold(START_SHARE * room.size, () => startLinks(scenarioOf(spec)));
      const set = (stack = new Stack(links, spec));
      await room.hold(Math.max(...own.map(loadOf)), () => set.prepare(own));
      for (let open = own; open.length > 0; open = open.filter(isOpen)) {
        for (const box of shuffled(open)) {
          if (stopped()) return;
          const visit = next.get(box.id) ?? 0;
          const samplesOf = await set.visit(box, visit, (downloads) => room.hold(loadOf(box), downloads));
          const taken = samplesOf.map(({ trace, ...sample }) => ({
            ...sample,
            ...(trace && visit < TRACES_KEPT ? { trace } : {}),
          }));
          if (stopped()) return;
          samples.push(...taken);
          appendSamples(file, taken);
          next.set(box.id, visit + 1);
          done.set(box.id, (done.get(box.id) ?? 0) + (visitsByBox(taken).get(box.id) ?? 0));
          room.adjust(Math.min(...taken.map(({ idleShare }) => idleShare)));
          report();
        }
      }
    } catch (error) {
      if (!stopped()) failures.push(`${spec.id}: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      up.delete(own);
      await stack?.close();
    }
  }

  function report(): void {
    const left = secondsLeft(boxes, done);
    const pace = left < firstSecondsLeft ? (performance.now() - startedMs) / 1000 / (firstSecondsLeft - left) : 1;
    onProgress({
      visitsDone: visitsDone(boxes, done),
      visitsTotal: boxes.reduce((sum, { visits }) => sum + visits, 0),
      secondsLeft: pace * left,
      links: [...new Set([...up].map(([box]) => box!.links.id))],
    });
  }
}

/** Load of a download on the machine, in bytes a second. A browser doubles it. A mode without packets halves it. */
function loadOf({ mode, runner, transport, connections, links: { ratesKB } }: Box): number {
  const used = mode === "direct" || mode === "direct-http2" ? ratesKB.slice(0, 1) : ratesKB.slice(0, connections);
  return (runner === "chromium" ? 2000 : transport ? 1000 : 500) * used.reduce((sum, rate) => sum + rate, 0);
}

/** Room for work with a weight. Work is let in in order. Work that is too heavy for the room runs alone. */
export class Room {
  readonly #waiting: { weight: number; enter: () => void }[] = [];
  #used = 0;

  size: number;

  readonly #expected: number;

  constructor(expected: number) {
    this.#expected = expected;

    this.size = expected;
  }

  async hold<T>(weight: number, work: () => Promise<T>): Promise<T> {
    await new Promise<void>((enter) => {
      this.#waiting.push({ weight, enter });
      this.#admit();
    });
    try {
      return await work();
    } finally {
      this.#used -= weight;
      this.#admit();
    }
  }

  /** Follows the machine's idle share, because other machines may share its processors. */
  adjust(idleShare: number): void {
    if (idleShare < IDLE_SHARES[0]) this.size = Math.max(0.98 * this.size, this.#expected / 2);
    if (idleShare > IDLE_SHARES[1]) this.size = Math.min(1.01 * this.size, 2 * this.#expected);
  }

  #admit(): void {
    for (
      let first = this.#waiting[0];
      first && (this.#used === 0 || this.#used + first.weight <= this.size);
      first = this.#waiting[0]
    ) {
      this.#waiting.shift();
      this.#used += first.weight;
      first.enter();
    }
  }
}

/** Counts the planned visits that are done. `done`: all visits by box. */
export const visitsDone = (boxes: readonly Box[], done: ReadonlyMap<string, number>): number =>
  Math.floor(boxes.reduce((sum, { id, visits }) => sum + Math.min(visits, done.get(id) ?? 0), 0));

/**
 * Boxes of one set take turns: they share links, figure and chunk. One set of all boxes on the paper's links would take
 * hours longer than every other set.
 */
export const setsOf = (boxes: readonly Box[]): Box[][] => [
  ...groupBy(boxes, ({ figures, links, chunkBytes }) => [figures[0], links.id, chunkBytes].join()).values(),
];

function shuffled<T>(items: readonly T[]): T[] {
  const result = [...items];
  for (let last = result.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1));
    [result[last], result[other]] = [result[other]!, result[last]!];
  }
  return result;
}

/** On an idle machine, one set of links at a time. */
const secondsLeft = (boxes: readonly Box[], done: ReadonlyMap<string, number>): number =>
  boxes.reduce((sum, { id, visits, expectedSec }) => sum + Math.max(0, visits - (done.get(id) ?? 0)) * expectedSec, 0);

/** Expected seconds of the whole on an idle machine, one set of links at a time. */
export function expectedSeconds(boxes: readonly Box[], passes: readonly number[]): number {
  return (
    boxes.reduce((sum, box) => sum + box.visits * box.expectedSec, 0) +
    passes.length * BRING_UP_SEC * setsOf(boxes).length
  );
}
