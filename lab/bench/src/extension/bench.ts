/**
 * `npm run bench -- extension`: what the extension costs and changes, in real browsers. Prints the figures to reach
 * beside what was measured; exit status 0 measured, 1 could not measure, 2 bad option.
 *
 *     npm run bench -- extension [--quick] [--row PART] [--soak MINUTES] [--json FILE] [--docs]
 *
 *     --quick         one run of each, about five minutes; without it about twelve
 *     --row PART      only the parts whose name contains PART: estimates, path, idle, memory, scripts
 *     --soak MINUTES  also, or with `--row soak` only, a live stream for so long while proxies die and come back
 * --json FILE     the rows as an array; rows of an earlier FILE that are not measured now stay in it, and are shown and
 * documented
 *     --docs          writes the section of docs/measurements.md
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { markdownTable, writeSection } from "@tributary/lab-stack";
import { machineText, watchIdleShare } from "../machine";
import { PARTS } from "./parts";
import type { Row } from "./play";
import { soak } from "./soak";

const USAGE = "usage: npm run bench -- extension [--quick] [--row PART] [--soak MINUTES] [--json FILE] [--docs]";

interface Options {
  quick: boolean;
  docs: boolean;
  row: string;
  soak: number;
  json: string | undefined;
}

function optionsOf(words: string[]): Options | string {
  try {
    const flag = { type: "boolean", default: false } as const;
    const { values } = parseArgs({
      args: words,
      options: {
        quick: flag,
        docs: flag,
        row: { type: "string", default: "" },
        soak: { type: "string", default: "0" },
        json: { type: "string" },
      },
    });
    const minutes = Number(values.soak);
    if (!(minutes >= 0)) return `--soak must be a number of minutes, got ${values.soak}`;
    return {
      ...values,
      soak: minutes,
      json: values.json && path.resolve(process.env["INIT_CWD"] ?? process.cwd(), values.json),
    };
  } catch (error) {
    return (error as Error).message;
  }
}

async function measure({ quick, row, soak: minutes }: Options, failures: string[]): Promise<Row[]> {
  const rows: Row[] = [];
  const parts = PARTS.filter(({ name }) => name.includes(row)).map(({ name, run }) => ({
    name,
    run: () => run(quick),
  }));
  if (minutes > 0 && "soak".includes(row)) parts.push({ name: "soak", run: () => soak(minutes, console.log) });
  for (const { name, run } of parts) {
    const idleShare = watchIdleShare();
    console.log(name);
    const measured = await run().catch((error: unknown) => {
      failures.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
      console.error(`  could not be measured: ${failures.at(-1)}`);
      return [];
    });
    const busy = `processors busy ${Math.round(100 * (1 - idleShare()))} %`;
    rows.push(...measured.map((each) => ({ ...each, note: `${each.note}; ${busy}` })));
  }
  return rows;
}

/** `rows`, and of the earlier ones those of which there is none now. */
function withEarlier(rows: readonly Row[], file: string | undefined): Row[] {
  const earlier = file !== undefined && existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Row[]) : [];
  const now = new Map(rows.map((row) => [row.what, row]));
  return [
    ...earlier.map((row) => now.get(row.what) ?? row),
    ...rows.filter(({ what }) => !earlier.some((row) => row.what === what)),
  ];
}

function cellsOf({ what, got, unit, limit, note }: Row): string[] {
  const verdict = limit === undefined ? "" : got <= limit ? "met" : "**not met**";
  return [
    what,
    `${Number.isInteger(got) ? got : got.toFixed(1)}${unit}`,
    limit === undefined ? "" : `at most ${limit}`,
    verdict,
    note,
  ];
}

function markdownOf(rows: readonly Row[], command: string): string {
  return [
    "## Extension",
    `Made by \`${command}\` on ${new Date().toISOString().slice(0, 10)}: ${machineText()}. Real Chromium, four proxies on the same machine, medians.`,
    markdownTable(["what", "got", "to reach", "", "how"], rows.map(cellsOf)),
  ].join("\n\n");
}

async function main(): Promise<number> {
  const options = optionsOf(process.argv.slice(2));
  if (typeof options === "string") {
    console.error(`${USAGE}; ${options}`);
    return 2;
  }
  const failures: string[] = [];
  const rows = withEarlier(await measure(options, failures), options.json);
  for (const row of rows) console.log(cellsOf(row).join("  "));
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(rows, null, 1)}\n`);
  if (options.docs) {
    const command = [
      "npm run bench -- extension",
      options.quick && "--quick",
      options.soak > 0 && `--soak ${options.soak}`,
      "--docs",
    ]
      .filter(Boolean)
      .join(" ");
    writeSection("extension", command, markdownOf(rows, command));
  }
  return failures.length > 0 ? 1 : 0;
}

void main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
