/** A stretch of measurements on one machine, with one state of the code. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { repoRoot } from "@tributary/lab-stack";
import { machineText } from "./machine";

export interface Sitting {
  /** YYYY-MM-DD. */
  date: string;
  commit: string;
  machine: string;
}

export function newSitting(): Sitting {
  return { date: new Date().toISOString().slice(0, 10), commit: commitOf(), machine: machineText() };
}

function commitOf(): string {
  if (!existsSync(path.join(repoRoot, ".git"))) return "unknown";
  const git = (...words: string[]): string => execFileSync("git", words, { cwd: repoRoot, encoding: "utf8" }).trim();
  const isChanged = git("status", "--porcelain", "--", ":!docs", ":!lab/bench/data") !== "";
  return git("rev-parse", "--short", "HEAD") + (isChanged ? " with local changes" : "");
}

/** One line: the days, and each machine with its share of what was measured. `counts`: as many as `sittings`. */
export function sittingsText(sittings: readonly Sitting[], counts: readonly number[]): string {
  const days = sittings.map(({ date }) => date).sort();
  const byMachine = new Map<string, number>();
  sittings.forEach(({ machine }, index) => {
    const short = machine.split(", Linux")[0]!;
    byMachine.set(short, (byMachine.get(short) ?? 0) + counts[index]!);
  });
  const total = [...byMachine.values()].reduce((all, count) => all + count, 0);
  const machines = [...byMachine].map(([machine, count]) =>
    byMachine.size > 1 ? `${machine} (${((100 * count) / total).toFixed(0)} %)` : machine,
  );
  return [[...new Set([days[0], days.at(-1)])].join(" to "), ...machines].join(", ");
}
