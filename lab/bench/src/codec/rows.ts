/** One row of the bench's JSON for each case. */
import { opOf, runtimeOf, type Op, type Request, type Runtime } from "./cases";
import { median } from "../kit/figures";
import { outputBytesOf, type GroupSamples, type Measured } from "./samples";

export interface Row {
  readonly op: Op;
  /** Our engine, or the rival's code path (`-`: it has one). */
  readonly engine: string;
  /** null: ours. */
  readonly rival: string | null;
  readonly runtime: Runtime;
  readonly g: number;
  readonly symbolBytes: number;
  /** Symbols that one operation produces. */
  readonly outputs: number;
  readonly outputBytesPerSec: number;
  /** Output bytes times g, a second. This is no measure of work for codes that do not multiply by a dense matrix. */
  readonly gfBytesPerSec: number;
  /** What exactly was timed: `op`, or one of its variants (cases.ts). */
  readonly request: Request;
  /** True when the addon was between the caller and the core. */
  readonly throughAddon: boolean;
  readonly secondsPerOperation: number;
  /** Slowest and fastest round. */
  readonly outputBytesPerSecRange: readonly [number, number];
  readonly rounds: number;
  /** Rows of one group were measured in turns, so their ratios hold on a noisy machine. */
  readonly group: string;
}

function rowOf(group: string, { case: c, seconds }: Measured): Row {
  const bytes = outputBytesOf(c);
  const rate = bytes / median(seconds);
  return {
    op: opOf(c.request),
    engine: c.path,
    rival: c.contender === "ours" ? null : c.contender,
    runtime: runtimeOf(c.runner),
    g: c.g,
    symbolBytes: c.symbolBytes,
    outputs: c.outputs,
    outputBytesPerSec: rate,
    gfBytesPerSec: rate * c.g,
    request: c.request,
    throughAddon: c.runner === "addon",
    secondsPerOperation: median(seconds),
    outputBytesPerSecRange: [bytes / Math.max(...seconds), bytes / Math.min(...seconds)],
    rounds: seconds.length,
    group,
  };
}

export function rowsOf(groups: readonly GroupSamples[]): Row[] {
  return groups.flatMap((group) => group.all().map((measured) => rowOf(group.name, measured)));
}
