/** From V8's CPU profiles to where the processor's time went, by part of the program and by function. Pure. */

/** Longer than a slice of the recorder. */
export const PAUSE_MS = 1500;

interface Frame {
  functionName: string;
  url: string;
}

/** A profile as the inspector gives it (Chrome DevTools Protocol, `Profiler.Profile`); times in microseconds. */
export interface CpuProfile {
  nodes: readonly { id: number; callFrame: Frame; children?: readonly number[] }[];
  samples?: readonly number[];
  timeDeltas?: readonly number[];
}

export interface Spent {
  /** Busy processor time, in ms. */
  busyMs: number;
  /** ms of it by part, most first. */
  parts: readonly (readonly [string, number])[];
  /** ms of it by function, most first. */
  functions: readonly (readonly [string, number])[];
}

const WORKSPACE =
  /\/(client|proxy|protocol|native-codec|wasm-codec|native-transport|origo)\/dist\/(?:src\/)?([^?]+)\.js$/;
/** By which the profiles are taken. */
const RECORDER = "node:inspector";
const IDLE = new Set(["(idle)", "(root)"]);

/** What a function belongs to: a file of ours, a library, Node, or V8 itself. */
export function partOf({ functionName, url }: Frame): string {
  if (functionName === "(garbage collector)") return "garbage collector";
  if (functionName === "(program)") return "native code outside JavaScript";
  const [, workspace, file] = WORKSPACE.exec(url) ?? [];
  if (workspace) return `${workspace}/${file}`;
  if (url.startsWith("wasm://")) return "codec in WebAssembly";
  const [, library] = /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url) ?? [];
  if (library) return library;
  return url.startsWith("node:") ? "Node" : "other";
}

const isVirtual = ({ functionName }: Frame): boolean => functionName.startsWith("(");

/**
 * Part and name of a function. V8 knows native functions by one name for all of an addon, so they go by who called
 * them.
 */
function namesOf(frame: Frame, caller: Frame | undefined): readonly [string, string] {
  const part = partOf(frame);
  if (isVirtual(frame)) return [part, part];
  if (frame.url !== "" || !caller || isVirtual(caller))
    return [part, `${frame.functionName || "(anonymous)"}, ${part}`];
  const [of, name] = namesOf(caller, undefined);
  return [`native code called by ${of}`, `native code called by ${name}`];
}

/** Of many profiles, of threads and of slices of time, together. */
export function spentOf(profiles: readonly CpuProfile[]): Spent {
  const [parts, functions] = [new Map<string, number>(), new Map<string, number>()];
  let busyMs = 0;
  const add = (times: Map<string, number>, name: string, ms: number): void =>
    void times.set(name, (times.get(name) ?? 0) + ms);
  for (const { nodes, samples = [], timeDeltas = [] } of profiles) {
    const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
    const callers = new Map(
      nodes.flatMap(({ callFrame, children = [] }) => children.map((child) => [child, callFrame] as const)),
    );
    samples.forEach((id, index) => {
      const frame = frames.get(id);
      const ms = Math.max(0, timeDeltas[index] ?? 0) / 1000;
      const caller = callers.get(id);
      if (!frame || IDLE.has(frame.functionName) || [frame, caller].some((each) => each?.url === RECORDER)) return;
      const [part, name] = namesOf(frame, caller);
      busyMs += ms;
      add(parts, part, ms);
      add(functions, name, ms);
    });
  }
  const sorted = (times: Map<string, number>): [string, number][] => [...times].sort(([, a], [, b]) => b - a);
  return { busyMs, parts: sorted(parts), functions: sorted(functions) };
}
