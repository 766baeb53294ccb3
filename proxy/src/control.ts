/**
 * Control: combines the limits that a proxy was started with and the settings that Origo sends. Of two limits the
 * smaller one holds, so Origo can only lower a limit. Pure; proxy.ts applies the result.
 */
import { HEARTBEAT_MS } from "@tributary/contract";
import type { ProxyControl } from "@tributary/contract/schema";
import type { ProxyConfig } from "./config";
import { EGRESS_TIMES } from "./egress/fetch";

export interface Limits {
  /** 0 means no limit. */
  rateBytesPerSec: number;
  cacheBytes: number;
  pinnedBytes: number;
  cacheKeepMs: number;
  sessionsMax: number;
  sessionIdleMs: number;
  httpConnectionsMax: number;
  heartbeatMs: number;
  /** Time limits for requests to origins: until the head, between two pieces of the body, and in total. */
  originHeadMs: number;
  originStallMs: number;
  originTotalMs: number;
  requireToken: boolean;
}

/** The limits of a proxy without Origo. */
export function limitsOf(
  config: Pick<ProxyConfig, "RATE_BYTES_PER_SEC" | "CACHE_BYTES" | "MAX_SESSIONS" | "REQUIRE_TOKEN">,
): Limits {
  return {
    rateBytesPerSec: config.RATE_BYTES_PER_SEC,
    cacheBytes: config.CACHE_BYTES,
    pinnedBytes: 256 * 1024 * 1024,
    cacheKeepMs: 60_000,
    sessionsMax: config.MAX_SESSIONS,
    sessionIdleMs: 60_000,
    httpConnectionsMax: 1024,
    heartbeatMs: HEARTBEAT_MS,
    originHeadMs: EGRESS_TIMES.headMs,
    originStallMs: EGRESS_TIMES.stallMs,
    originTotalMs: EGRESS_TIMES.totalMs,
    requireToken: config.REQUIRE_TOKEN,
  };
}

/** Lowers the limits to Origo's settings. Origo has checked `values`; a value of a wrong type is ignored. */
export function narrowed(own: Limits, values: ProxyControl["values"]): Limits {
  const least = (name: keyof Limits, mine: number): number => {
    const value = values[`proxy.${name}`];
    return typeof value === "number" ? Math.min(mine, value) : mine;
  };
  const numberOr = (name: keyof Limits, preset: number): number => {
    const value = values[`proxy.${name}`];
    return typeof value === "number" ? value : preset;
  };
  const unlimited = (rate: number): number => (rate === 0 ? Infinity : rate);
  const rate = Math.min(unlimited(own.rateBytesPerSec), unlimited(numberOr("rateBytesPerSec", 0)));
  return {
    rateBytesPerSec: rate === Infinity ? 0 : rate,
    cacheBytes: least("cacheBytes", own.cacheBytes),
    pinnedBytes: least("pinnedBytes", own.pinnedBytes),
    cacheKeepMs: least("cacheKeepMs", own.cacheKeepMs),
    sessionsMax: least("sessionsMax", own.sessionsMax),
    sessionIdleMs: numberOr("sessionIdleMs", own.sessionIdleMs),
    httpConnectionsMax: least("httpConnectionsMax", own.httpConnectionsMax),
    heartbeatMs: numberOr("heartbeatMs", own.heartbeatMs),
    originHeadMs: least("originHeadMs", own.originHeadMs),
    originStallMs: least("originStallMs", own.originStallMs),
    originTotalMs: least("originTotalMs", own.originTotalMs),
    requireToken: own.requireToken || values["proxy.requireToken"] === true,
  };
}
