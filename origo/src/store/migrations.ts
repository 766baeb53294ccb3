/**
 * Migrations: how the tables came to be, one step a version, the same for both databases except where one cannot do what the
 * other does. A step that has been released is never edited; a new one is added at the end.
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

const MIGRATIONS: readonly Migration[] = [
  { version: 1, statements: () => FIRST },
];

/** Brings the tables to the newest version, each step whole or not at all. Throws on tables newer than this Origo. */
export async function migrate(database: Database): Promise<void> {
  const newest = MIGRATIONS[MIGRATIONS.length - 1]?.version ?? 0;
  await database.run("CREATE TABLE IF NOT EXISTS origo_schema (version INTEGER)");
  await database.transaction(async (inside) => {
    // Several Origos may start at once over one PostgreSQL: the first one migrates, the others wait here.
    if (database.kind === "postgres") await inside.run("LOCK TABLE origo_schema IN EXCLUSIVE MODE");
    const version = await versionOf(inside);
    if (version > newest) {
      throw new Error(`the database has schema version ${version}, this Origo reads up to version ${newest}: use a newer Origo, or another database`);
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
