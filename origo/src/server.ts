/**
 * Server: one running Origo: registry, stores, HTTP API, proxy link and dashboard link on one port. Reads no
 * environment: main.ts does.
 */
import { randomBytes } from "node:crypto";
import { stat } from "node:fs/promises";
import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Access } from "./access";
import { makeApp } from "./app";
import { Cluster } from "./cluster";
import { Configuration } from "./configuration";
import { attachDashboardLink } from "./dashboard-link";
import { openGeo } from "./geo";
import { limitTime, REQUEST_MS_MAX } from "./http";
import { inTurn } from "./in-turn";
import { attachProxyLink, type ProxyLink } from "./proxy-link";
import { Registry } from "./registry";
import { watchStalls } from "./stalls";
import { Store, TUNING_DEFAULT, type Tuning } from "./store/index";
import { AdminStore } from "./store/admin-store";
import { DUCKDB_FILE } from "./store/duckdb";
import { makeLog, Telemetry, type Log } from "./telemetry";
import { newTokenKey, TokenSigner } from "./token";

/** Requests under way get this long to finish at shutdown. */
const DRAIN_MS_MAX = 5000;
/** Old records are deleted at the start, at each change of the configuration, and this often. */
const RETENTION_EVERY_MS = 3_600_000;
const DAY_MS = 86_400_000;

export interface OrigoOptions {
  host: string;
  /** 0 = any free one. */
  port: number;
  secret: string;
  dataDir: string;
  /** PostgreSQL, in place of a file in `dataDir`. */
  databaseUrl?: string | undefined;
  /** Redis, where several Origos over one PostgreSQL share their proxies. */
  redisUrl?: string | undefined;
  /**
   * Records, reports and traces are deleted so long after they came, unless the configuration says when; default:
   * never.
   */
  retentionDays?: number | undefined;
  dashboardDir: string;
  /** `off` is for loopback only: everybody who reaches the port is an admin then. */
  login: "required" | "off";
  /** An MMDB with places of addresses. */
  geoFile?: string | undefined;
  trustedHops?: number;
  /** Default: nothing is logged. */
  log?: Log;
  /** Milliseconds since the epoch that never jump; default: the monotonic clock. */
  nowMs?: () => number;
}

export interface Origo {
  readonly url: string;
  /**
   * Path and fragment of the page that makes the first admin, once; undefined where there is one, or none is needed.
   */
  readonly setupPath: string | undefined;
  /** Stops taking requests, lets those under way finish (5 s at most), closes the store. Safe to call twice. */
  close(): Promise<void>;
}

/** Throws when the port is taken, or the store or Redis cannot be opened; then nothing is left open. */
export async function startOrigo(options: OrigoOptions): Promise<Origo> {
  const nowMs = options.nowMs ?? (() => performance.timeOrigin + performance.now());
  const placeOf = await openGeo(options.geoFile);
  const log = options.log ?? makeLog("silent");
  const stores = await openStores(options);
  let cluster: Cluster | undefined;
  try {
    cluster = options.redisUrl === undefined ? undefined : await Cluster.open({ redisUrl: options.redisUrl, log });
    return await serve(options, stores, { nowMs, placeOf, log, cluster });
  } catch (error) {
    await cluster?.close();
    await stores.close();
    throw error;
  }
}

interface Stores {
  store: Store;
  adminStore: AdminStore;
  storageBytes: () => Promise<number | undefined>;
  close: () => Promise<void>;
}

async function openStores({ dataDir, databaseUrl }: OrigoOptions): Promise<Stores> {
  const store = await Store.open(dataDir, databaseUrl);
  const { database } = store;
  const storageBytes = async (): Promise<number | undefined> => {
    if (database.kind === "duckdb")
      return stat(join(dataDir, DUCKDB_FILE)).then(
        ({ size }) => size,
        () => undefined,
      );
    const rows = await database.all("SELECT pg_database_size(current_database()) AS bytes").catch(() => []);
    return rows[0] && Number(rows[0]["bytes"]);
  };
  return { store, adminStore: new AdminStore(database), storageBytes, close: () => store.close() };
}

type Surroundings = Pick<Parameters<typeof makeApp>[0], "nowMs" | "placeOf" | "log"> & { cluster: Cluster | undefined };

async function serve(
  options: OrigoOptions,
  stores: Stores,
  { nowMs, placeOf, log, cluster }: Surroundings,
): Promise<Origo> {
  const { store, adminStore } = stores;
  const configuration = new Configuration(adminStore, nowMs);
  const stalls = watchStalls(() => performance.now());
  const registry = new Registry({
    heartbeatMs: () => configuration.number("proxy.heartbeatMs"),
    beatsMissedMax: () => configuration.number("origo.beatsMissedMax"),
    proxiesMax: () => configuration.number("origo.proxiesMax"),
    stalledMs: () => stalls.stalledMs(),
  });
  const links: { proxies?: ProxyLink } = {};
  let [records, decisions] = [0, 0];
  const refresh = inTurn(async () => {
    await configuration.refresh();
    let [read, states] = [decisions, await adminStore.proxyStates()];
    // What was read beside a decision may be from before it.
    while (read !== decisions) [read, states] = [decisions, await adminStore.proxyStates()];
    for (const { id, state, name } of states) {
      const before = registry.decisionOn(id);
      if (before.state === state && before.name === name) continue;
      registry.decide(id, { state, name });
      links.proxies?.handleDecision(id);
    }
  });
  const tune = (): void => {
    for (const name of Object.keys(TUNING_DEFAULT) as (keyof Tuning)[])
      store.tuning[name] = configuration.number(`origo.${name}`);
  };
  configuration.on("change", tune);
  await refresh();
  const tokens = new TokenSigner(await adminStore.secret("tokenKey", newTokenKey));
  const access = new Access({ store: adminStore, login: options.login, nowMs, configuration });
  const telemetry = new Telemetry({ fleet: () => registry.fleet(nowMs()), storageBytes: stores.storageBytes });
  let closed: Promise<void> | undefined;
  const tellOthers = (): void => cluster?.tellChange();
  const app = makeApp({
    registry,
    configuration,
    adminStore,
    store,
    tokens,
    access,
    telemetry,
    log,
    placeOf,
    nowMs,
    rng: () => randomBytes(4).readUInt32LE(),
    dashboardDir: options.dashboardDir,
    siteRulesFile: join(options.dataDir, "site-rules.json"),
    trustedHops: options.trustedHops ?? 0,
    closing: () => closed !== undefined,
    onDecision: (id) => {
      decisions++;
      links.proxies?.handleDecision(id);
      tellOthers();
    },
    onIntake: (kind, { accepted, duplicate }) => {
      telemetry.noteIntake(kind, accepted, duplicate);
      if (kind === "record") records += accepted;
    },
  });
  const http = createServer({ requestTimeout: 0, headersTimeout: 10_000 }, app);
  await listen(http, options.port, options.host);
  const proxies = attachProxyLink(http, { registry, secret: options.secret, nowMs, configuration, tokens });
  // In place of a limit of the server: an endpoint may have its own. Before socket.io, whose requests it is for too.
  http.prependListener("request", (request) => limitTime(request, REQUEST_MS_MAX));
  const pages = attachDashboardLink(proxies.io, {
    access,
    registry,
    configuration,
    records: () => records + (cluster?.recordsElsewhere ?? 0),
    nowMs,
  });
  links.proxies = proxies;
  const refreshNow = (): Promise<void> =>
    refresh().catch((error: Error) => log.warn({ event: "refreshFailed", reason: error.message }));
  const refreshLater = (): NodeJS.Timeout =>
    setTimeout(
      () => void refreshNow().finally(() => closed ?? (refreshing = refreshLater())),
      configuration.number("origo.refreshMs"),
    );
  let refreshing = refreshLater();
  configuration.on("change", tellOthers);
  await cluster?.join({ registry, records: () => records, nowMs }, () => void refreshNow());
  const deleteOld = async (): Promise<void> => {
    const days = configuration.number("origo.retentionDays") || options.retentionDays;
    if (days === undefined) return;
    await store
      .deleteBefore(nowMs() - days * DAY_MS)
      .catch((error: Error) => log.warn({ event: "retentionFailed", reason: error.message }));
  };
  await deleteOld();
  configuration.on("change", () => void deleteOld());
  const deleting = setInterval(() => void deleteOld(), RETENTION_EVERY_MS);
  const close = async (): Promise<void> => {
    clearTimeout(refreshing);
    clearInterval(deleting);
    pages.close();
    stalls.close();
    const cut = setTimeout(() => http.closeAllConnections(), DRAIN_MS_MAX);
    const stopped = proxies.io.close();
    http.closeIdleConnections();
    await stopped;
    clearTimeout(cut);
    await cluster?.close();
    await stores.close();
  };
  const setupToken = await access.makeSetupToken();
  return {
    url: urlOf(http, options.host),
    setupPath: setupToken && `/#setup=${setupToken}`,
    close: () => (closed ??= close()),
  };
}

function urlOf(http: HttpServer, host: string): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${(http.address() as AddressInfo).port}`;
}

function listen(http: HttpServer, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    http.once("error", reject);
    http.listen(port, host, () => {
      http.off("error", reject);
      resolve();
    });
  });
}
