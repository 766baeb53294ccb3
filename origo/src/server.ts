/**
 * Server: one running Origo: registry, stores, HTTP API, proxy link and dashboard link on one port. It reads no
 * environment variables; main.ts does.
 */
import { randomBytes } from "node:crypto";
import { createServer, type RequestListener, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { oneByOne } from "@tributary/contract/one-by-one";
import { Access } from "./access";
import { makeApp } from "./app";
import { Cluster } from "./cluster";
import { Configuration } from "./configuration";
import { Convictions } from "./convictions";
import { attachDashboardLink } from "./dashboard-link";
import { Decisions } from "./decisions";
import { Enrolment } from "./enrolment";
import { openGeo } from "./geo";
import { limitTime, REQUEST_MS_MAX } from "./http";
import { Holders } from "./holders";
import { inTurn } from "./in-turn";
import { INTAKE_LIMITS, IntakeGate, PUBLISHING_LIMITS } from "./intake-gate";
import { attachProxyLink, type ProxyLink } from "./proxy-link";
import { OwnPublisher } from "./own-publisher";
import { Publications } from "./publications";
import { Publishers } from "./publishers";
import { Registry } from "./registry";
import { repeat } from "./repeat";
import { startRetention } from "./retention";
import { listLimit } from "./routes-fleet";
import { watchStalls } from "./stalls";
import { Store } from "./store/index";
import { AdminStore } from "./store/admin-store";
import { ConvictionStore } from "./store/conviction-store";
import { EnrolmentStore } from "./store/enrolment-store";
import { PublicationStore } from "./store/publication-store";
import { PublisherStore } from "./store/publisher-store";
import { makeLog, Telemetry, type Log } from "./telemetry";
import { newTokenKey, TokenSigner } from "./token";

/** What has been pending for too long is looked for this often. */
const DROP_EVERY_MS = 3_600_000;
/** Running requests get this long to finish at shutdown. */
const DRAIN_MS_MAX = 5000;

export interface OrigoOptions {
  host: string;
  /** 0 means any free port. */
  port: number;
  dataDir: string;
  /** Where the code for the next new proxy is kept. Default: `enrolment-code` in `dataDir`. */
  codeFile?: string | undefined;
  /** The address of a PostgreSQL database, instead of a file in `dataDir`. */
  databaseUrl?: string | undefined;
  /** The address of a Redis server, through which several Origos over one PostgreSQL share their proxies. */
  redisUrl?: string | undefined;
  /** Records, reports and traces are deleted after this time, unless the configuration sets another. Default: never. */
  retentionDays?: number | undefined;
  dashboardDir: string;
  /** Use `off` on loopback only: everyone who reaches the port is then an admin. */
  login: "required" | "off";
  /** A database of the places of addresses, in MMDB format. */
  geoFile?: string | undefined;
  trustedHops?: number;
  pageOrigins?: readonly string[];
  /** Default: no log. */
  log?: Log;
  /** Milliseconds since the epoch, without jumps. Default: the monotonic clock. */
  nowMs?: () => number;
}

export interface Origo {
  readonly url: string;
  /** The path of the one-time link that creates the first admin. Undefined when no first admin is needed. */
  readonly setupPath: string | undefined;
  /** Stops taking requests, lets running ones finish for at most 5 s, and closes the store. Safe to call twice. */
  close(): Promise<void>;
}

/** Throws when the port is taken, or when the store or Redis cannot be opened. It then leaves nothing open. */
export async function startOrigo(options: OrigoOptions): Promise<Origo> {
  const nowMs = options.nowMs ?? (() => performance.timeOrigin + performance.now());
  const placeOf = await openGeo(options.geoFile);
  const log = options.log ?? makeLog("silent");
  const stores = await openStores(options, log);
  let cluster: Cluster | undefined;
  try {
    cluster = options.redisUrl === undefined ? undefined : await Cluster.open({ redisUrl: options.redisUrl, log });
    return await serve(options, stores, { nowMs, placeOf, log, cluster });
  } catch (error) {
    await cluster?.close();
    await stores.close();
    throw stores.store.explain(error as Error);
  }
}

interface Stores {
  store: Store;
  adminStore: AdminStore;
  close: () => Promise<void>;
}

async function openStores({ dataDir, databaseUrl }: OrigoOptions, log: Log): Promise<Stores> {
  const store = await Store.open(dataDir, databaseUrl, (message) => log.warn({ event: "recordsLost", message }));
  return { store, adminStore: new AdminStore(store.database), close: () => store.close() };
}

type Surroundings = Pick<Parameters<typeof makeApp>[0], "nowMs" | "placeOf" | "log"> & { cluster: Cluster | undefined };

async function serve(options: OrigoOptions, stores: Stores, surroundings: Surroundings): Promise<Origo> {
  const { nowMs, placeOf, log, cluster } = surroundings;
  const { store, adminStore } = stores;
  const configuration = new Configuration(adminStore, nowMs);
  const stalls = watchStalls(() => performance.now());
  const registry = new Registry({
    heartbeatMs: () => configuration.value("proxy.heartbeatMs"),
    proxiesMax: () => configuration.value("origo.proxiesMax"),
    stalledMs: () => stalls.stalledMs(),
  });
  let proxies: ProxyLink | undefined;
  const decisions = new Decisions(adminStore, registry, (id) => proxies?.handleDecision(id));
  const enrolment = new Enrolment({
    store: new EnrolmentStore(store.database),
    configuration,
    nowMs,
    codeFile: options.codeFile ?? join(options.dataDir, "enrolment-code"),
    onProblem: (reason) => log.warn({ event: "codeFileFailed", reason }),
  });
  const convictions = new Convictions({
    store: new ConvictionStore(store.database),
    key: await adminStore.secret("convictionKey", newSecret),
    nowMs,
  });
  const tellOthers = (): void => cluster?.tellChange();
  const publishers = new Publishers({
    store: new PublisherStore(store.database),
    addCode: enrolment.addCode,
    configuration,
    nowMs,
  });
  const holders = new Holders(() => configuration.value("origo.objectsMax"));
  const publicationStore = new PublicationStore(store.database);
  const rng = (): number => randomBytes(4).readUInt32LE();
  const publications = new Publications({
    store: publicationStore,
    publishers,
    holders,
    registry,
    configuration,
    nowMs,
    rng,
    forget: (id, objects) => proxies?.forget(id, objects),
    onChange: () => tellOthers(),
  });
  const refresh = inTurn(async () => {
    await configuration.refresh();
    await decisions.refresh();
    await convictions.refresh();
    await enrolment.refresh();
    await publishers.refresh();
    await publications.refresh();
    proxies?.handleRevoked();
  });
  configuration.on("change", () => Object.assign(store.settings, configuration.origoSettings()));
  await refresh();

  await publications.dropPending();

  let records = 0;
  let closed: Promise<void> | undefined;
  const tokens = new TokenSigner(await adminStore.secret("tokenKey", newTokenKey));
  const deviceKey = await adminStore.secret("deviceKey", newSecret);
  const access = new Access({ store: adminStore, login: options.login, nowMs, configuration, deviceKey });
  const telemetry = new Telemetry({
    fleet: () => registry.fleet(nowMs()),
    storageBytes: () => store.storageBytes().catch(() => undefined),
  });
  const app = makeApp({
    registry,
    convictions,
    configuration,
    adminStore,
    store,
    intakeGate: new IntakeGate({ configuration, limits: INTAKE_LIMITS, nowMs }),
    enrolment,
    lists: listLimit(configuration),
    publishers,
    publications,
    publicationStore,
    publishingGate: new IntakeGate({ configuration, limits: PUBLISHING_LIMITS, nowMs }),
    ownPublisher: new OwnPublisher(adminStore, publishers, publications),
    onPublishers: tellOthers,
    onRevoked: () => {
      proxies?.handleRevoked();
      tellOthers();
    },
    tokens,
    access,
    telemetry,
    log,
    placeOf,
    nowMs,
    rng,
    dashboardDir: options.dashboardDir,
    siteRulesFile: join(options.dataDir, "site-rules.json"),
    trustedHops: options.trustedHops ?? 0,
    pageOrigins: options.pageOrigins ?? [],
    closing: () => closed !== undefined,
    onDecision: (id) => {
      decisions.noteOwn();
      proxies?.handleDecision(id);
      tellOthers();
    },
    onConviction: tellOthers,
    onHint: (id, network) => {
      if (!registry.fleet(nowMs()).some((proxy) => proxy.id === id)) return;
      convictions
        .hint(id, network)
        .catch((error: Error) => log.warn({ event: "hintFailed", proxy: id, reason: error.message }));
    },
    onIntake: (kind, { accepted, duplicate }) => {
      telemetry.noteIntake(kind, accepted, duplicate);
      if (kind === "record") records += accepted;
    },
  });
  const http = await listen(app, options.port, options.host);
  const trustedHops = options.trustedHops ?? 0;
  const link = (proxies = attachProxyLink(http, {
    registry,
    enrolment,
    holders,
    publications,
    trustedHops,
    nowMs,
    configuration,
    tokens,
  }));
  // Each endpoint may have its own time limit, so the server has none. This listener runs before socket.io's, so the
  // limit also holds for the requests of socket.io.
  http.prependListener("request", (request) => limitTime(request, REQUEST_MS_MAX));
  const pages = attachDashboardLink(link.io, {
    access,
    registry,
    convictions,
    configuration,
    records: () => records + (cluster?.recordsElsewhere ?? 0),
    nowMs,
    packetLimit: link.packetLimit,
  });
  const refreshNow = (): Promise<void> =>
    refresh().catch((error: Error) => log.warn({ event: "refreshFailed", reason: error.message }));
  const refreshing = repeat(refreshNow, () => configuration.value("origo.refreshMs"));
  configuration.on("change", tellOthers);
  await cluster?.join({ registry, holders, records: () => records, nowMs }, () => void refreshNow());
  const dropping = repeat(
    async () => {
      const drops = [publications.dropPending(), convictions.drop()];
      await Promise.all(drops).catch((error: Error) => log.warn({ event: "dropFailed", reason: error.message }));
    },
    () => DROP_EVERY_MS,
  );
  const retention = await startRetention({ store, configuration, daysDefault: options.retentionDays, nowMs, log });
  const setupToken = await access.makeSetupToken();
  const close = async (): Promise<void> => {
    for (const part of [refreshing, dropping, retention, pages, stalls]) part.close();
    const cut = setTimeout(() => http.closeAllConnections(), DRAIN_MS_MAX);
    const stopped = link.io.close();
    http.closeIdleConnections();
    await stopped;
    clearTimeout(cut);
    await cluster?.close();
    await stores.close();
  };
  return {
    url: urlOf(http, options.host),
    setupPath: setupToken && `/#setup=${setupToken}`,
    close: () => (closed ??= close()),
  };
}

const newSecret = (): string => randomBytes(32).toString("base64url");

function urlOf(http: HttpServer, host: string): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${(http.address() as AddressInfo).port}`;
}

function listen(app: RequestListener, port: number, host: string): Promise<HttpServer> {
  const http = createServer(
    { requestTimeout: 0, headersTimeout: 10_000, connectionsCheckingInterval: 2000 },
    oneByOne(app),
  );
  return new Promise((resolve, reject) => {
    http.once("error", reject);
    http.listen(port, host, () => {
      http.off("error", reject);
      resolve(http);
    });
  });
}
