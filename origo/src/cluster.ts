/**
 * Cluster: several Origos behind a load balancer, over one PostgreSQL and one Redis. Each Origo writes into Redis which
 * proxies are connected to it and how many records it took in. These entries expire soon after their Origo stops. A
 * Redis channel tells the others that something was decided, another one what the libraries of proxies hold. When Redis
 * is down, each Origo knows only its own proxies, and reads decisions from the database every few seconds.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as after } from "node:timers/promises";
import { createClient } from "@redis/client";
import type { ObjectsReport } from "@tributary/contract/publication-schema";
import type { Holders } from "./holders";
import type { Registry } from "./registry";
import type { FleetProxy } from "@tributary/contract/schema";
import type { Log } from "./telemetry";

/** How often an Origo writes its own proxies and reads those of the others. */
const SHARE_MS = 1000;
/** The entry of an Origo expires after this time. */
const SHARED_MS_MAX = 3 * SHARE_MS;
/**
 * Redis is asked every second. A connection without traffic for this long is replaced, since Redis may have vanished.
 */
const SILENT_MS_MAX = 5000;
const KEYS = "tributary:fleet:";
/** A channel. Each message is the key of the Origo where something was decided. */
const CHANGED = "tributary:changed";
/** A channel. Each message is an ObjectsMessage. */
const OBJECTS = "tributary:objects";
/** A message has at most so many objects. */
const OBJECTS_PER_MESSAGE = 1000;

/** What a proxy reported to the Origo `from`. Without a report the proxy left; without a proxy `from` asks for all. */
interface ObjectsMessage {
  from: string;
  proxyId?: string;
  report?: ObjectsReport;
}

export interface ClusterOptions {
  redisUrl: string;
  log: Log;
}

interface Shared {
  nowMs: number;
  proxies: FleetProxy[];
  /** The number of records that this Origo took in since it started. */
  records: number;
}

export interface Own {
  registry: Registry;
  holders: Holders;
  records: () => number;
  nowMs: () => number;
}

type Redis = ReturnType<typeof createClient>;

export class Cluster {
  readonly #key = KEYS + randomUUID();
  #timer: NodeJS.Timeout | undefined;
  #sharing: Promise<void> = Promise.resolve();
  #closed = false;
  /** The number of records that the other live Origos took in. */
  recordsElsewhere = 0;

  readonly #redis: Redis;
  readonly #subscriber: Redis;
  readonly #log: Log;

  private constructor(redis: Redis, subscriber: Redis, log: Log) {
    this.#redis = redis;
    this.#subscriber = subscriber;
    this.#log = log;
  }

  /** Throws when Redis does not answer. */
  static async open({ redisUrl, log }: ClusterOptions): Promise<Cluster> {
    let isOpen = false;
    // If the first connection fails, `open` throws. Later connections are retried.
    const reconnectStrategy = (retries: number): number | false =>
      isOpen ? Math.min(100 * (retries + 1), SHARE_MS) : false;
    const redis: Redis = createClient({ url: redisUrl, socket: { reconnectStrategy, socketTimeout: SILENT_MS_MAX } });
    redis.on("error", (error: Error) => log.warn({ event: "redisFailed", reason: error.message }));
    await redis.connect();
    isOpen = true;
    // A connection that subscribes can do nothing else and may be silent, so it has no timeout. Its errors are not
    // logged, because the other connection has the same ones.
    const subscriber = redis.duplicate({ socket: { reconnectStrategy } }).on("error", () => undefined);
    await subscriber.connect();
    return new Cluster(redis, subscriber, log);
  }

  /** Joins the others. Calls `onChange` when another Origo has written a decision to the database. */
  async join(own: Own, onChange: () => void): Promise<void> {
    await this.#subscriber.subscribe(CHANGED, (key) => key !== this.#key && onChange());
    const { holders } = own;
    holders.onOwn = (proxyId, report) => this.#tell({ proxyId, ...(report === undefined ? {} : { report }) });
    await this.#subscriber.subscribe(OBJECTS, (text) => this.#hear(JSON.parse(text) as ObjectsMessage, holders));
    // Messages are lost while Redis is away, so everyone tells and asks again when it is back.
    const compare = (): void => {
      this.#tellAll(holders);
      this.#tell({});
    };
    this.#subscriber.on("ready", compare);
    this.#redis.on("ready", compare);
    compare();
    const share = (): void => {
      this.#sharing = this.#share(own)
        .catch((error: Error) => this.#log.warn({ event: "redisFailed", reason: error.message }))
        .finally(() => (this.#timer = this.#closed ? undefined : setTimeout(share, SHARE_MS)));
    };
    share();
  }

  /** Tells the other Origos that something was decided. An Origo that misses this reads the database a little later. */
  tellChange(): void {
    if (this.#redis.isReady) this.#redis.publish(CHANGED, this.#key).catch(() => undefined);
  }

  #hear({ from, proxyId, report }: ObjectsMessage, holders: Holders): void {
    if (from === this.#key) return;
    if (proxyId === undefined) this.#tellAll(holders);
    else if (report === undefined) holders.handleGone(proxyId, from);
    else holders.handleReport(proxyId, report, from);
  }

  #tell(message: Omit<ObjectsMessage, "from">): void {
    const text = JSON.stringify({ from: this.#key, ...message } satisfies ObjectsMessage);
    if (this.#redis.isReady) this.#redis.publish(OBJECTS, text).catch(() => undefined);
  }

  #tellAll(holders: Holders): void {
    for (const [proxyId, objects] of holders.own())
      for (let at = 0; at === 0 || at < objects.length; at += OBJECTS_PER_MESSAGE) {
        const added = objects.slice(at, at + OBJECTS_PER_MESSAGE);
        this.#tell({ proxyId, report: { isFirst: at === 0, added, removed: [] } });
      }
  }

  /**
   * Removes its entry from Redis, so that the others forget its proxies at once. Waits until the entry would expire.
   */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await Promise.race([this.#leave(), after(SHARED_MS_MAX, undefined, { ref: false })]);
    this.#subscriber.destroy();
    this.#redis.destroy();
  }

  async #leave(): Promise<void> {
    await this.#sharing;
    if (this.#redis.isReady) await this.#redis.del(this.#key).catch(() => undefined);
  }

  async #share({ registry, records, nowMs }: Own): Promise<void> {
    if (!this.#redis.isReady) return;
    const shared: Shared = { nowMs: nowMs(), proxies: registry.own(nowMs()), records: records() };
    await this.#redis.set(this.#key, JSON.stringify(shared), { expiration: { type: "PX", value: SHARED_MS_MAX } });
    const keys: string[] = [];
    for await (const found of this.#redis.scanIterator({ MATCH: `${KEYS}*` }))
      keys.push(...found.filter((key) => key !== this.#key));
    const texts = keys.length === 0 ? [] : await this.#redis.mGet(keys);
    const others = texts.filter((text) => text !== null).map((text) => JSON.parse(text) as Shared);
    registry.setElsewhere(
      others.flatMap((other) => inOurTime(other, nowMs())),
      nowMs() + SHARED_MS_MAX,
    );
    this.recordsElsewhere = others.reduce((sum, other) => sum + other.records, 0);
  }
}

/** Converts times to our clock, since the clocks of machines differ. */
function inOurTime({ nowMs, proxies }: Shared, oursMs: number): FleetProxy[] {
  const moved = oursMs - nowMs;
  return proxies.map((proxy) => ({
    ...proxy,
    connectedAtMs: proxy.connectedAtMs + moved,
    lastSeenMs: proxy.lastSeenMs + moved,
  }));
}
