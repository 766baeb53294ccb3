/**
 * The hosts of a scenario and their links, while the emulator runs: starts commands in hosts, changes links, reads
 * counters. The model and its limits: docs/use/researcher.md.
 */
import { spawn } from "node:child_process";
import type { ChildProcess, SpawnOptions } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { LinksError } from "./core";
import type { Core } from "./core";
import { changedPipe, mentions, parseChange } from "./scenario";
import type { Direction, HostSpec, LinkChange, LinkChangeInput, PipeSpec, Scenario } from "./scenario";

/** Counters since the start, in packets unless the name says bytes. A dropped packet has one cause. */
export interface PipeStats {
  inPackets: number;
  inBytes: number;
  outPackets: number;
  outBytes: number;
  dropQueue: number;
  dropLoss: number;
  dropCut: number;
  dropMtu: number;
  queueBytes: number;
  queueBytesMax: number;
}

export interface HostStats {
  /** Packets without a host to go to: multicast, IPv6, unknown addresses. */
  noRoutePackets: number;
  /** Packets that came faster than the emulator could read them. They are a sign of an overloaded machine. */
  interfaceDrops: number;
  up: PipeStats;
  down: PipeStats;
  backbone: PipeStats;
}

export interface LinksStats {
  /** CLOCK_MONOTONIC, like process.hrtime. */
  nowNs: number;
  /** The emulator's processor time. */
  cpuSec: number;
  /** True when the emulator runs before all ordinary processes. Otherwise load on the machine makes packets late. */
  realTime: boolean;
  /** How late packets were handed over since `begin`, in microseconds. */
  lateUs: { p50: number; p99: number; max: number };
  hosts: Record<string, HostStats>;
}

/** The state of a pipe, taken every 50 ms. */
export interface PipeSample {
  /** Counted from `begin`; negative before it. */
  atMs: number;
  queueBytes: number;
  /** The highest since the previous sample. */
  queueBytesMax: number;
  outBytes: number;
  dropPackets: number;
}

interface RunOptions extends SpawnOptions {
  env?: NodeJS.ProcessEnv;
}

/** Makes the hosts and sets their links. Rejects with LinksError. */
export async function bringUp(core: Core, scenario: Scenario): Promise<Network> {
  await core.ask(`seed ${scenario.seed}`);
  for (const host of scenario.hosts) {
    const { name, address, mtu, server, congestion, slowStartAfterIdle } = host;
    const words = [name, address, mtu, Number(server), congestion ?? "-", Number(slowStartAfterIdle)];
    await core.ask(`host ${words.join(" ")}`);
  }
  const up = await core.ask("up");
  for (const host of scenario.hosts) {
    for (const direction of ["up", "down", "backbone"] as const)
      await core.ask(setLine(host, direction, host[direction]));
  }
  return new Network(core, scenario, up["hosts"] as Record<string, number>);
}

/** The line that makes the emulator apply `pipe` to `direction`. Times are in nanoseconds. */
function setLine(host: HostSpec, direction: Direction | "backbone", pipe: PipeSpec): string {
  const nanoseconds = (ms: number): number => Math.round(ms * 1e6);
  const settings = {
    rateBytesPerSec: pipe.rateBytesPerSec,
    queueBytes: pipe.queueBytes,
    delay: nanoseconds(pipe.delayMs),
    jitter: nanoseconds(pipe.jitterMs),
    distribution: pipe.distribution === "uniform" ? 0 : 1,
    reorder: Number(pipe.reorder),
    lossGood: pipe.loss.good,
    lossBad: pipe.loss.bad,
    enterBad: pipe.loss.enterBad,
    leaveBad: pipe.loss.leaveBad,
    cut: Number(pipe.cut),
    mtu: host.mtu,
    icmp: Number(host.icmp),
  };
  return `set ${host.name} ${direction} ${Object.entries(settings)
    .map(([key, value]) => `${key}=${value}`)
    .join(" ")}`;
}

export class Network {
  /** What a command in a host finds in its environment: HOST_NAME with the address of each host. */
  readonly env: Record<string, string>;
  readonly #pipes = new Map<string, PipeSpec>();
  #timers: NodeJS.Timeout[] = [];
  #beganNs = 0;
  #folder: string | undefined;

  readonly #core: Core;
  readonly #descriptors: Record<string, number>;

  constructor(
    core: Core,
    readonly scenario: Scenario,
    descriptors: Record<string, number>,
  ) {
    this.#core = core;
    this.#descriptors = descriptors;

    this.env = Object.fromEntries(scenario.hosts.map(({ name, address }) => [`HOST_${name.toUpperCase()}`, address]));
    for (const host of scenario.hosts)
      for (const direction of ["up", "down"] as const) this.#pipes.set(`${host.name} ${direction}`, host[direction]);
  }

  /** Settles when the emulator has ended. */
  get ended(): Promise<void> {
    return this.#core.ended;
  }

  address(host: string): string {
    return this.#specOf(host).address;
  }

  /** Starts a command in a host. Its environment is this process's, then `env`, then the options' own. */
  run(host: string, command: readonly string[], options: RunOptions = {}): ChildProcess {
    const [program, ...words] = [...this.words(host), ...command];
    return spawn(program!, words, { ...options, env: { ...process.env, ...this.env, ...options.env } });
  }

  /** Words to put before a command to run it in a host. */
  words(host: string): string[] {
    return this.#core.enterWords(this.#descriptors[this.#specOf(host).name]!);
  }

  /** A script that runs `program` in a host, for callers that want a path to start. `close` removes it. */
  async wrapper(host: string, program: string): Promise<string> {
    this.#folder ??= await mkdtemp(path.join(os.tmpdir(), "tributary-links-"));
    const file = path.join(this.#folder, `${host}-${path.basename(program)}`);
    const quoted = [...this.words(host), program].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
    await writeFile(file, `#!/bin/sh\nexec ${quoted} "$@"\n`);
    await chmod(file, 0o755);
    return file;
  }

  /** Sets time zero of the scenario's changes and of samples, and resets the lateness of packets. */
  async begin(): Promise<void> {
    this.#forgetChanges();
    this.#beganNs = (await this.#core.ask("begin"))["nowNs"] as number;
    this.#timers = this.scenario.changes.map(({ atMs, link, change }) =>
      setTimeout(() => void this.#apply(link, change).catch(() => undefined), atMs),
    );
  }

  /** Changes a host's link now. Throws ScenarioError. */
  async set(link: string, change: LinkChangeInput): Promise<void> {
    await this.#apply(link, parseChange(change));
  }

  async stats(): Promise<LinksStats> {
    return (await this.#core.ask("stats")) as unknown as LinksStats;
  }

  /** The history of one pipe. */
  async samples(link: string, direction: Direction | "backbone"): Promise<PipeSample[]> {
    const { samples } = (await this.#core.ask(`samples ${this.#specOf(link).name} ${direction}`)) as {
      samples: [number, number, number, number, number][];
    };
    return samples.map(([atNs, queueBytes, queueBytesMax, outBytes, dropPackets]) => ({
      atMs: (atNs - this.#beganNs) / 1e6,
      queueBytes,
      queueBytesMax,
      outBytes,
      dropPackets,
    }));
  }

  /** Ends the emulator and every process in its hosts. */
  async close(): Promise<void> {
    this.#forgetChanges();
    await this.#core.end();
    if (this.#folder) await rm(this.#folder, { recursive: true, force: true });
  }

  async #apply(link: string, change: LinkChange): Promise<void> {
    const host = this.#specOf(link);
    for (const direction of ["up", "down"] as const) {
      if (!mentions(change, direction)) continue;
      const key = `${link} ${direction}`;
      const pipe = changedPipe(this.#pipes.get(key)!, change, direction, host[direction].rateBytesPerSec);
      this.#pipes.set(key, pipe);
      await this.#core.ask(setLine(host, direction, pipe));
    }
  }

  #forgetChanges(): void {
    for (const timer of this.#timers.splice(0)) clearTimeout(timer);
  }

  #specOf(name: string): HostSpec {
    const found = this.scenario.hosts.find((host) => host.name === name);
    if (!found)
      throw new LinksError(
        `no host "${name}"; the scenario has ${this.scenario.hosts.map((host) => host.name).join(", ")}`,
      );
    return found;
  }
}
