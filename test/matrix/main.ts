/**
 * `npm run test:matrix` plays every combination of browser, player and scenario against a local fleet, one browser at a
 * time, and prints a table at the end. A cell passes if the video reached its target, every recorded segment has the
 * file's bytes, manifests and keys came directly, and media came through proxies. The origin's log shows who asked it.
 * Origo's records show what proxies delivered: a proxy that has a file does not ask the origin again.
 *
 * node test/dist/matrix/main.js [--browser chromium|firefox] [--player NAME] [--scenario NAME[,NAME]...] [--short]
 *   [--times N]
 *
 * The exit status is 0 if every cell passed, 1 if a cell failed, and 2 for a bad option. The last line is
 * `N passed, N failed`.
 */
import { createHash } from "node:crypto";
import { parseArgs } from "node:util";
import type { Page } from "puppeteer-core";
import {
  formatTable,
  isByBrowser,
  openBrowser,
  recordsSince,
  samplePageState,
  segmentMismatch,
  startFleet,
  type AccessLogEntry,
  type BrowserName,
  type Fleet,
  type OpenBrowser,
  type PlayedSegment,
} from "@tributary/lab-stack";
import { PLAYERS, SCENARIOS, SHORT, applies } from "./cells";
import type { CellContext, Scenario } from "./cells";

const BROWSERS: readonly BrowserName[] = ["chromium", "firefox"];
/** A cell fails after this time. An idle machine needs far less. */
const CELL_MS_MAX = 60_000;
/** Clients send records in batches, a quarter of a second after the download. */
const RECORDS_MS_MAX = 5000;

interface Cell {
  browser: BrowserName;
  player: string;
  scenario: string;
}

interface Choice {
  cells: Cell[];
  /** Times that each cell is played. The cell fails if one of them fails. */
  times: number;
}

async function main(): Promise<number> {
  const choice = chosenCells();
  if (typeof choice === "string") {
    console.error(choice);
    return 2;
  }
  const { cells, times } = choice;
  const fleet = await startFleet({ proxyCount: 4, ports: "any" });
  const verdicts = new Map<Cell, string>();
  try {
    for (const browser of BROWSERS) {
      for (const isPrivate of [false, true]) {
        const own = cells.filter(
          (cell) => cell.browser === browser && (scenarioOf(cell).isPrivate === true) === isPrivate,
        );
        if (own.length > 0) await runIn(browser, isPrivate, Array<Cell[]>(times).fill(own).flat(), fleet, verdicts);
      }
    }
  } finally {
    await fleet.stop();
  }
  return report(cells, verdicts);
}

function chosenCells(): Choice | string {
  let chosen: { browser?: string; player?: string; scenario?: string; short?: boolean; times?: string };
  try {
    const option = { type: "string" } as const;
    chosen = parseArgs({
      options: { browser: option, player: option, scenario: option, short: { type: "boolean" }, times: option },
    }).values;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  const times = Number(chosen.times ?? 1);
  if (!Number.isInteger(times) || times < 1) return `--times must be a whole number of at least 1, got ${chosen.times}`;
  const all = BROWSERS.flatMap((browser) =>
    PLAYERS.flatMap((player) =>
      SCENARIOS.map((scenario): Cell => ({ browser, player: player.name, scenario: scenario.name })),
    ),
  );
  const cells = all.filter(({ browser, player, scenario }) => {
    const isAsked =
      (chosen.browser ?? browser) === browser &&
      (chosen.player ?? player) === player &&
      (chosen.scenario?.split(",") ?? [scenario]).includes(scenario);
    return (
      isAsked &&
      applies(player, scenario) &&
      (chosen.short !== true || SHORT.includes(`${browser} ${player} ${scenario}`))
    );
  });
  if (cells.length > 0) return { cells, times };
  const listed = (all: readonly { name: string }[]): string => all.map(({ name }) => name).join(", ");
  return `no cell matches; players: ${listed(PLAYERS)}; scenarios: ${listed(SCENARIOS)}`;
}

function scenarioOf({ scenario }: Cell): Scenario {
  const found = SCENARIOS.find(({ name }) => name === scenario);
  if (found === undefined) throw new Error(`no scenario ${scenario}`);
  return found;
}

async function runIn(
  browser: BrowserName,
  isPrivate: boolean,
  cells: readonly Cell[],
  fleet: Fleet,
  verdicts: Map<Cell, string>,
): Promise<void> {
  const open = await openBrowser({
    name: browser,
    headless: true,
    isPrivate,
    defaults: { origoUrl: fleet.origo.url, mode: "coded", connections: 4 },
  });
  try {
    for (const cell of cells) {
      const startedMs = Date.now();
      const verdict = await runCell(cell, open, fleet).catch(
        (error: unknown) => `FAIL ${error instanceof Error ? error.message : String(error)}`,
      );
      if (verdicts.get(cell)?.startsWith("FAIL") !== true) verdicts.set(cell, verdict);
      const seconds = ((Date.now() - startedMs) / 1000).toFixed(1);
      console.log(`${cell.browser} ${cell.player} ${cell.scenario}: ${verdict} (${seconds} s)`);
    }
  } finally {
    await open.close();
  }
}

async function runCell(cell: Cell, open: OpenBrowser, fleet: Fleet): Promise<string> {
  const player = PLAYERS.find(({ name }) => name === cell.player);
  const scenario = scenarioOf(cell);
  if (player === undefined) throw new Error(`no player ${cell.player}`);
  const startedMs = Date.now();
  const pages: Page[] = [];
  const context: CellContext = {
    browser: open.browser,
    browserName: cell.browser,
    url: `${fleet.sample.url}${scenario.path?.(player.path) ?? player.path}`,
    player,
    deadlineMs: startedMs + CELL_MS_MAX,
    newPage: async () => {
      const page = await open.newPage();
      // The origin's log would miss the files that an earlier cell left in the browser's cache.
      await page.setCacheEnabled(false);
      pages.push(page);
      return page;
    },
    update: () => open.update(),
    carriedSince: (sinceMs) => carriedSince(fleet, sinceMs),
  };
  try {
    await scenario.run(context);
    const states = await Promise.all(pages.map((page) => samplePageState(page).catch(() => undefined)));
    const carried = scenario.isPrivate === true ? 0 : await carriedSince(fleet, startedMs);
    const log = (await (await fetch(`${fleet.sample.url}/__log?since=${startedMs}`)).json()) as AccessLogEntry[];
    return judge(
      states.flatMap((state) => state ?? []),
      log,
      { carried, scenario, recordCount: (await recordsSince(fleet, startedMs)).length },
    );
  } finally {
    await Promise.all(pages.map((page) => page.close().catch(() => undefined)));
  }
}

/** Counts the downloads since `sinceMs` that proxies delivered bytes for, by Origo's records. Waits for the first. */
async function carriedSince(fleet: Fleet, sinceMs: number): Promise<number> {
  for (const deadlineMs = Date.now() + RECORDS_MS_MAX; ; await new Promise((resolve) => setTimeout(resolve, 100))) {
    const carried = (await recordsSince(fleet, sinceMs)).filter(({ proxies }) =>
      proxies.some(({ bytes }) => bytes > 0),
    ).length;
    if (carried > 0 || Date.now() > deadlineMs) return carried;
  }
}

interface Expectation {
  carried: number;
  recordCount: number;
  scenario: Scenario;
}

async function judge(
  states: readonly Awaited<ReturnType<typeof samplePageState>>[],
  log: readonly AccessLogEntry[],
  { carried, recordCount, scenario }: Expectation,
): Promise<string> {
  const faults = states.flatMap((state) => state.errors ?? []);
  for (const segment of states.flatMap((state) => state.segments ?? []))
    faults.push(...((await mismatch(segment)) ?? []));
  const isMedia = ({ path }: AccessLogEntry): boolean => /\.(m4s|mp4)(\?|$)/.test(path);
  const carriedWrongly = log.filter((entry) => /\.(m3u8|mpd|key|vtt)(\?|$)/.test(entry.path) && !isByBrowser(entry));
  if (carriedWrongly.length > 0) faults.push(`${carriedWrongly[0]?.path} went through a proxy`);
  const direct = log.filter((entry) => isMedia(entry) && isByBrowser(entry)).length;
  const isAskedByProxies = log.some((entry) => isMedia(entry) && !isByBrowser(entry));
  if (scenario.isPrivate === true ? direct > 0 && !isAskedByProxies : carried === 0)
    faults.push("no media came through the proxies");
  if (scenario.isPrivate === true && recordCount > 0) faults.push(`a private window sent ${recordCount} records`);
  if (scenario.isDirectAfter === true && direct === 0) faults.push("the page asked the origin for nothing itself");
  if (faults.length > 0) return `FAIL ${faults.slice(0, 3).join("; ")}`;
  return direct === 0 ? "ok" : `ok, ${direct} direct`;
}

/** Compares a segment with the sample's media file, or with the origin's answer if the origin makes the bytes. */
async function mismatch(segment: PlayedSegment): Promise<string[] | undefined> {
  if (new URL(segment.url).pathname.startsWith("/media/")) return [segmentMismatch(segment) ?? []].flat();
  const headers: Record<string, string> =
    segment.end === undefined ? {} : { Range: `bytes=${segment.start ?? 0}-${segment.end}` };
  const bytes = Buffer.from(await (await fetch(segment.url, { headers })).arrayBuffer());
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  return sha256 === segment.sha256
    ? undefined
    : [`${segment.url}: the SHA-256 is ${segment.sha256}, the origin's is ${sha256}`];
}

function report(cells: readonly Cell[], verdicts: ReadonlyMap<Cell, string>): number {
  const columns = [...new Set(cells.map(({ browser, player }) => `${browser} ${player}`))];
  const rows = [...new Set(cells.map(({ scenario }) => scenario))].map((scenario) => [
    scenario,
    ...columns.map((column) => {
      const cell = cells.find((each) => `${each.browser} ${each.player}` === column && each.scenario === scenario);
      return cell === undefined ? "-" : (verdicts.get(cell) ?? "FAIL").replace(/^FAIL.*/s, "FAIL");
    }),
  ]);
  console.log(`\n${formatTable([["", ...columns], ...rows])}\n`);
  const failed = cells.filter((cell) => verdicts.get(cell)?.startsWith("FAIL") !== false);
  for (const cell of failed)
    console.log(
      `to repeat: npm run test:matrix -- --browser ${cell.browser} --player ${cell.player} --scenario ${cell.scenario}`,
    );
  console.log(`${cells.length - failed.length} passed, ${failed.length} failed`);
  return failed.length === 0 ? 0 : 1;
}

main().then(
  (status) => process.exit(status),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
