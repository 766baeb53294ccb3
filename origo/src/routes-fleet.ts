/** Fleet: which proxies there are, for clients and for the dashboard. Proxies themselves do not come in here: proxy-link.ts. */
import { z } from "zod";
import { endpoint, whole, type Endpoint } from "./http";
import type { Registry } from "./registry";
import { FleetResponse, ProxiesResponse, SCHEMA_LIMITS } from "./schema";

export interface FleetOptions {
  registry: Registry;
  /** Milliseconds since the epoch; must not jump. */
  nowMs: () => number;
  /** u32 a call. */
  rng: () => number;
}

const ListQuery = z.object({
  count: whole(1, SCHEMA_LIMITS.proxiesPerList, SCHEMA_LIMITS.proxiesPerList),
  exclude: z.string().optional().transform((list) => (list ?? "").split(",").filter((id) => id !== ""))
    .pipe(z.array(z.string().max(SCHEMA_LIMITS.idChars)).max(SCHEMA_LIMITS.excludedPerList)),
}).strict();

export const fleetEndpoints = ({ registry, nowMs, rng }: FleetOptions): Endpoint[] => [
  endpoint({
    method: "get", path: "/v1/proxies", access: "open", summary: "Live proxies for a client", query: ListQuery, answer: ProxiesResponse,
    handle: ({ query, response }) => {
      response.set("Cache-Control", "no-store");
      return { proxies: registry.pick(query.count, new Set(query.exclude), rng, nowMs()) } satisfies ProxiesResponse;
    },
  }),
  endpoint({
    method: "get", path: "/v1/fleet", access: "viewer", summary: "Live proxies with what they report", answer: FleetResponse,
    handle: () => {
      const now = nowMs();
      return { nowMs: now, proxies: registry.fleet(now) } satisfies FleetResponse;
    },
  }),
];
