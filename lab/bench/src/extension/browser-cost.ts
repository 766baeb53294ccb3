/**
 * What a browser costs: memory of its processes, time of the extension's scripts at document start, contexts of the
 * extension.
 */
import { readFileSync, readdirSync } from "node:fs";
import type { Browser, Page } from "puppeteer-core";

/**
 * Proportional set size of the browser and all its children, or of its extensions' processes alone, in bytes: shared
 * pages count once.
 */
export function memoryBytes(browser: Browser, of: "all" | "extensions" = "all"): number {
  const pid = browser.process()?.pid;
  if (pid === undefined) return NaN;
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc").filter((each) => /^\d+$/.test(each))) {
    const stat = readOrEmpty(`/proc/${name}/stat`);
    parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]));
  }
  const isOurs = (each: number | undefined): boolean =>
    each === pid || (each !== undefined && parents.has(each) && isOurs(parents.get(each)));
  const isWanted = (each: number): boolean =>
    isOurs(each) && (of === "all" || readOrEmpty(`/proc/${each}/cmdline`).includes("--extension-process"));
  return [...parents.keys()].filter(isWanted).reduce((sum, each) => sum + pssBytes(each), 0);
}

function pssBytes(pid: number): number {
  return 1024 * Number(/^Pss:\s+(\d+) kB$/m.exec(readOrEmpty(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0);
}

function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

interface TraceEvent {
  name: string;
  dur?: number;
  args?: { data?: { url?: string }; fileName?: string };
}

/** Milliseconds that the extension's scripts took to compile and run while `url` was loaded. */
export async function scriptMs(page: Page, url: string): Promise<number> {
  await page.tracing.start({ categories: ["devtools.timeline", "v8", "disabled-by-default-v8.compile"] });
  await page.goto(url, { waitUntil: "load" });
  const trace = await page.tracing.stop();
  const { traceEvents } = JSON.parse(Buffer.from(trace ?? new Uint8Array()).toString()) as {
    traceEvents: TraceEvent[];
  };
  const isOurs = ({ args }: TraceEvent): boolean =>
    /^chrome-extension:.*\/(?:content|page)\.js/.test(args?.data?.url ?? args?.fileName ?? "");
  const ours = traceEvents.filter((event) => ["EvaluateScript", "v8.compile"].includes(event.name) && isOurs(event));
  if (ours.length === 0) throw new Error("the trace names no script of the extension");
  return ours.reduce((sum, { dur = 0 }) => sum + dur, 0) / 1000;
}

/** Asks the extension's service worker for a value. */
export async function askWorker<Value>(browser: Browser, expression: string): Promise<Value> {
  const target = await browser.waitForTarget((candidate) => candidate.type() === "service_worker");
  return (await (await target.worker())?.evaluate(expression)) as Value;
}
