/**
 * The tables of Origo's database, and how they are made: one schema, the same for both databases except for indexes.
 * A change to a released schema adds a step from the version before.
 */
import type { Column, Database, Kind, Queries } from "./database";
import { COLUMNS, ERROR_COLUMNS } from "./fields";
import { publicationTables } from "./publication-tables";

const SCHEMA_VERSION = 5;

const SQL_TYPES: Record<Column["kind"], string> = {
  text: "TEXT",
  whole: "BIGINT",
  real: "DOUBLE PRECISION",
  uuid: "UUID",
  time: "DOUBLE PRECISION",
};

/** A table whose rows come in batches (intake.ts) and are read in the order of their arrival, by `seq`. */
function arrivalTable(name: string, columns: readonly Column[], kind: Kind): readonly string[] {
  const listed = columns.map(
    ({ column, kind: type, required }) => `${column} ${SQL_TYPES[type]}${required ? " NOT NULL" : ""}`,
  );
  const made = [
    `CREATE SEQUENCE ${name}_seq`,
    `CREATE TABLE ${name} (seq BIGINT DEFAULT nextval('${name}_seq'), ${listed.join(", ")})`,
  ];
  // DuckDB scans the column of ids to find a row. That costs less than an index costs with each new row.
  if (kind === "duckdb") return made;
  return [...made, `ALTER TABLE ${name} ADD PRIMARY KEY (id)`, `CREATE INDEX ${name}_seq_index ON ${name} (seq)`];
}

const tracesTable = (kind: Kind): readonly string[] => [
  `CREATE TABLE traces (
    id UUID NOT NULL${kind === "postgres" ? " PRIMARY KEY" : ""},
    received_at_ms DOUBLE PRECISION NOT NULL, packed BYTEA NOT NULL)`,
];

/** What people do through the dashboard. Settings, experiments and views are JSON text, which no query looks into. */
const ADMINISTRATION: readonly string[] = [
  `CREATE TABLE users (
    name VARCHAR PRIMARY KEY, password VARCHAR, role VARCHAR, created_at_ms DOUBLE PRECISION,
    last_login_ms DOUBLE PRECISION)`,
  "CREATE TABLE logins (id VARCHAR PRIMARY KEY, user_name VARCHAR, csrf_token VARCHAR, expires_at_ms DOUBLE PRECISION)",
  "CREATE TABLE proxy_states (id VARCHAR PRIMARY KEY, state VARCHAR, name VARCHAR)",
  `CREATE TABLE config_versions (
    version INTEGER PRIMARY KEY, author VARCHAR, reason VARCHAR, at_ms DOUBLE PRECISION, content VARCHAR)`,
  "CREATE TABLE experiments (id VARCHAR PRIMARY KEY, created_at_ms DOUBLE PRECISION, content VARCHAR)",
  "CREATE TABLE views (id VARCHAR PRIMARY KEY, created_at_ms DOUBLE PRECISION, content VARCHAR)",
  "CREATE TABLE secrets (name VARCHAR PRIMARY KEY, content VARCHAR)",
];

/** Version 2: which proxies may connect, and the codes that let them in. */
const ENROLMENT: readonly string[] = [
  `CREATE TABLE proxy_keys (
    id VARCHAR PRIMARY KEY, name VARCHAR, public_key VARCHAR, enrolled_at_ms DOUBLE PRECISION, author VARCHAR,
    connected_at_ms DOUBLE PRECISION, revoked_at_ms DOUBLE PRECISION)`,
  `CREATE TABLE enrolment_codes (
    digest VARCHAR PRIMARY KEY, author VARCHAR, expires_at_ms DOUBLE PRECISION, used_by VARCHAR)`,
];

/**
 * Version 3, with the tables of publications: who vouches for a download. The table of version 1 gets a column for it
 * at its end.
 */
const VOUCHERS = "ALTER TABLE downloads ADD COLUMN IF NOT EXISTS vouched_by TEXT";

/** Version 4: which proxies clients accused, and which ones Origo disabled for it. */
const convictionTables = (kind: Kind): readonly string[] => [
  `CREATE TABLE convictions (
    kind VARCHAR, proxy VARCHAR, network VARCHAR, at_ms DOUBLE PRECISION${
      kind === "postgres" ? ", PRIMARY KEY (kind, proxy, network)" : ""
    })`,
  "ALTER TABLE proxy_states ADD COLUMN IF NOT EXISTS is_convicted BOOLEAN DEFAULT FALSE",
];

/** Version 5: how much of each publication was served, and the last report of it that each proxy sent. */
const servedTables = (kind: Kind): readonly string[] => [
  `CREATE TABLE publication_served (
    key VARCHAR, name VARCHAR, bytes BIGINT${kind === "postgres" ? ", PRIMARY KEY (key, name)" : ""})`,
  "ALTER TABLE proxy_keys ADD COLUMN IF NOT EXISTS served_report VARCHAR",
];

/**
 * Makes the tables of an empty database, or adds what an older version lacks, all or none. Throws if a newer Origo made
 * the tables.
 */
export async function migrate(database: Database): Promise<void> {
  // Several Origos may start at once over one PostgreSQL: the first one makes the tables, the others wait.
  await database.exclusive(async (inside) => {
    await inside.run("CREATE TABLE IF NOT EXISTS origo_schema (version INTEGER)");
    const version = await versionOf(inside);
    if (version === SCHEMA_VERSION) return;
    if (version > SCHEMA_VERSION) {
      throw new Error(
        `the database has schema version ${version}, this Origo reads up to version ${SCHEMA_VERSION}: ` +
          "use a newer Origo, or another database",
      );
    }
    const { kind } = database;
    const first = [
      ...arrivalTable("downloads", COLUMNS, kind),
      ...arrivalTable("errors", ERROR_COLUMNS, kind),
      ...tracesTable(kind),
      ...ADMINISTRATION,
    ];
    const steps = [
      first,
      ENROLMENT,
      [VOUCHERS, ...publicationTables(kind)],
      convictionTables(kind),
      servedTables(kind),
    ];
    for (const statement of steps.slice(version).flat()) await inside.run(statement);
    await inside.run("DELETE FROM origo_schema");
    await inside.run("INSERT INTO origo_schema VALUES ($1)", [SCHEMA_VERSION]);
  });
}

/** 0 for an empty database. */
async function versionOf(inside: Queries): Promise<number> {
  const [row] = await inside.all("SELECT version FROM origo_schema");
  return Number(row?.["version"] ?? 0);
}
