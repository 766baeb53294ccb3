/** The tables of publishers and publications. The manifest of a publication is kept as its publisher signed it. */
import type { Kind } from "./database";

export const publicationTables = (kind: Kind): readonly string[] => [
  `CREATE TABLE publishers (
    key VARCHAR PRIMARY KEY, label VARCHAR, author VARCHAR, enrolled_at_ms DOUBLE PRECISION, quota_bytes BIGINT,
    revoked_at_ms DOUBLE PRECISION)`,
  `CREATE TABLE publications (
    key VARCHAR, name VARCHAR, revision BIGINT, state VARCHAR, manifest VARCHAR, files BIGINT, bytes BIGINT,
    proxies VARCHAR, at_ms DOUBLE PRECISION${kind === "postgres" ? ", PRIMARY KEY (key, name, revision)" : ""})`,
  `CREATE TABLE publication_objects (
    key VARCHAR, name VARCHAR, revision BIGINT, object VARCHAR, bytes BIGINT, is_playlist BOOLEAN)`,
  `CREATE TABLE playlists (object VARCHAR${kind === "postgres" ? " PRIMARY KEY" : ""}, content BYTEA)`,
  // DuckDB scans a column faster than it keeps an index.
  ...(kind === "postgres"
    ? [
        "CREATE INDEX publication_objects_object ON publication_objects (object)",
        "CREATE INDEX publication_objects_name ON publication_objects (key, name)",
      ]
    : []),
];
