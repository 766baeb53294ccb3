/**
 * The campaign: which box is visited when, what is kept on disk, and how far it is. Links come up one set at a time, and while
 * they are up their boxes take turns in random order, so that what else the machine does reaches all alike. Each download is a
 * line of DIR/downloads.jsonl as soon as it is over: a campaign that was stopped goes on from there.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import type { Box, LinksSpec } from "./boxes";
import type { Sample } from "./rows";
import { startStack } from "./stack";
import type { Stack } from "./stack";

export interface CampaignOptions {
  boxes: readonly Box[];
  /** Where the downloads are kept. */
  folder: string;
  /** How often the links come up, and which shares of the visits are done by then. */
  passes: readonly number[];
  stopped: () => boolean;
  onProgress: (progress: Progress) => void;
}

export interface Progress {
  visitsDone: number;
  visitsTotal: number;
  secondsLeft: number;
  links: string;
}

/** Links, origin, Origo, proxies and client, until all are ready. */
const BRING_UP_SEC = 8;

/** All samples there are when it ends, or is stopped. */
export async function runCampaign({ boxes, folder, passes, stopped, onProgress }: CampaignOptions): Promise<Sample[]> {
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, "downloads.jsonl");
  const samples = readSamples(file);
  const done = new Map<string, number>();
  for (const { box, visit } of samples) done.set(box, Math.max(done.get(box) ?? 0, visit + 1));
  const clock = new Clock(boxes, done);
  for (const share of passes) {
    const isOpen = (box: Box): boolean => (done.get(box.id) ?? 0) < Math.ceil(box.visits * share);
    for (const [spec, own] of shuffled([...byLinks(boxes)])) {
      if (!own.some(isOpen) || stopped()) continue;
      onProgress(clock.progress(spec.id));
      await visitAll(spec, own.filter(isOpen), isOpen);
    }
  }
  return samples;

  async function visitAll(spec: LinksSpec, own: readonly Box[], isOpen: (box: Box) => boolean): Promise<void> {
    let stack: Stack | undefined;
    try {
      stack = await startStack(spec, own);
      for (let open = own; open.length > 0; open = open.filter(isOpen)) {
        for (const box of shuffled(open)) {
          if (stopped()) return;
          const startedMs = performance.now();
          const visit = done.get(box.id) ?? 0;
          const taken = await stack.visit(box, visit);
          if (stopped()) return;
          samples.push(...taken);
          appendFileSync(file, taken.map((sample) => `${JSON.stringify(sample)}\n`).join(""));
          done.set(box.id, visit + 1);
          clock.took(box, (performance.now() - startedMs) / 1000);
          onProgress(clock.progress(spec.id));
        }
      }
    } catch (error) {
      if (!stopped()) throw error;
    } finally {
      await stack?.close();
    }
  }
}

export function byLinks(boxes: readonly Box[]): Map<LinksSpec, Box[]> {
  const byId = new Map<string, Box[]>();
  for (const box of boxes) byId.set(box.links.id, [...(byId.get(box.links.id) ?? []), box]);
  return new Map([...byId.values()].map((own) => [own[0]!.links, own]));
}

/** A line that was cut short when the machine went down is left out. */
function readSamples(file: string): Sample[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8").split("\n").flatMap((line) => {
    try {
      return [JSON.parse(line) as Sample];
    } catch {
      return [];
    }
  });
}

function shuffled<T>(items: readonly T[]): T[] {
  const result = [...items];
  for (let last = result.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1));
    [result[last], result[other]] = [result[other]!, result[last]!];
  }
  return result;
}

/** The time left: what the boxes are expected to take, corrected by what they took so far. */
class Clock {
  private expected = 0;
  private actual = 0;
  private done = 0;

  constructor(private readonly boxes: readonly Box[], private readonly visits: Map<string, number>) {
    for (const count of visits.values()) this.done += count;
  }

  took(box: Box, seconds: number): void {
    this.expected += box.expectedSec;
    this.actual += seconds;
    this.done++;
  }

  progress(links: string): Progress {
    const factor = this.expected > 0 ? this.actual / this.expected : 1;
    const left = (box: Box): number => Math.max(0, box.visits - (this.visits.get(box.id) ?? 0));
    const secondsLeft = this.boxes.reduce((sum, box) => sum + left(box) * box.expectedSec * factor, 0) + BRING_UP_SEC * byLinks(this.boxes.filter((box) => left(box) > 0)).size;
    return { visitsDone: this.done, visitsTotal: this.boxes.reduce((sum, { visits }) => sum + visits, 0), secondsLeft, links };
  }
}

/** Seconds that the whole is expected to take on an idle machine. */
export function expectedSeconds(boxes: readonly Box[], passes: readonly number[]): number {
  return boxes.reduce((sum, box) => sum + box.visits * box.expectedSec, 0) + passes.length * BRING_UP_SEC * byLinks(boxes).size;
}
