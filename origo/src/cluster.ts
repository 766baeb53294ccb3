/**
 * Cluster: several Origos behind a balancer, over one PostgreSQL and one Redis. Each puts the proxies connected to it into Redis,
 * where they vanish soon after it does; decisions and news for pages go through socket.io's streams adapter. Without Redis for a
 * while, each Origo goes on with the proxies of its own and reads decisions from the database every few seconds.
 */
import { randomUUID } from "node:crypto";
import { createClient } from "@redis/client";
import { createAdapter } from "@socket.io/redis-streams-adapter";
import type { Server } from "socket.io";
import type { Registry } from "./registry";
import type { FleetProxy } from "./schema";
import type { Log } from "./telemetry";

/** How often an Origo tells of its proxies, and looks for the others'. */
const SHARE_MS = 1000;
/** An Origo that has not told for so long has none. */
const SHARED_MS_MAX = 3 * SHARE_MS;
const KEYS = "tributary:fleet:";
/** Of the stream, in messages: they are read as they come. */
const STREAM_LENGTH = 1000;
const READ_MS_MAX = 1000;

export interface ClusterOptions {
  redisUrl: string;
  log: Log;
}

interface Shared {
  nowMs: number;
  proxies: FleetProxy[];
}

type Redis = ReturnType<typeof createClient>;

export class Cluster {
  private readonly key = KEYS + randomUUID();
  private timer: NodeJS.Timeout | undefined;
  private sharing: Promise<void> = Promise.resolve();

  private constructor(private readonly redis: Redis, private readonly log: Log) {}

  /** Throws when Redis does not answer. */
  static async open({ redisUrl, log }: ClusterOptions): Promise<Cluster> {
    let isOpen = false;
    // Before the first answer there is nothing to come back to.
    const redis: Redis = createClient({ url: redisUrl, socket: { reconnectStrategy: (retries) => (isOpen ? Math.min(100 * (retries + 1), SHARE_MS) : false) } });
    redis.on("error", (error: Error) => log.warn({ event: "redisFailed", reason: error.message }));
    await redis.connect();
    isOpen = true;
    return new Cluster(redis, log);
  }

  get adapter(): ReturnType<typeof createAdapter> {
    return createAdapter(this.redis, { streamName: "tributary:stream", channelPrefix: "tributary", maxLen: STREAM_LENGTH, blockTimeInMs: READ_MS_MAX });
  }

  /** `onChange` when another Origo says that something was decided: it is in the database. */
  attach(io: Server, { registry, nowMs, onChange }: { registry: Registry; nowMs: () => number; onChange: () => void }): void {
    io.of("/proxies").on("changed", onChange);
    const share = (): void => {
      this.sharing = this.share(registry, nowMs).catch((error: Error) => this.log.warn({ event: "redisFailed", reason: error.message }))
        .finally(() => (this.timer = setTimeout(share, SHARE_MS)));
    };
    share();
  }

  /** To the other Origos. */
  tellChange(io: Server): void {
    if (this.redis.isReady) io.of("/proxies").serverSideEmit("changed");
  }

  /** Its proxies are gone for the others at once. */
  async close(): Promise<void> {
    await this.sharing;
    clearTimeout(this.timer);
    if (this.redis.isReady) await this.redis.del(this.key).catch(() => undefined);
    this.redis.destroy();
  }

  private async share(registry: Registry, nowMs: () => number): Promise<void> {
    if (!this.redis.isReady) return;
    const shared: Shared = { nowMs: nowMs(), proxies: registry.own(nowMs()) };
    await this.redis.set(this.key, JSON.stringify(shared), { expiration: { type: "PX", value: SHARED_MS_MAX } });
    const keys: string[] = [];
    for await (const found of this.redis.scanIterator({ MATCH: `${KEYS}*` })) keys.push(...found.filter((key) => key !== this.key));
    const texts = keys.length === 0 ? [] : await this.redis.mGet(keys);
    const proxies = texts.flatMap((text) => (text === null ? [] : inOurTime(JSON.parse(text) as Shared, nowMs())));
    registry.setElsewhere(proxies, nowMs() + SHARED_MS_MAX);
  }
}

/** Clocks of machines differ. */
function inOurTime({ nowMs, proxies }: Shared, oursMs: number): FleetProxy[] {
  const moved = oursMs - nowMs;
  return proxies.map((proxy) => ({ ...proxy, connectedAtMs: proxy.connectedAtMs + moved, lastSeenMs: proxy.lastSeenMs + moved }));
}
