/**
 * Hosts with links on one machine, as a bench or a test uses them. `startLinks` brings them up; `close`, or the end of
 * this process however it comes, takes down every process in them. The model and its limits: docs/use/researcher.md.
 */
import { spawn } from "node:child_process";
import type { ChildProcess, SpawnOptions } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { Core, LinksError } from "./core";
import { changedPipe, mentions, parseChange, parseScenario } from "./scenario";
import type { Direction, HostSpec, LinkChange, LinkChangeInput, PipeSpec, Scenario, ScenarioInput } from "./scenario";
import { startLinkServices } from "./services";
import type { LinkServices } from "./services";

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
  /** Sent to nowhere: multicast, IPv6, addresses of no host. */
  noRoutePackets: number;
  /** Sent faster than the emulator could read them: not part of the model, a sign of an overloaded machine. */
  interfaceDrops: number;
  up: PipeStats;
  down: PipeStats;
  backbone: PipeStats;
}

export interface LinksStats {
  /** CLOCK_MONOTONIC, as process.hrtime. */
  nowNs: number;
  /** CPU time that the emulator has used. */
  cpuSec: number;
  /** Does the emulator run before all ordinary processes? Without that, load makes packets late. */
  realTime: boolean;
  /** How late packets were handed over since `begin`, microseconds. */
  lateUs: { p50: number; p99: number; max: number };
  hosts: Record<string, HostStats>;
}

/** One line of a pipe's history, every 50 ms. */
export interface PipeSample {
  /** Since `begin`; negative before it. */
  atMs: number;
  queueBytes: number;
  /** Highest since the sample before. */
  queueBytesMax: number;
  /** Since the start. */
  outBytes: number;
  dropPackets: number;
}

export interface RunOptions extends SpawnOptions {
  env?: NodeJS.ProcessEnv;
}

export interface Links {
  readonly scenario: Scenario;
  /**
   * What a command in a host is told: ORIGIN_URL, ORIGO_URL, PROXY_URLS with services; HOST_NAME for the address of
   * each.
   */
  readonly env: Readonly<Record<string, string>>;
  /** The product's services, when the scenario asks for them. */
  readonly services: LinkServices | undefined;
  /** Settles when the emulator has ended. */
  readonly ended: Promise<void>;
  address(host: string): string;
  /** Starts a command in a host, with this process's environment and `env` unless the options say otherwise. */
  run(host: string, command: readonly string[], options?: RunOptions): ChildProcess;
  /** Words to put before a command to run it in a host. */
  words(host: string): string[];
  /** A script that runs `program` in a host: what puppeteer wants as `executablePath`. It goes with `close`. */
  wrapper(host: string, program: string): Promise<string>;
  /** Time zero of the scenario's changes and of samples; also forgets how late packets were. */
  begin(): Promise<void>;
  /** Changes a host's link now. Throws ScenarioError. */
  set(link: string, change: LinkChangeInput): Promise<void>;
  stats(): Promise<LinksStats>;
  samples(link: string, direction: Direction | "backbone"): Promise<PipeSample[]>;
  close(): Promise<void>;
}

export interface StartOptions {
  /** What the services print goes to files here. */
  logFolder?: string;
}

/** `scenario`: a parsed one, or an object as YAML has it. Rejects with ScenarioError or LinksError. */
export async function startLinks(scenario: Scenario | ScenarioInput, options: StartOptions = {}): Promise<Links> {
  const parsed = Array.isArray(scenario.hosts) ? (scenario as Scenario) : parseScenario(scenario);
  const core = await Core.start();
  try {
    const network = await bringUp(core, parsed);
    if (parsed.services) await network.startServices(options.logFolder ?? null);
    return network;
  } catch (error) {
    await core.end();
    throw error;
  }
}

async function bringUp(core: Core, scenario: Scenario): Promise<Network> {
  await core.ask(`seed ${scenario.seed}`);
  for (const host of scenario.hosts) {
    await core.ask(
      `host ${host.name} ${host.address} ${host.mtu} ${Number(host.server)} ${host.congestion ?? "-"} ${Number(host.slowStartAfterIdle)}`,
    );
  }
  const up = await core.ask("up");
  for (const host of scenario.hosts) {
    for (const direction of ["up", "down", "backbone"] as const)
      await core.ask(setLine(host, direction, host[direction]));
  }
  return new Network(core, scenario, up["hosts"] as Record<string, number>);
}

/** The emulator's line that makes `direction` what `pipe` says. Times go as nanoseconds. */
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

class Network implements Links {
  readonly env: Record<string, string>;
  services: LinkServices | undefined;
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

  get ended(): Promise<void> {
    return this.#core.ended;
  }

  address(host: string): string {
    return this.#specOf(host).address;
  }

  run(host: string, command: readonly string[], options: RunOptions = {}): ChildProcess {
    const [program, ...words] = [...this.words(host), ...command];
    return spawn(program!, words, { ...options, env: { ...process.env, ...this.env, ...options.env } });
  }

  words(host: string): string[] {
    return this.#core.enterWords(this.#descriptors[this.#specOf(host).name]!);
  }

  async wrapper(host: string, program: string): Promise<string> {
    this.#folder ??= await mkdtemp(path.join(os.tmpdir(), "tributary-links-"));
    const file = path.join(this.#folder, `${host}-${path.basename(program)}`);
    const quoted = [...this.words(host), program].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
    await writeFile(file, `#!/bin/sh\nexec ${quoted} "$@"\n`);
    await chmod(file, 0o755);
    return file;
  }

  async begin(): Promise<void> {
    this.#forgetChanges();
    this.#beganNs = (await this.#core.ask("begin"))["nowNs"] as number;
    this.#timers = this.scenario.changes.map(({ atMs, link, change }) =>
      setTimeout(() => void this.#apply(link, change).catch(() => undefined), atMs),
    );
  }

  async set(link: string, change: LinkChangeInput): Promise<void> {
    await this.#apply(link, parseChange(change));
  }

  async stats(): Promise<LinksStats> {
    return (await this.#core.ask("stats")) as unknown as LinksStats;
  }

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

  async close(): Promise<void> {
    this.#forgetChanges();
    await this.#core.end();
    if (this.#folder) await rm(this.#folder, { recursive: true, force: true });
  }

  async startServices(logFolder: string | null): Promise<void> {
    this.services = await startLinkServices(this, logFolder);
    Object.assign(this.env, this.services.env);
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
