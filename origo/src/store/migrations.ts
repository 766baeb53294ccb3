/**
 * Migrations: how the tables came to be, one step a version, the same for both databases except where one cannot do
 * what the other does. A step that has been released is never edited; a new one is added at the end.
 */
import type { Database, Kind, Queries } from "./database";

interface Migration {
  version: number;
  statements: (kind: Kind) => readonly string[];
}

/** Version 1 was DuckDB only; PostgreSQL passes through it empty. */
const FIRST: readonly string[] = [
  `CREATE TABLE downloads (
    id UUID, seq BIGINT, received_at_ms DOUBLE PRECISION, client_id UUID, started_at_ms DOUBLE PRECISION, source VARCHAR, url VARCHAR,
    range_start BIGINT, range_end BIGINT, mode VARCHAR, connections BIGINT, status BIGINT, net_bytes BIGINT, gross_bytes BIGINT,
    duration_ms DOUBLE PRECISION, first_byte_ms DOUBLE PRECISION, first_packet_ms DOUBLE PRECISION, server_fetch_ms DOUBLE PRECISION,
    throughput_bytes_per_sec DOUBLE PRECISION, goodput_bytes_per_sec DOUBLE PRECISION, normalized_goodput DOUBLE PRECISION,
    outcome VARCHAR, error_kind VARCHAR, error_message VARCHAR, fallback_reason VARCHAR, fallback_bytes BIGINT, sha256 VARCHAR,
    generation_size BIGINT, window_packets BIGINT, symbol_bytes BIGINT, comment VARCHAR, PRIMARY KEY (id))`,
  `CREATE TABLE download_proxies (
    download_id UUID, position BIGINT, proxy_id VARCHAR, name VARCHAR, bytes BIGINT, packets BIGINT, innovative BIGINT,
    duplicate BIGINT, late BIGINT, rejected BIGINT, lost BIGINT, rtt_ms DOUBLE PRECISION, state VARCHAR, error VARCHAR,
    PRIMARY KEY (download_id, position))`,
  `CREATE TABLE errors (
    id UUID, seq BIGINT, received_at_ms DOUBLE PRECISION, client_id UUID, at_ms DOUBLE PRECISION, source VARCHAR, kind VARCHAR,
    message VARCHAR, url VARCHAR, PRIMARY KEY (id))`,
];

const SECOND: readonly string[] = ["ALTER TABLE download_proxies ADD COLUMN transport VARCHAR"];

/** One row a download, its proxies as JSON in it: a third of the writing, and no join for what is asked most. */
const ONE_ROW = `seq BIGINT DEFAULT nextval('downloads_seq'), id UUID NOT NULL, client_id UUID NOT NULL, received_at_ms DOUBLE PRECISION NOT NULL,
  started_at_ms DOUBLE PRECISION NOT NULL, source TEXT, client_version TEXT, agent TEXT, os TEXT, player TEXT, config_version BIGINT,
  experiments TEXT, comment TEXT, user_comment TEXT, url TEXT, content_type TEXT, range_start BIGINT, range_end BIGINT, status BIGINT,
  total_bytes BIGINT, sha256 TEXT, mode TEXT, connections BIGINT, generation_size BIGINT, window_packets BIGINT, symbol_bytes BIGINT,
  feedback_every_packets BIGINT, feedback_every_ms DOUBLE PRECISION, engine TEXT, outcome TEXT, error_kind TEXT, error_message TEXT,
  fallback_reason TEXT, fallback_bytes BIGINT, duration_ms DOUBLE PRECISION, connect_ms DOUBLE PRECISION, head_ms DOUBLE PRECISION,
  first_byte_ms DOUBLE PRECISION, first_packet_ms DOUBLE PRECISION, server_fetch_ms DOUBLE PRECISION, close_ms DOUBLE PRECISION,
  net_bytes BIGINT, gross_bytes BIGINT, direct_bytes BIGINT, generation_count BIGINT, symbol_count BIGINT, feedback_frames BIGINT,
  proxies_used BIGINT, proxies_failed BIGINT, packets BIGINT, innovative BIGINT, duplicate BIGINT, late BIGINT, rejected BIGINT, lost BIGINT,
  rtt_ms_min DOUBLE PRECISION, transport TEXT, proxies TEXT NOT NULL`;

const COPY_OLD = `INSERT INTO downloads_3 BY NAME
  SELECT d.* EXCLUDE (throughput_bytes_per_sec, goodput_bytes_per_sec, normalized_goodput), coalesce(p.proxies_used, 0) AS proxies_used, coalesce(p.proxies_failed, 0) AS proxies_failed, coalesce(p.packets, 0) AS packets,
    coalesce(p.innovative, 0) AS innovative, coalesce(p.duplicate, 0) AS duplicate, coalesce(p.late, 0) AS late,
    coalesce(p.rejected, 0) AS rejected, coalesce(p.lost, 0) AS lost, p.rtt_ms_min, p.transport, coalesce(p.proxies, '[]') AS proxies
  FROM downloads d LEFT JOIN (
    SELECT download_id, count(*) AS proxies_used, count(*) FILTER (state = 'failed') AS proxies_failed, sum(packets)::BIGINT AS packets,
      sum(innovative)::BIGINT AS innovative, sum(duplicate)::BIGINT AS duplicate, sum(late)::BIGINT AS late, sum(rejected)::BIGINT AS rejected,
      sum(lost)::BIGINT AS lost, min(rtt_ms) AS rtt_ms_min,
      CASE WHEN count(DISTINCT coalesce(transport, 'http')) > 1 THEN 'mixed' ELSE min(coalesce(transport, 'http')) END AS transport,
      to_json(list({id: proxy_id, name: name, bytes: bytes, packets: packets, innovative: innovative, duplicate: duplicate, late: late,
        rejected: rejected, lost: lost, rttMs: rtt_ms, transport: transport, state: state, error: error} ORDER BY position))::VARCHAR AS proxies
    FROM download_proxies GROUP BY download_id) p ON p.download_id = d.id
  ORDER BY d.seq`;

/**
 * The file of version 2 holds `seq` 1, 2, 3 ... without a gap, so that drawing one number a row brings the sequence
 * level.
 */
const level = (table: string): string => `SELECT max(nextval('${table}_seq')) FROM ${table}`;

const third = (kind: Kind): readonly string[] => [
  "CREATE SEQUENCE downloads_seq",
  "CREATE SEQUENCE errors_seq",
  `CREATE TABLE downloads_3 (${ONE_ROW})`,
  `CREATE TABLE errors_3 (seq BIGINT DEFAULT nextval('errors_seq'), id UUID NOT NULL, received_at_ms DOUBLE PRECISION NOT NULL, client_id UUID,
    at_ms DOUBLE PRECISION NOT NULL, source TEXT, kind TEXT, message TEXT, url TEXT)`,
  ...(kind === "duckdb"
    ? [COPY_OLD, "INSERT INTO errors_3 BY NAME SELECT * FROM errors ORDER BY seq", level("downloads"), level("errors")]
    : []),
  "DROP TABLE download_proxies",
  "DROP TABLE downloads",
  "DROP TABLE errors",
  "ALTER TABLE downloads_3 RENAME TO downloads",
  "ALTER TABLE errors_3 RENAME TO errors",
  "CREATE TABLE traces (id UUID NOT NULL, received_at_ms DOUBLE PRECISION NOT NULL, packed BYTEA NOT NULL)",
  // DuckDB finds a row by scanning its column of ids, which costs less than keeping an index up.
  ...(kind === "postgres"
    ? [
        "ALTER TABLE downloads ADD PRIMARY KEY (id)",
        "ALTER TABLE errors ADD PRIMARY KEY (id)",
        "ALTER TABLE traces ADD PRIMARY KEY (id)",
        "CREATE INDEX downloads_seq_index ON downloads (seq)",
        "CREATE INDEX errors_seq_index ON errors (seq)",
      ]
    : []),
];

/**
 * What people do through the dashboard. Lists of settings, experiments and views are JSON text: nothing is asked of
 * their inside.
 */
const ADMINISTRATION: readonly string[] = [
  "CREATE TABLE users (name VARCHAR PRIMARY KEY, password VARCHAR, role VARCHAR, created_at_ms DOUBLE PRECISION, last_login_ms DOUBLE PRECISION)",
  "CREATE TABLE logins (id VARCHAR PRIMARY KEY, user_name VARCHAR, csrf_token VARCHAR, expires_at_ms DOUBLE PRECISION)",
  "CREATE TABLE proxy_states (id VARCHAR PRIMARY KEY, state VARCHAR, name VARCHAR)",
  "CREATE TABLE config_versions (version INTEGER PRIMARY KEY, author VARCHAR, reason VARCHAR, at_ms DOUBLE PRECISION, content VARCHAR)",
  "CREATE TABLE experiments (id VARCHAR PRIMARY KEY, created_at_ms DOUBLE PRECISION, content VARCHAR)",
  "CREATE TABLE views (id VARCHAR PRIMARY KEY, created_at_ms DOUBLE PRECISION, content VARCHAR)",
  "CREATE TABLE secrets (name VARCHAR PRIMARY KEY, content VARCHAR)",
];

const MIGRATIONS: readonly Migration[] = [
  { version: 1, statements: () => FIRST },
  { version: 2, statements: () => SECOND },
  { version: 3, statements: third },
  { version: 4, statements: () => ADMINISTRATION },
];

/** Brings the tables to the newest version, each step whole or not at all. Throws on tables newer than this Origo. */
export async function migrate(database: Database): Promise<void> {
  const newest = MIGRATIONS[MIGRATIONS.length - 1]?.version ?? 0;
  // Several Origos may start at once over one PostgreSQL: the first one migrates, the others wait.
  await database.exclusive(async (inside) => {
    await inside.run("CREATE TABLE IF NOT EXISTS origo_schema (version INTEGER)");
    const version = await versionOf(inside);
    if (version > newest) {
      throw new Error(
        `the database has schema version ${version}, this Origo reads up to version ${newest}: use a newer Origo, or another database`,
      );
    }
    for (const migration of MIGRATIONS.filter((step) => step.version > version)) {
      for (const statement of migration.statements(database.kind)) await inside.run(statement);
    }
    await inside.run("DELETE FROM origo_schema");
    await inside.run("INSERT INTO origo_schema VALUES ($1)", [newest]);
  });
}

async function versionOf(inside: Queries): Promise<number> {
  const [row] = await inside.all("SELECT version FROM origo_schema");
  return Number(row?.["version"] ?? 0);
}
