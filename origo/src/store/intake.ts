/**
 * Intake writes the batches that arrive during a transaction together in the next one, so that they share the cost of
 * a commit. If too many rows wait, it refuses a batch at once, and the sender keeps its records.
 */
import type { IntakeResponse } from "@tributary/contract/schema";
import type { OrigoSettings } from "@tributary/contract/settings";
import type { Column, Database, Queries, Row } from "./database";

/** If this many batches fail one after another, the database is gone, and the next ones would fail too. */
const FAILED_MAX = 2;

/** Too many rows wait already. Nothing of the batch was stored. */
export class IntakeFull extends Error {
  constructor(
    readonly got: number,
    readonly limit: number,
  ) {
    super(`${got} records wait to be stored, the limit is ${limit}: send again later`);
  }
}

interface Batch {
  rows: readonly Row[];
  resolve: (answer: IntakeResponse) => void;
  reject: (error: unknown) => void;
}

/** The most rows in one transaction. More would make the rows after them wait longer. */
const TOGETHER_MAX = 2000;
/**
 * The pause between the starts of two transactions. Rows that arrive in it share the cost of the next transaction,
 * which hardly depends on its rows.
 */
const APART_MS = 60;

type IntakeSettings = Readonly<Pick<OrigoSettings, "intakeWaitingMax">>;

export class Intake {
  #batches: Batch[] = [];
  #waiting = 0;
  #begunMs = -Infinity;
  #running = false;
  #writing: Promise<void> = Promise.resolve();

  readonly #database: Database;
  readonly #table: string;
  readonly #columns: readonly Column[];
  readonly #settings: IntakeSettings;

  constructor(database: Database, table: string, columns: readonly Column[], settings: IntakeSettings) {
    this.#database = database;
    this.#table = table;
    this.#columns = columns;
    this.#settings = settings;
  }

  /** Stores all rows or none. Rejects with IntakeFull, or with the error of the database. */
  add(rows: readonly Row[]): Promise<IntakeResponse> {
    const limit = this.#settings.intakeWaitingMax;
    if (this.#waiting + rows.length > limit) return Promise.reject(new IntakeFull(this.#waiting, limit));
    this.#waiting += rows.length;
    const answer = new Promise<IntakeResponse>((resolve, reject) => this.#batches.push({ rows, resolve, reject }));
    if (!this.#running) this.#writing = this.#write();
    return answer;
  }

  /** Resolves when nothing waits. */
  idle(): Promise<void> {
    return this.#writing;
  }

  async #write(): Promise<void> {
    this.#running = true;
    while (this.#batches.length > 0) {
      const waitMs = APART_MS - (performance.now() - this.#begunMs);
      if (waitMs > 0 && this.#waiting < TOGETHER_MAX) await new Promise((resolve) => setTimeout(resolve, waitMs));
      this.#begunMs = performance.now();
      const together = this.#take(TOGETHER_MAX);
      await this.#store(together).catch(async (error: unknown) => {
        if (together.length === 1) return together[0]?.reject(error);
        await this.#storeOneByOne(together);
      });
      this.#waiting -= together.reduce((sum, { rows }) => sum + rows.length, 0);
    }
    this.#running = false;
  }

  /** Stores each batch alone, so that a bad batch does not make the others fail. */
  async #storeOneByOne(batches: readonly Batch[]): Promise<void> {
    let failed = 0;
    let last: unknown;
    for (const batch of batches) {
      if (failed >= FAILED_MAX) batch.reject(last);
      else {
        await this.#store([batch]).then(
          () => (failed = 0),
          (error: unknown) => {
            failed++;
            last = error;
            batch.reject(error);
          },
        );
      }
    }
  }

  #take(rowsMax: number): Batch[] {
    let [count, rows] = [0, 0];
    while (
      count < this.#batches.length &&
      (count === 0 || rows + (this.#batches[count]?.rows.length ?? 0) <= rowsMax)
    ) {
      rows += this.#batches[count]?.rows.length ?? 0;
      count++;
    }
    return this.#batches.splice(0, count);
  }

  async #store(together: readonly Batch[]): Promise<void> {
    const rows = together.flatMap((batch) => batch.rows);
    const added = await this.#database.transaction((inside: Queries) =>
      inside.insertNew(this.#table, this.#columns, rows),
    );
    for (const batch of together) {
      let accepted = 0;
      for (const { id } of batch.rows) if (added.delete(String(id))) accepted++;
      batch.resolve({ accepted, duplicate: batch.rows.length - accepted });
    }
  }
}
