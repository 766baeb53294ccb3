/**
 * A scenario: hosts, the link of each host to a common core, and changes over time. It reads text or an object and
 * returns values in base units. One ScenarioError names all faults. The format: docs/use/researcher.md. Pure.
 */
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import { parseQuantity, RATE, SHARE, SIZE, TIME } from "./units";
import type { Quantity } from "./units";

const HOSTS_MAX = 64;
const QUEUE_MS_DEFAULT = 100;
const MTU = { min: 576, max: 9_000, default: 1_500 };

/** One line for each fault: the place, the value, and what is wanted instead. */
export class ScenarioError extends Error {
  constructor(readonly faults: readonly string[]) {
    super(faults.join("\n"));
    this.name = "ScenarioError";
  }
}

export type Direction = "up" | "down";

/**
 * Gilbert-Elliott: each packet is one step between a good and a bad state with its own loss. Random loss: enterBad 0.
 */
export interface Loss {
  good: number;
  bad: number;
  enterBad: number;
  leaveBad: number;
}

/** One direction of a link, in base units. */
export interface PipeSpec {
  /** Counts whole IP packets. 0: unlimited, and without a queue. */
  rateBytesPerSec: number;
  queueBytes: number;
  delayMs: number;
  jitterMs: number;
  distribution: "uniform" | "normal";
  reorder: boolean;
  loss: Loss;
  cut: boolean;
}

export interface HostSpec {
  name: string;
  address: string;
  /** Servers reach each other over the backbone when the scenario has one. */
  server: boolean;
  mtu: number;
  /** True when the core answers packets over the MTU with ICMP. */
  icmp: boolean;
  up: PipeSpec;
  down: PipeSpec;
  backbone: PipeSpec;
  /** Name of the kernel's algorithm; null: the kernel's default. */
  congestion: string | null;
  slowStartAfterIdle: boolean;
}

export interface Scenario {
  seed: number;
  services: boolean;
  hosts: HostSpec[];
  changes: { atMs: number; link: string; change: LinkChange }[];
}

function quantity(kind: Quantity) {
  return z.custom<string | number>().transform((value, context): number => {
    const parsed = parseQuantity(kind, value);
    if (parsed !== undefined) return parsed;
    context.addIssue({ code: z.ZodIssueCode.custom, message: `wanted ${kind.wanted}` });
    return z.NEVER;
  });
}

/** A rate, "unlimited", or in a change a share of the scenario's rate. */
const rate = z.custom<string | number>().transform((value, context): { bytesPerSec: number } | { share: number } => {
  if (value === "unlimited") return { bytesPerSec: 0 };
  const bytesPerSec = parseQuantity(RATE, value);
  if (bytesPerSec !== undefined) return { bytesPerSec };
  const share = typeof value === "string" ? parseQuantity(SHARE, value) : undefined;
  if (share !== undefined && share > 0) return { share };
  context.addIssue({
    code: z.ZodIssueCode.custom,
    message: `wanted ${RATE.wanted}, "unlimited", or in a change a share of the scenario's rate, such as "10 %"`,
  });
  return z.NEVER;
});

const queue = z.custom<string | number>().transform((value, context): { bytes: number } | { ms: number } => {
  const bytes = parseQuantity(SIZE, value);
  if (bytes !== undefined) return { bytes };
  const ms = typeof value === "string" ? parseQuantity(TIME, value) : undefined;
  if (ms !== undefined && ms > 0) return { ms };
  context.addIssue({
    code: z.ZodIssueCode.custom,
    message: `wanted ${SIZE.wanted}, or a time at the link's rate, such as "100 ms"`,
  });
  return z.NEVER;
});

const share = quantity(SHARE);
const burst = z.object({ enterBad: share, leaveBad: share, bad: share.default(1), good: share.default(0) }).strict();

const loss = z.custom<string | number | z.input<typeof burst>>().transform((value, context): Loss => {
  if (typeof value !== "object" || value === null) {
    const good = parseQuantity(SHARE, value);
    if (good !== undefined) return { good, bad: 1, enterBad: 0, leaveBad: 1 };
    context.addIssue({
      code: z.ZodIssueCode.custom,
      message: `wanted ${SHARE.wanted}, or {enterBad, leaveBad, bad, good} for bursts`,
    });
    return z.NEVER;
  }
  const parsed = burst.safeParse(value);
  if (parsed.success) return parsed.data;
  for (const issue of parsed.error.issues) context.addIssue(issue);
  return z.NEVER;
});

const pipeFields = {
  rate: rate.optional(),
  queue: queue.optional(),
  delay: quantity(TIME).optional(),
  jitter: quantity(TIME).optional(),
  distribution: z.enum(["uniform", "normal"]).optional(),
  reorder: z.boolean().optional(),
  loss: loss.optional(),
  cut: z.boolean().optional(),
};

const pipe = z.object(pipeFields).strict();
const bothWays = { ...pipeFields, up: pipe.optional(), down: pipe.optional() };
const change = z.object(bothWays).strict();
const link = z
  .object({
    ...bothWays,
    mtu: z.number().int().min(MTU.min).max(MTU.max).default(MTU.default),
    icmp: z.boolean().default(true),
  })
  .strict();
const tcp = z
  .object({
    congestion: z
      .string()
      .regex(/^[a-z0-9_]{1,15}$/, "wanted the name of a congestion control, such as bbr")
      .optional(),
    slowStartAfterIdle: z.boolean().default(true),
  })
  .strict();
const host = z
  .object({
    count: z.number().int().min(1).max(HOSTS_MAX).optional(),
    server: z.boolean().optional(),
    link: link.default({}),
    tcp: tcp.default({}),
  })
  .strict();

const hostName = z.string().regex(/^[a-z][a-z0-9]{0,30}$/, "wanted a host name of small letters and digits");

const document = z
  .object({
    seed: z.number().int().min(0).max(0xffff_ffff).default(1),
    services: z.boolean().default(false),
    backbone: z.union([z.literal(false), pipe]).default(false),
    hosts: z.record(
      hostName,
      host.nullable().transform((value) => value ?? host.parse({})),
    ),
    changes: z.array(z.object({ at: quantity(TIME), link: z.string(), ...bothWays }).strict()).default([]),
  })
  .strict();

type PipeFields = z.output<typeof pipe>;
/** A change of a link. Fields outside `up` and `down` hold for both directions. */
export type LinkChange = z.output<typeof change>;
/** A change as a person or a bench writes it. */
export type LinkChangeInput = z.input<typeof change>;
export type ScenarioInput = z.input<typeof document>;

const UNLIMITED: PipeSpec = {
  rateBytesPerSec: 0,
  queueBytes: 0,
  delayMs: 0,
  jitterMs: 0,
  distribution: "uniform",
  reorder: false,
  loss: { good: 0, bad: 1, enterBad: 0, leaveBad: 1 },
  cut: false,
};

/** `text` is YAML; `name` is the file that errors name. */
export function parseScenarioText(text: string, name: string): Scenario {
  let value: unknown;
  try {
    value = parseYaml(text, { merge: true });
  } catch (error) {
    throw new ScenarioError([`${name}: not YAML: ${error instanceof Error ? error.message : String(error)}`]);
  }
  try {
    return parseScenario(value);
  } catch (error) {
    throw error instanceof ScenarioError ? new ScenarioError(error.faults.map((fault) => `${name}: ${fault}`)) : error;
  }
}

export function parseScenario(value: unknown): Scenario {
  const parsed = document.safeParse(value);
  if (!parsed.success) throw new ScenarioError(faultsOf(parsed.error, value));
  const { seed, services, backbone, changes } = parsed.data;
  const hosts = hostsOf(parsed.data.hosts, backbone);
  const faults = faultsBetween(hosts, services, changes);
  if (faults.length > 0) throw new ScenarioError(faults);
  return {
    seed,
    services,
    hosts,
    changes: changes.map(({ at, link: name, ...rest }) => ({ atMs: at, link: name, change: rest })),
  };
}

export function parseChange(value: LinkChangeInput): LinkChange {
  const parsed = change.safeParse(value);
  if (!parsed.success) throw new ScenarioError(faultsOf(parsed.error, value));
  return parsed.data;
}

/**
 * Applies the part of `change` for `direction` to `current`. A rate that is a share refers to `scenarioRate` (bytes per
 * second). Throws ScenarioError.
 */
export function changedPipe(
  current: PipeSpec,
  change: LinkChange,
  direction: Direction,
  scenarioRate: number,
): PipeSpec {
  const { up, down, ...both } = change;
  return applyFields(current, { ...both, ...(direction === "up" ? up : down) }, scenarioRate);
}

function applyFields(current: PipeSpec, fields: PipeFields, scenarioRate: number): PipeSpec {
  const { rate: newRate, queue: newQueue, delay, jitter, ...rest } = fields;
  if (newRate && "share" in newRate && scenarioRate === 0)
    throw new ScenarioError([
      `rate: got ${newRate.share * 100} %, but the scenario's rate is unlimited: wanted a rate with its unit`,
    ]);
  const rateBytesPerSec =
    newRate === undefined
      ? current.rateBytesPerSec
      : "share" in newRate
        ? newRate.share * scenarioRate
        : newRate.bytesPerSec;
  return {
    ...current,
    ...Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined)),
    rateBytesPerSec,
    queueBytes: queueBytesOf(newQueue, rateBytesPerSec, current.queueBytes),
    delayMs: delay ?? current.delayMs,
    jitterMs: jitter ?? current.jitterMs,
  };
}

/** The queue in bytes. A queue in ms is converted at the present rate; a later rate does not change its bytes. */
function queueBytesOf(said: z.output<typeof queue> | undefined, rateBytesPerSec: number, currentBytes: number): number {
  if (said && "bytes" in said) return said.bytes;
  if (said) return Math.round((said.ms / 1000) * rateBytesPerSec);
  return currentBytes > 0 ? currentBytes : Math.round((QUEUE_MS_DEFAULT / 1000) * rateBytesPerSec);
}

const SERVER_NAME = /^(origin|origo|proxy\d*)$/;

function hostsOf(described: z.output<typeof document>["hosts"], backbone: PipeFields | false): HostSpec[] {
  const hosts: HostSpec[] = [];
  for (const [name, { count, server, link: access, tcp: settings }] of Object.entries(described)) {
    const { mtu, icmp, ...fields } = access;
    for (let number = 1; number <= (count ?? 1); number++) {
      hosts.push({
        name: count === undefined ? name : `${name}${number}`,
        address: `10.99.0.${hosts.length + 1}`,
        server: backbone !== false && (server ?? SERVER_NAME.test(name)),
        mtu,
        icmp,
        up: named(`hosts.${name}.link`, () => changedPipe(UNLIMITED, fields, "up", 0)),
        down: named(`hosts.${name}.link`, () => changedPipe(UNLIMITED, fields, "down", 0)),
        backbone: named("backbone", () => applyFields(UNLIMITED, backbone || {}, 0)),
        congestion: settings.congestion ?? null,
        slowStartAfterIdle: settings.slowStartAfterIdle,
      });
    }
  }
  return hosts;
}

/** Runs `work` and puts the place before its faults. */
function named<T>(place: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof ScenarioError ? new ScenarioError(error.faults.map((fault) => `${place}.${fault}`)) : error;
  }
}

/** Faults that concern more than one field. */
function faultsBetween(
  hosts: readonly HostSpec[],
  services: boolean,
  changes: z.output<typeof document>["changes"],
): string[] {
  const faults: string[] = [];
  const names = hosts.map(({ name }) => name);
  const has = (name: string): boolean => names.includes(name);
  if (!has("client")) faults.push(`hosts: got ${names.join(", ") || "none"}; wanted one named client`);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice) faults.push(`hosts: got ${twice} twice`);
  if (hosts.length > HOSTS_MAX) faults.push(`hosts: got ${hosts.length}, the limit is ${HOSTS_MAX}`);
  if (services && !(has("origin") && has("origo") && names.some((name) => /^proxy\d*$/.test(name)))) {
    faults.push(`services: got hosts ${names.join(", ")}; wanted origin, origo and at least one proxy`);
  }
  changes.forEach(({ at: _at, link: name, ...rest }, index) => {
    const target = hosts.find((candidate) => candidate.name === name);
    if (!target) faults.push(`changes.${index}.link: got ${JSON.stringify(name)}, wanted one of ${names.join(", ")}`);
    else faults.push(...changeFaults(target, rest).map((fault) => `changes.${index}.${fault}`));
  });
  return faults;
}

function changeFaults(target: HostSpec, said: LinkChange): readonly string[] {
  try {
    for (const direction of ["up", "down"] as const)
      if (mentions(said, direction)) changedPipe(target[direction], said, direction, target[direction].rateBytesPerSec);
    return [];
  } catch (error) {
    if (error instanceof ScenarioError) return error.faults;
    throw error;
  }
}

/** True when the change sets anything in this direction. */
export function mentions(said: LinkChange, direction: Direction): boolean {
  const { up, down, ...both } = said;
  return [both, direction === "up" ? up : down].some(
    (fields) => fields && Object.values(fields).some((value) => value !== undefined),
  );
}

function faultsOf(error: z.ZodError, input: unknown): string[] {
  return error.issues.map((issue) => {
    const place = issue.path.join(".") || "scenario";
    if (issue.code === "unrecognized_keys")
      return `${place}: got ${issue.keys.map((key) => `"${key}"`).join(", ")}, which is no setting here`;
    let value: unknown = input;
    for (const key of issue.path) value = (value as Record<string | number, unknown> | null | undefined)?.[key];
    return `${place}: got ${value === undefined ? "nothing" : JSON.stringify(value)}; ${issue.message}`;
  });
}
