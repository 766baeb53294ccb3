/**
 * The network of a world: two links for each proxy, the shared downlink, and the outages. It carries any packet that
 * its user puts into the pool and knows no protocol.
 */
import { EventLog, type LinkEvent } from "./event-log";
import { EventQueue } from "./events";
import { Link, PacketPool, type LinkOptions } from "./link";
import { Random } from "./random";
import type { ProxyLink, World } from "./world";

/** The uses of a proxy's random streams. The network's user may take those from `user` on. */
export const STREAM = { down: 0, up: 1, user: 2, pauses: 1000 } as const;
/** The number of the shared downlink in log and trace. */
export const SHARED_DOWNLINK = 4095;
const downName = (proxy: number): number => proxy * 2;
const upName = (proxy: number): number => proxy * 2 + 1;

/** Pauses are drawn up to this time. Each one makes the bound slower to compute. */
const PAUSES_MS = 500;

/** The same world, with each link's pauses drawn from the seed and turned into changes of its rate. */
export function withPauses(world: World): World {
  if (!world.links.some(({ pauses }) => pauses)) return world;
  const links = world.links.map(({ pauses, ...link }, proxy) =>
    pauses
      ? { ...link, rateChanges: drawPauses(link.bytesPerSec, pauses, new Random(world.seed, proxy, STREAM.pauses)) }
      : link,
  );
  return { ...world, links };
}

function drawPauses(
  bytesPerSec: number,
  { apartMs, lastMs }: NonNullable<ProxyLink["pauses"]>,
  random: Random,
): NonNullable<ProxyLink["rateChanges"]> {
  const changes = [];
  const next = (mean: number) => -mean * Math.log(1 - random.unit());
  for (let atMs = next(apartMs); atMs < PAUSES_MS; atMs += next(apartMs)) {
    changes.push({ atMs, bytesPerSec: 0 });
    atMs += next(lastMs);
    changes.push({ atMs, bytesPerSec });
  }
  return changes;
}

export type OnLinkEvent = (
  nowMs: number,
  event: LinkEvent,
  link: number,
  bytes: number,
  message: Uint8Array | undefined,
) => void;

export interface NetworkUser {
  /** The callee owns the slot. */
  atClient(proxy: number, slot: number): void;
  /** The callee owns the slot. Nothing comes to a proxy during its outage. */
  atProxy(proxy: number, slot: number): void;
  /** The proxy's serializer can take another packet. */
  onFree(proxy: number): void;
  onOutage(proxy: number, phase: "crash" | "cut" | "over"): void;
}

export class Network {
  readonly events = new EventQueue();
  readonly pool = new PacketPool();
  readonly log = new EventLog();
  readonly down: Link[];
  readonly dead: boolean[];
  readonly #up: Link[];
  readonly #downlink: Link | undefined;
  readonly #source: number[] = [];

  readonly #world: World;
  readonly #user: NetworkUser;
  readonly #onLinkEvent: OnLinkEvent | undefined;

  constructor(world: World, user: NetworkUser, onLinkEvent: OnLinkEvent | undefined) {
    this.#world = world;
    this.#user = user;
    this.#onLinkEvent = onLinkEvent;

    const { links, downlink, seed } = world;
    this.dead = links.map(() => false);
    this.#downlink =
      downlink &&
      new Link(
        { ...downlink, delayMs: 0 },
        this.#place(SHARED_DOWNLINK, new Random(seed, SHARED_DOWNLINK), (slot) =>
          user.atClient(this.#source[slot]!, slot),
        ),
      );
    this.down = links.map((link, proxy) => this.#downLink(link, proxy));
    this.#up = links.map((link, proxy) => this.#upLink(link, proxy));
    links.forEach((link, proxy) => this.#scheduleOutages(link, proxy));
  }

  toClient(proxy: number, message: Uint8Array | undefined, bytes: number, tag = 0, mark = 0): void {
    this.down[proxy]!.send(this.pool.take(message, bytes + (this.#world.overheadBytes ?? 0), tag, mark));
  }

  toProxy(proxy: number, message: Uint8Array | undefined, bytes: number, tag = 0, mark = 0): void {
    this.#up[proxy]!.send(this.pool.take(message, bytes + (this.#world.overheadBytes ?? 0), tag, mark));
  }

  #downLink(link: ProxyLink, proxy: number): Link {
    const {
      bytesPerSec,
      rttMs,
      jitterMs = 0,
      inOrder = false,
      loss = 0,
      queueBytes = Infinity,
      burst,
      reorder,
      repeat = 0,
      rateChanges = [],
      healMs = Infinity,
    } = link;
    const rare = { ...(burst ? { burst } : {}), ...(reorder ? { reorder } : {}) };
    const options = {
      bytesPerSec,
      delayMs: rttMs / 2,
      delayChanges: delayChangesOf(link),
      jitterMs,
      inOrder,
      loss,
      queueBytes,
      repeat,
      rateChanges,
      healMs,
      ...rare,
    };
    const deliver = (slot: number) => {
      this.#source[slot] = proxy;
      if (this.#downlink) this.#downlink.send(slot);
      else this.#user.atClient(proxy, slot);
    };
    const place = this.#place(downName(proxy), new Random(this.#world.seed, proxy, STREAM.down), deliver);
    return new Link(options, { ...place, onFree: () => this.#user.onFree(proxy) });
  }

  #upLink(link: ProxyLink, proxy: number): Link {
    const {
      rttMs,
      jitterMs = 0,
      inOrder = false,
      loss = 0,
      feedbackLoss = loss,
      upBytesPerSec = Infinity,
      healMs = Infinity,
    } = link;
    const deliver = (slot: number) => {
      if (this.dead[proxy]) this.pool.giveBack(slot);
      else this.#user.atProxy(proxy, slot);
    };
    const options = {
      bytesPerSec: upBytesPerSec,
      delayMs: rttMs / 2,
      delayChanges: delayChangesOf(link),
      jitterMs,
      inOrder,
      loss: feedbackLoss,
      healMs,
    };
    return new Link(options, this.#place(upName(proxy), new Random(this.#world.seed, proxy, STREAM.up), deliver));
  }

  #place(name: number, random: Random, deliver: (slot: number) => void) {
    const onLinkEvent = this.#onLinkEvent;
    const { events, pool, log } = this;
    const onEvent = (event: LinkEvent, link: number, slot: number) =>
      onLinkEvent!(events.nowMs, event, link, pool.bytes[slot]!, pool.message[slot]);
    return { events, pool, log, random, name, deliver, ...(onLinkEvent ? { onEvent } : {}) };
  }

  #scheduleOutages({ outages = [] }: ProxyLink, proxy: number): void {
    const set = (dead: boolean, phase: "crash" | "cut" | "over") => {
      this.dead[proxy] = dead;
      this.down[proxy]!.down = dead;
      this.#user.onOutage(proxy, phase);
    };
    const begin = this.events.register((which) => set(true, outages[which]!.crash ? "crash" : "cut"));
    const end = this.events.register(() => set(false, "over"));
    outages.forEach(({ fromMs, toMs }, which) => {
      this.events.schedule(fromMs, begin, which);
      if (toMs < Infinity) this.events.schedule(toMs, end, which);
    });
  }
}

const delayChangesOf = ({ rttChanges = [] }: ProxyLink): NonNullable<LinkOptions["delayChanges"]> =>
  rttChanges.map(({ atMs, rttMs }) => ({ atMs, delayMs: rttMs / 2 }));
