/**
 * PostgreSQL as a Database: for several Origos over one store. Each transaction has a connection of its own from a small pool.
 */
import { Pool, types, type PoolClient } from "pg";
import type { Cell, Column, Database, Queries, Row } from "./database";

const CONNECTIONS_MAX = 10;
const CONNECT_MS_MAX = 5000;
const STREAM_ROWS = 2048;
/** Any number that nothing else in the database locks. */
const EXCLUSIVE_LOCK = 7_462_910;

/** Object ids of PostgreSQL's types that the driver would give as text: int8 and numeric. */
const AS_NUMBER = new Set([20, 1700]);

/** Throws when the server does not answer or refuses the address. */
export async function openPostgres(url: string): Promise<Database> {
  const pool = new Pool({
    connectionString: url, max: CONNECTIONS_MAX, connectionTimeoutMillis: CONNECT_MS_MAX, application_name: "origo",
    types: { getTypeParser: (id: number, format?: "text" | "binary") => (AS_NUMBER.has(id) ? Number : types.getTypeParser(id, format)) },
  });
  // A connection that breaks while nobody uses it: the pool drops it, and the next question makes another.
  pool.on("error", () => undefined);
  // One that breaks in use: whoever uses it hears of it from what it asked.
  pool.on("connect", (client) => client.on("error", () => undefined));
  try {
    await pool.query("SELECT 1");
  } catch (error) {
    await pool.end();
    throw error;
  }
  return new Postgres(pool);
}

class Postgres implements Database {
  readonly kind = "postgres";
  private closed: Promise<void> | undefined;

  constructor(private readonly pool: Pool) {}

  async run(sql: string, values: readonly Cell[] = []): Promise<number> {
    return (await this.pool.query(sql, values.map(valueOf))).rowCount ?? 0;
  }

  async all(sql: string, values: readonly Cell[] = []): Promise<Row[]> {
    return (await this.pool.query<Row>(sql, values.map(valueOf))).rows;
  }

  insertNew(table: string, columns: readonly Column[], rows: readonly Row[]): Promise<Set<string>> {
    return insertNew(this, table, columns, rows);
  }

  transaction<T>(work: (inside: Queries) => Promise<T>): Promise<T> {
    return this.onConnection((client) => inTransaction(client, () => {
      const inside: Queries = {
        run: async (sql, values = []) => (await client.query(sql, values.map(valueOf))).rowCount ?? 0,
        all: async (sql, values = []) => (await client.query<Row>(sql, values.map(valueOf))).rows,
        insertNew: (table, columns, rows) => insertNew(inside, table, columns, rows),
      };
      return work(inside);
    }));
  }

  /** The lock is let go with the transaction. */
  exclusive<T>(work: (inside: Queries) => Promise<T>): Promise<T> {
    return this.transaction(async (inside) => {
      await inside.all(`SELECT pg_advisory_xact_lock(${EXCLUSIVE_LOCK})::TEXT`);
      return work(inside);
    });
  }

  /** Reads by a cursor, in a transaction of its own. */
  async *stream(sql: string, values: readonly Cell[] = []): AsyncIterable<Row[]> {
    const client = await this.pool.connect();
    let broken: Error | undefined;
    try {
      await client.query("BEGIN READ ONLY");
      await client.query(`DECLARE piece NO SCROLL CURSOR FOR ${sql}`, values.map(valueOf));
      for (;;) {
        const { rows } = await client.query<Row>(`FETCH ${STREAM_ROWS} FROM piece`);
        if (rows.length === 0) break;
        yield rows;
      }
    } catch (error) {
      broken = error as Error;
      throw error;
    } finally {
      if (broken === undefined) await client.query("ROLLBACK").catch((error: Error) => (broken = error));
      client.release(broken);
    }
  }

  close(): Promise<void> {
    return (this.closed ??= this.pool.end());
  }

  /** A connection on which something failed that a rollback did not mend is not used again. */
  private async onConnection<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    const client = await this.pool.connect();
    try {
      const result = await work(client);
      client.release();
      return result;
    } catch (error) {
      client.release(error instanceof ConnectionLost);
      throw error instanceof ConnectionLost ? error.cause : error;
    }
  }
}

class ConnectionLost extends Error {}

async function inTransaction<T>(client: PoolClient, work: () => Promise<T>): Promise<T> {
  try {
    await client.query("BEGIN");
    const result = await work();
    await client.query("COMMIT");
    return result;
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {
      throw new ConnectionLost("rollback failed", { cause: error });
    });
    throw error;
  }
}

async function insertNew(queries: Queries, table: string, columns: readonly Column[], rows: readonly Row[]): Promise<Set<string>> {
  const names = columns.map(({ column }) => column).join(", ");
  const json = JSON.stringify(rows.map((row) => Object.fromEntries(columns.map(({ name, column }) => [column, row[name] ?? null]))));
  const added = await queries.all(`INSERT INTO ${table} (${names}) SELECT ${names} FROM json_populate_recordset(NULL::${table}, $1)
    ON CONFLICT (id) DO NOTHING RETURNING id`, [json]);
  return new Set(added.map(({ id }) => String(id)));
}

const valueOf = (cell: Cell): unknown => (cell instanceof Uint8Array ? Buffer.from(cell) : cell);
