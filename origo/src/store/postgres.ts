/**
 * PostgreSQL as a Database: for several Origos over one store. Each transaction has a connection of its own from a
 * small pool. A server that vanishes, with its power or behind a firewall, says nothing: what it has not answered in
 * time has failed, and that connection is not used again.
 */
import { Pool, types, type PoolClient } from "pg";
import type { Cell, Column, Database, Queries, Row } from "./database";

const CONNECTIONS_MAX = 10;
const CONNECT_MS_MAX = 5000;
/** For the answer to a statement: intake has one transaction at a time, so that all records wait as long. */
const ANSWER_MS_MAX = 5000;
/** The same for what may read or write much. */
const PATIENT_MS_MAX = 300_000;
/** A server that is there takes back a transaction at once. */
const ROLLBACK_MS_MAX = 1000;
/**
 * A connection on which nothing comes for so long is probed by the system: a question may be long, its server must be
 * there.
 */
const PROBE_MS = 10_000;
const STREAM_ROWS = 2048;
/** Any number that nothing else in the database locks. */
const EXCLUSIVE_LOCK = 7_462_910;

/** Object ids of PostgreSQL's types that the driver would give as text: int8 and numeric. */
const AS_NUMBER = new Set([20, 1700]);

/** Throws when the server does not answer or refuses the address. */
export async function openPostgres(url: string): Promise<Database> {
  const pool = new Pool({
    connectionString: url,
    max: CONNECTIONS_MAX,
    connectionTimeoutMillis: CONNECT_MS_MAX,
    application_name: "origo",
    keepAlive: true,
    keepAliveInitialDelayMillis: PROBE_MS,
    types: {
      getTypeParser: (id: number, format?: "text" | "binary") =>
        AS_NUMBER.has(id) ? Number : types.getTypeParser(id, format),
    },
  });
  const open = new Set<PoolClient>();
  // A connection that breaks while nobody uses it: the pool drops it, and the next question makes another.
  pool.on("error", () => undefined);
  pool.on("connect", (client) => {
    open.add(client);
    // One that breaks in use: whoever uses it hears of it from what it asked.
    client.on("error", () => undefined);
  });
  pool.on("remove", (client) => void open.delete(client));
  const database = new Postgres(pool, open, ANSWER_MS_MAX);
  try {
    await database.all("SELECT 1 AS one");
  } catch (error) {
    await database.close();
    throw error;
  }
  return database;
}

class Postgres implements Database {
  readonly kind = "postgres";
  readonly patient: Database;
  #closed: Promise<void> | undefined;

  readonly #pool: Pool;
  readonly #open: ReadonlySet<PoolClient>;
  readonly #answerMsMax: number;

  /** `open` are the pool's connections. */
  constructor(pool: Pool, open: ReadonlySet<PoolClient>, answerMsMax: number) {
    this.#pool = pool;
    this.#open = open;
    this.#answerMsMax = answerMsMax;

    this.patient = answerMsMax === PATIENT_MS_MAX ? this : new Postgres(pool, open, PATIENT_MS_MAX);
  }

  async run(sql: string, values: readonly Cell[] = []): Promise<number> {
    return (await this.#pool.query(this.#timed(sql, values))).rowCount ?? 0;
  }

  async all(sql: string, values: readonly Cell[] = []): Promise<Row[]> {
    return (await this.#pool.query<Row>(this.#timed(sql, values))).rows;
  }

  insertNew(table: string, columns: readonly Column[], rows: readonly Row[]): Promise<Set<string>> {
    return insertNew(this, table, columns, rows);
  }

  transaction<T>(work: (inside: Queries) => Promise<T>): Promise<T> {
    return this.#onConnection((client) =>
      this.#inTransaction(client, () => {
        const inside: Queries = {
          run: async (sql, values = []) => (await client.query(this.#timed(sql, values))).rowCount ?? 0,
          all: async (sql, values = []) => (await client.query<Row>(this.#timed(sql, values))).rows,
          insertNew: (table, columns, rows) => insertNew(inside, table, columns, rows),
        };
        return work(inside);
      }),
    );
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
    const client = await this.#pool.connect();
    let broken: Error | undefined;
    try {
      await client.query(this.#timed("BEGIN READ ONLY"));
      await client.query(this.#timed(`DECLARE piece NO SCROLL CURSOR FOR ${sql}`, values));
      for (;;) {
        const { rows } = await client.query<Row>(this.#timed(`FETCH ${STREAM_ROWS} FROM piece`));
        if (rows.length === 0) break;
        yield rows;
      }
    } catch (error) {
      broken = error as Error;
      throw error;
    } finally {
      if (broken === undefined)
        await client.query(statement("ROLLBACK", [], ROLLBACK_MS_MAX)).catch((error: Error) => (broken = error));
      client.release(broken);
    }
  }

  close(): Promise<void> {
    return (this.#closed ??= this.#end());
  }

  /**
   * What is under way has as long as any statement; what takes longer, a question or a server that vanished, is cut
   * off.
   */
  async #end(): Promise<void> {
    const cut = setTimeout(() => {
      for (const { connection } of this.#open) connection.stream.destroy();
    }, this.#answerMsMax);
    await this.#pool.end().finally(() => clearTimeout(cut));
  }

  /** A connection on which something failed that a rollback did not mend is not used again. */
  async #onConnection<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect();
    try {
      const result = await work(client);
      client.release();
      return result;
    } catch (error) {
      client.release(error instanceof ConnectionLost);
      throw error instanceof ConnectionLost ? error.cause : error;
    }
  }

  /**
   * Where this Origo vanishes in the middle, the server takes all of it back soon: others would wait for its rows and
   * its lock.
   */
  async #inTransaction<T>(client: PoolClient, work: () => Promise<T>): Promise<T> {
    try {
      await client.query(this.#timed(`BEGIN; SET LOCAL idle_in_transaction_session_timeout = ${this.#answerMsMax}`));
      const result = await work();
      await client.query(this.#timed("COMMIT"));
      return result;
    } catch (error) {
      await client.query(statement("ROLLBACK", [], ROLLBACK_MS_MAX)).catch(() => {
        throw new ConnectionLost("rollback failed", { cause: error });
      });
      throw error;
    }
  }

  #timed(sql: string, values: readonly Cell[] = []): Statement {
    return statement(sql, values, this.#answerMsMax);
  }
}

class ConnectionLost extends Error {}

/** As the driver takes it: what is not answered in `query_timeout` ms is rejected. */
interface Statement {
  text: string;
  values: unknown[];
  query_timeout: number;
}

const statement = (text: string, values: readonly Cell[], answerMsMax: number): Statement => ({
  text,
  values: values.map(valueOf),
  query_timeout: answerMsMax,
});

async function insertNew(
  queries: Queries,
  table: string,
  columns: readonly Column[],
  rows: readonly Row[],
): Promise<Set<string>> {
  const names = columns.map(({ column }) => column).join(", ");
  const json = JSON.stringify(
    rows.map((row) => Object.fromEntries(columns.map(({ name, column }) => [column, row[name] ?? null]))),
  );
  const added = await queries.all(
    `INSERT INTO ${table} (${names}) SELECT ${names} FROM json_populate_recordset(NULL::${table}, $1)
    ON CONFLICT (id) DO NOTHING RETURNING id`,
    [json],
  );
  return new Set(added.map(({ id }) => String(id)));
}

const valueOf = (cell: Cell): unknown => (cell instanceof Uint8Array ? Buffer.from(cell) : cell);
