/**
 * PostgreSQL: the Database for several Origos over one store. Each transaction has its own connection from a small
 * pool. A server can vanish silently, for example behind a firewall. So a statement without an answer in time has
 * failed, and its connection is not used again.
 */
import { Pool, types, type PoolClient } from "pg";
import type { Cell, Column, Database, Queries, Row } from "./database";
import { connectFault, driverAddress } from "./postgres-fault";

const CONNECTIONS_MAX = 10;
const CONNECT_MS_MAX = 5000;
/** A statement must be answered in this time. Intake runs one transaction at a time, so all records wait for it. */
const ANSWER_MS_MAX = 5000;
/** The same for large reads and writes. */
const PATIENT_MS_MAX = 300_000;
/** A working server rolls back at once. */
const ROLLBACK_MS_MAX = 1000;
/**
 * The operating system probes a connection that is silent for this long. A query may be long, but its server must live.
 */
const PROBE_MS = 10_000;
const STREAM_ROWS = 2048;
/** Any number that nothing else in the database uses as a lock. */
const EXCLUSIVE_LOCK = 7_462_910;

/** The object ids of types that the driver would give as text: int8 and numeric. */
const AS_NUMBER = new Set([20, 1700]);

/** Throws when the server does not answer or refuses the address. */
export async function openPostgres(url: string): Promise<Database> {
  const pool = new Pool({
    connectionString: driverAddress(url),
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
  // An unused connection broke. The pool drops it, and the next query opens another one.
  pool.on("error", () => undefined);
  pool.on("connect", (client) => {
    open.add(client);
    // A connection in use broke. Its user gets the error from the running statement.
    client.on("error", () => undefined);
  });
  pool.on("remove", (client) => void open.delete(client));
  const database = new Postgres(pool, open, ANSWER_MS_MAX);
  try {
    await database.all("SELECT 1 AS one");
  } catch (error) {
    await database.close();
    throw connectFault(error as Error, url);
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

  /** `open` holds the connections of the pool. */
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

  /** The lock is released at the end of the transaction. */
  exclusive<T>(work: (inside: Queries) => Promise<T>): Promise<T> {
    return this.transaction(async (inside) => {
      await inside.all(`SELECT pg_advisory_xact_lock(${EXCLUSIVE_LOCK})::TEXT`);
      return work(inside);
    });
  }

  /** Reads with a cursor in its own transaction. */
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

  async storageBytes(): Promise<number> {
    const [row] = await this.all("SELECT pg_database_size(current_database()) AS bytes");
    return Number(row?.["bytes"]);
  }

  close(): Promise<void> {
    return (this.#closed ??= this.#end());
  }

  /** Running statements may finish within the usual time. Then their connections are cut. */
  async #end(): Promise<void> {
    const cut = setTimeout(() => {
      for (const { connection } of this.#open) connection.stream.destroy();
    }, this.#answerMsMax);
    await this.#pool.end().finally(() => clearTimeout(cut));
  }

  /** A connection whose rollback failed is not used again. */
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
   * If this Origo vanishes, the server soon rolls the transaction back, since others may wait for its rows or its lock.
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

/** A statement for the driver, which rejects it without an answer in `query_timeout` ms. */
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
