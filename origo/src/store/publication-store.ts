/**
 * PublicationStore: publications, the objects that each has, what was served of them, and the playlists. A publication
 * has at most one released revision and one pending one, which is higher. Who may ask for what: publications.ts.
 */
import type { ServedReport } from "@tributary/contract/publication-schema";
import type { Database, Queries, Row } from "./database";

export interface PublicationKey {
  key: string;
  name: string;
}

export interface Revision extends PublicationKey {
  revision: number;
}

export type PublicationState = "pending" | "released";

export interface StoredPublication extends Revision {
  state: PublicationState;
  files: number;
  /** Of its distinct objects. */
  bytes: number;
  /** The ids of the proxies that are to hold it. */
  proxies: string[];
  atMs: number;
}

export interface NewPublication extends Omit<StoredPublication, "state"> {
  manifest: string;
  objects: readonly { id: string; isPlaylist: boolean }[];
}

/** The most that one publisher may have. */
export interface PublisherLimits {
  publications: number;
  bytes: number;
  files: number;
  playlistBytes: number;
}

/** Thrown, so that nothing is stored. */
export class PublicationFault extends Error {
  constructor(
    readonly kind: "quotaExceeded" | "revisionOld" | "tooManyFiles" | "tooManyPublications",
    message: string,
    readonly got?: number,
    readonly limit?: number,
  ) {
    super(message);
  }
}

const COLUMNS = "key, name, revision, state, files, bytes, proxies, at_ms";
/** From pairs OBJECT=BYTES: the bytes for each released publication that has such objects. */
const COUNTED = `SELECT key, name, sum(bytes)::BIGINT AS bytes FROM (
    SELECT DISTINCT p.key, p.name, o.object, o.bytes
    FROM (SELECT split_part(pair, '=', 1) AS object, split_part(pair, '=', 2)::BIGINT AS bytes
      FROM (SELECT unnest(string_to_array($1, ' ')) AS pair) u) o
    JOIN publication_objects p ON p.object = o.object AND NOT p.is_playlist
    JOIN publications r ON r.key = p.key AND r.name = p.name AND r.revision = p.revision AND r.state = 'released') d
  GROUP BY key, name`;
const OF_REVISION = "key = $1 AND name = $2 AND revision = $3";

export class PublicationStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async all(): Promise<StoredPublication[]> {
    return (await this.#database.all(`SELECT ${COLUMNS} FROM publications ORDER BY at_ms DESC, key, name`)).map(rowOf);
  }

  async manifest({ key, name, revision }: Revision): Promise<string | undefined> {
    const [row] = await this.#database.all(`SELECT manifest FROM publications WHERE ${OF_REVISION}`, [
      key,
      name,
      revision,
    ]);
    return row && String(row["manifest"]);
  }

  /**
   * Stores a pending revision, which replaces an older pending one. The same revision with the same manifest keeps its
   * state, and gets the new list of proxies. Throws PublicationFault.
   */
  begin(publication: NewPublication, limits: PublisherLimits): Promise<void> {
    return this.#database.exclusive(async (inside) => {
      const { key, name, revision, manifest, proxies, atMs } = publication;
      const known = await inside.all("SELECT revision, manifest FROM publications WHERE key = $1 AND name = $2", [
        key,
        name,
      ]);
      const same = known.find((row) => Number(row["revision"]) === revision);
      if (same !== undefined && same["manifest"] === manifest) {
        const sql = `UPDATE publications SET proxies = $4, at_ms = CASE state WHEN 'pending' THEN $5 ELSE at_ms END
          WHERE ${OF_REVISION}`;
        await inside.run(sql, [key, name, revision, JSON.stringify(proxies), atMs]);
        return;
      }
      const newest = Math.max(0, ...known.map((row) => Number(row["revision"])));
      if (revision <= newest) throw revisionOld(name, revision, newest);
      await forget(inside, publication, "AND state = 'pending'");
      await insert(inside, publication);
      await checkLimits(inside, key, limits);
    });
  }

  /** Makes a pending revision the released one, and forgets the one before. False when there is no such revision. */
  release(revision: Revision, nowMs: number): Promise<boolean> {
    return this.#database.exclusive(async (inside) => {
      const values = [revision.key, revision.name, revision.revision];
      const [row] = await inside.all(`SELECT state FROM publications WHERE ${OF_REVISION}`, values);
      if (row === undefined) return false;
      if (row["state"] === "released") return true;
      await forget(inside, revision, "AND state = 'released'");
      await inside.run(`UPDATE publications SET state = 'released', at_ms = $4 WHERE ${OF_REVISION}`, [
        ...values,
        nowMs,
      ]);
      await forgetPlaylists(inside);
      return true;
    });
  }

  /** False when there is no such publication. */
  unpublish(publication: PublicationKey): Promise<boolean> {
    return this.#database.exclusive(async (inside) => {
      const count = await forget(inside, publication);
      await inside.run("DELETE FROM publication_served WHERE key = $1 AND name = $2", [
        publication.key,
        publication.name,
      ]);
      await forgetPlaylists(inside);
      return count > 0;
    });
  }

  /** Forgets the revisions that have been pending since before `thenMs`. Resolves to their number. */
  dropPending(thenMs: number): Promise<number> {
    return this.#database.exclusive(async (inside) => {
      const sql = "SELECT key, name FROM publications WHERE state = 'pending' AND at_ms < $1";
      const rows = await inside.all(sql, [thenMs]);
      for (const { key, name } of rows)
        await forget(inside, { key: String(key), name: String(name) }, "AND state = 'pending'");
      if (rows.length > 0) await forgetPlaylists(inside);
      return rows.length;
    });
  }

  /** Of these objects, those that no publication has, or only as a playlist, which proxies need not hold. */
  async unwantedAmong(objects: readonly string[]): Promise<string[]> {
    const sql = `SELECT o.object FROM (SELECT unnest(string_to_array($1, ' ')) AS object) o
      WHERE NOT EXISTS (SELECT 1 FROM publication_objects p WHERE p.object = o.object AND NOT p.is_playlist)`;
    return objects.length === 0
      ? []
      : (await this.#database.all(sql, [objects.join(" ")])).map((row) => String(row["object"]));
  }

  /** Whether a publication has this playlist. */
  async isPlaylist(object: string): Promise<boolean> {
    const sql = "SELECT 1 AS one FROM publication_objects WHERE object = $1 AND is_playlist LIMIT 1";
    return (await this.#database.all(sql, [object])).length > 0;
  }

  async addPlaylist(object: string, content: Uint8Array): Promise<void> {
    await this.#database.exclusive(async (inside) => {
      const known = await inside.all("SELECT 1 AS one FROM playlists WHERE object = $1", [object]);
      if (known.length === 0) await inside.run("INSERT INTO playlists VALUES ($1, $2)", [object, content]);
    });
  }

  async playlist(object: string): Promise<Uint8Array | undefined> {
    const [row] = await this.#database.all("SELECT content FROM playlists WHERE object = $1", [object]);
    return row && (row["content"] as Uint8Array);
  }

  /** The playlists of this revision that are not stored. */
  async missingPlaylists({ key, name, revision }: Revision): Promise<string[]> {
    const sql = `SELECT DISTINCT object FROM publication_objects o WHERE ${OF_REVISION} AND is_playlist
      AND NOT EXISTS (SELECT 1 FROM playlists p WHERE p.object = o.object)`;
    return (await this.#database.all(sql, [key, name, revision])).map((row) => String(row["object"]));
  }

  /** Counts what the proxy served. The same report counts once. */
  countServed(proxyId: string, { id, served }: ServedReport): Promise<void> {
    return this.#database.exclusive(async (inside) => {
      const sql = `UPDATE proxy_keys SET served_report = $2
        WHERE id = $1 AND (served_report IS NULL OR served_report <> $2)`;
      if ((await inside.run(sql, [proxyId, id])) === 0) return;
      const pairs = [served.map(({ object, bytes }) => `${object}=${bytes}`).join(" ")];
      await inside.run(
        `INSERT INTO publication_served SELECT c.key, c.name, 0 FROM (${COUNTED}) c WHERE NOT EXISTS
          (SELECT 1 FROM publication_served s WHERE s.key = c.key AND s.name = c.name)`,
        pairs,
      );
      await inside.run(
        `UPDATE publication_served SET bytes = least(publication_served.bytes + c.bytes, ${Number.MAX_SAFE_INTEGER})
          FROM (${COUNTED}) c WHERE publication_served.key = c.key AND publication_served.name = c.name`,
        pairs,
      );
    });
  }

  /** The bytes that were served of a publication; 0 if nothing was. */
  async servedBytes({ key, name }: PublicationKey): Promise<number> {
    const sql = "SELECT bytes FROM publication_served WHERE key = $1 AND name = $2";
    return Number((await this.#database.all(sql, [key, name]))[0]?.["bytes"] ?? 0);
  }

  /** The bytes of the distinct objects of each publisher. */
  async bytesByPublisher(): Promise<Map<string, number>> {
    const sql = `SELECT key, sum(bytes)::BIGINT AS bytes FROM
      (SELECT DISTINCT key, object, bytes FROM publication_objects) d GROUP BY key`;
    const rows = await this.#database.all(sql);
    return new Map(rows.map((row) => [String(row["key"]), Number(row["bytes"])]));
  }
}

function revisionOld(name: string, got: number, newest: number): PublicationFault {
  const what = got === newest ? "another manifest has the revision" : `the newest revision is ${newest}, got`;
  const message = `revision: of ${name}, ${what} ${got}: publish it with revision ${newest + 1}`;
  return new PublicationFault("revisionOld", message, got, newest);
}

/** Deletes the rows of the publication. Playlists stay until `forgetPlaylists`. */
async function forget(inside: Queries, { key, name }: PublicationKey, condition = ""): Promise<number> {
  const rows = `FROM publications WHERE key = $1 AND name = $2 ${condition}`;
  const sql = `DELETE FROM publication_objects
    WHERE key = $1 AND name = $2 AND revision IN (SELECT revision ${rows})`;
  await inside.run(sql, [key, name]);
  return inside.run(`DELETE ${rows}`, [key, name]);
}

/** Deletes the playlists that no publication has. */
async function forgetPlaylists(inside: Queries): Promise<void> {
  await inside.run(`DELETE FROM playlists
    WHERE object NOT IN (SELECT object FROM publication_objects WHERE is_playlist)`);
}

async function insert(inside: Queries, publication: NewPublication): Promise<void> {
  const { key, name, revision, manifest, files, bytes, proxies, atMs, objects } = publication;
  await inside.run("INSERT INTO publications VALUES ($1, $2, $3, 'pending', $4, $5, $6, $7, $8)", [
    key,
    name,
    revision,
    manifest,
    files,
    bytes,
    JSON.stringify(proxies),
    atMs,
  ]);
  for (const isPlaylist of [false, true]) {
    const ids = objects.filter((object) => object.isPlaylist === isPlaylist).map(({ id }) => id);
    if (ids.length === 0) continue;
    // An object's id ends with its bytes.
    const sql = `INSERT INTO publication_objects
      SELECT $1::VARCHAR, $2::VARCHAR, $3::BIGINT, o.object, split_part(o.object, '-', 2)::BIGINT, $5::BOOLEAN
      FROM (SELECT unnest(string_to_array($4, ' ')) AS object) o`;
    await inside.run(sql, [key, name, revision, ids.join(" "), isPlaylist]);
  }
}

async function checkLimits(inside: Queries, key: string, limits: PublisherLimits): Promise<void> {
  const [counted] = await inside.all(
    `SELECT count(DISTINCT name) AS publications, sum(files)::BIGINT AS files FROM publications WHERE key = $1`,
    [key],
  );
  const [summed] = await inside.all(
    `SELECT coalesce(sum(bytes), 0)::BIGINT AS bytes,
      coalesce(sum(CASE WHEN is_playlist THEN bytes ELSE 0 END), 0)::BIGINT AS playlist_bytes
      FROM (SELECT DISTINCT object, bytes, is_playlist FROM publication_objects WHERE key = $1) d`,
    [key],
  );
  const check = (kind: PublicationFault["kind"], cell: Row[string] | undefined, limit: number, what: string): void => {
    const got = Number(cell);
    if (got <= limit) return;
    const message = `this publisher would have ${got} ${what}, the limit is ${limit}: unpublish something first`;
    throw new PublicationFault(kind, message, got, limit);
  };
  check("tooManyPublications", counted?.["publications"], limits.publications, "publications");
  check("tooManyFiles", counted?.["files"], limits.files, "files");
  check("quotaExceeded", summed?.["playlist_bytes"], limits.playlistBytes, "bytes of playlists");
  check("quotaExceeded", summed?.["bytes"], limits.bytes, "bytes");
}

const rowOf = (row: Row): StoredPublication => ({
  key: String(row["key"]),
  name: String(row["name"]),
  revision: Number(row["revision"]),
  state: row["state"] as PublicationState,
  files: Number(row["files"]),
  bytes: Number(row["bytes"]),
  proxies: JSON.parse(String(row["proxies"])) as string[],
  atMs: Number(row["at_ms"]),
});
