/**
 * Fleet: the endpoints that list proxies, for clients and for the dashboard. Proxies themselves connect by
 * proxy-link.ts.
 */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { FleetAction } from "@tributary/contract/admin-schema";

import type { Configuration } from "./configuration";
import type { Convictions } from "./convictions";
import type { Enrolment } from "./enrolment";
import type { PlaceOf } from "./geo";
import { countOrRefuse, endpoint, notFound, Refusal, whole, type Call, type Endpoint } from "./http";
import { RateLimit } from "./rate-limit";
import type { Registry } from "./registry";
import { FleetResponse, ProxiesResponse, SCHEMA_LIMITS } from "@tributary/contract/schema";
import { limitKeyOf, networkOf } from "./network";
import { SELECTIONS } from "./selection";
import type { AdminStore, StoredDecision } from "./store/admin-store";
import type { TokenSigner } from "./token";

export interface FleetOptions {
  registry: Registry;
  convictions: Convictions;
  configuration: Configuration;
  adminStore: AdminStore;
  enrolment: Enrolment;
  tokens: TokenSigner;
  /** Counts the lists of each address. */
  lists: RateLimit;
  placeOf: PlaceOf;
  /** Milliseconds since the epoch. It must not jump. */
  nowMs: () => number;
  /** Each call gives a u32. */
  rng: () => number;
  /** Called when something was decided about a proxy. */
  onDecision: (id: string) => void;
}

const list = (query: string | undefined): string[] => (query ?? "").split(",").filter((item) => item !== "");
const id = z.string().max(SCHEMA_LIMITS.idChars);

/** What a client may ask of a list of proxies. */
export const ListQuery = z
  .object({
    count: whole(1, SCHEMA_LIMITS.proxiesPerList, SCHEMA_LIMITS.proxiesPerList),
    exclude: z.string().optional().transform(list).pipe(z.array(id).max(SCHEMA_LIMITS.excludedPerList)),
    select: z.enum(SELECTIONS).optional(),
    /** Proxies that the client keeps using. The token is valid for them too. */
    keep: z.string().optional().transform(list).pipe(z.array(id).max(SCHEMA_LIMITS.proxiesPerList)),
    /** The client that gets the token. Without it the token has a new random id. */
    client: z.string().uuid().toLowerCase().optional(),
  })
  .strict();

/** The lists of each address are counted for this time, since each list comes with a token. */
const LISTS_WINDOW_MS = 10_000;
/** This many addresses are counted. */
const ADDRESSES_MAX = 50_000;

/** Counts the lists of each address. */
export const listLimit = (configuration: Configuration): RateLimit =>
  new RateLimit({
    limit: () => configuration.value("origo.listsPerAddress"),
    windowMs: () => LISTS_WINDOW_MS,
    keysMax: ADDRESSES_MAX,
  });

export const fleetEndpoints = (options: FleetOptions): Endpoint[] => [
  listEndpoint(options),
  ...otherEndpoints(options),
];

const listEndpoint = (options: FleetOptions): Endpoint =>
  endpoint({
    method: "get",
    path: "/v1/proxies",
    access: "open",
    summary: "Get live proxies for a client, and a token for them",
    query: ListQuery,
    answer: ProxiesResponse,
    handle: (call) => proxiesFor(call, options),
  });

/** Live proxies for a client, those in `first` before the others, and a token for them. Throws a Refusal. */
export function proxiesFor(
  { query, request, response }: Call<z.output<typeof ListQuery>>,
  options: FleetOptions,
  first: ReadonlySet<string> = new Set(),
): ProxiesResponse {
  const { registry, configuration, lists, rng, nowMs } = options;
  const tooMany = (seconds: number): string => `this address asked for too many lists: wait ${seconds} s`;
  countOrRefuse(lists, limitKeyOf(request.ip ?? ""), nowMs(), tooMany);
  response.set("Cache-Control", "no-store");
  const select = query.select ?? configuration.value("origo.selection");
  const place = select === "near" ? options.placeOf(request.ip ?? "") : undefined;
  const selection = { select, place, nearKm: configuration.value("origo.nearKm") };
  const proxies = registry.pick(query.count, new Set(query.exclude), rng, nowMs(), selection, first);
  const ids = [...proxies.map((proxy) => proxy.id), ...registry.usable(query.keep, nowMs())];
  const token = tokenFor(options, ids, query.client);
  return { proxies, token, ...(request.ip === undefined ? {} : { network: networkOf(request.ip) }) };
}

const otherEndpoints = (options: FleetOptions): Endpoint[] => [
  endpoint({
    method: "get",
    path: "/v1/fleet",
    access: "viewer",
    summary: "List the live proxies with their last reports",
    answer: FleetResponse,
    handle: () => fleetOf(options),
  }),
  endpoint({
    method: "post",
    path: "/v1/fleet/:id",
    access: "admin",
    summary: "Drain, disable, enable or rename a proxy until someone changes it again, or clear its convictions",
    body: FleetAction,
    answer: FleetResponse,
    handle: async ({ params, body }) => {
      const { registry, convictions, adminStore, enrolment, nowMs, onDecision } = options;
      const proxyId = params["id"] ?? "";
      if (!registry.fleet(nowMs()).some((proxy) => proxy.id === proxyId))
        throw notFound(`there is no live proxy ${proxyId}`);
      if (body.action === "rename" && !(await enrolment.isFree(proxyId, body.name)))
        throw new Refusal(409, { kind: "nameTaken", field: "name", message: `name: another proxy is ${body.name}` });
      const decision = decide(registry.decisionOn(proxyId), body);
      if (body.action === "enable" || body.action === "clear") await convictions.forget(proxyId);
      await adminStore.decide(proxyId, decision);
      registry.decide(proxyId, decision);
      onDecision(proxyId);
      return fleetOf(options);
    },
  }),
  endpoint({
    method: "get",
    path: "/.well-known/tributary-keys.json",
    access: "open",
    summary: "Get the public keys of the tokens (JWK Set)",
    answer: z.object({ keys: z.array(z.record(z.string(), z.string())) }),
    handle: () => options.tokens.jwks(),
  }),
];

export type FleetView = Pick<FleetOptions, "registry" | "convictions" | "nowMs">;

export function fleetOf({ registry, convictions, nowMs }: FleetView): FleetResponse {
  const now = nowMs();
  const proxies = registry.fleet(now).map((proxy) => {
    const convictedBy = convictions.countOf(proxy.id);
    const hintedBy = convictions.countOf(proxy.id, "hint");
    const { isConvicted } = registry.decisionOn(proxy.id);
    return {
      ...proxy,
      ...(convictedBy === 0 ? {} : { convictedBy }),
      ...(hintedBy === 0 ? {} : { hintedBy }),
      ...(isConvicted ? { disabledFor: "convictions" as const } : {}),
    };
  });
  return { nowMs: now, proxies };
}

function decide(before: StoredDecision, action: FleetAction): StoredDecision {
  if (action.action === "rename") return { ...before, name: action.name };
  const state = before.isConvicted ? "live" : before.state;
  if (action.action === "clear") return { ...before, state, isConvicted: false };
  return {
    ...before,
    isConvicted: false,
    state: ({ drain: "draining", disable: "disabled", enable: "live" } as const)[action.action],
  };
}

/** A token for these proxies. Without `client` it has a new random id. */
export function tokenFor(
  { configuration, tokens, nowMs }: FleetOptions,
  ids: readonly string[],
  client: string | undefined,
): string {
  const iat = Math.floor(nowMs() / 1000);
  return tokens.sign({
    iss: "origo",
    sub: client ?? randomUUID(),
    aud: [...new Set(ids)],
    jti: randomUUID(),
    bytes: configuration.value("origo.tokenBytes"),
    iat,
    exp: iat + 60 * configuration.value("origo.tokenMinutes"),
  });
}
