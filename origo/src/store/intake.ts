/**
 * Intake: batches that arrive while one is being written are written together, in one transaction, so that the cost of a commit is
 * shared by as many as wait for it. Bounded: beyond the bound it refuses at once, and the sender keeps its records.
 */
import type { IntakeResponse } from "../schema";
import type { Column, Database, Queries, Row } from "./database";

/** Rows that may wait: two seconds of the intake that Origo is made for. */
const WAITING_MAX = 10_000;
/** Rows of one transaction: more would only make those that come next wait longer. */
const TOGETHER_MAX = 2000;
/** Between the beginnings of two transactions: what comes meanwhile shares the second one's cost, which hardly depends on its rows. */
const APART_MS = 60;

/** Too many rows wait already. Nothing of the batch was stored. */
export class IntakeFull extends Error {
  constructor(readonly got: number, readonly limit: number) {
    super(`${got} records wait to be stored, the limit is ${limit}: send again later`);
  }
}

interface Batch {
  rows: readonly Row[];
  resolve: (answer: IntakeResponse) => void;
  reject: (error: unknown) => void;
}

export class Intake {
  private batches: Batch[] = [];
  private waiting = 0;
  private begunMs = -Infinity;
  private running = false;
  private writing: Promise<void> = Promise.resolve();

  constructor(private readonly database: Database, private readonly table: string, private readonly columns: readonly Column[]) {}

  /** All or none of them. Rejects with IntakeFull, or with what the database says. */
  add(rows: readonly Row[]): Promise<IntakeResponse> {
    if (this.waiting + rows.length > WAITING_MAX) return Promise.reject(new IntakeFull(this.waiting, WAITING_MAX));
    this.waiting += rows.length;
    const answer = new Promise<IntakeResponse>((resolve, reject) => this.batches.push({ rows, resolve, reject }));
    if (!this.running) this.writing = this.write();
    return answer;
  }

  /** Resolves when nothing waits. */
  idle(): Promise<void> {
    return this.writing;
  }

  private async write(): Promise<void> {
    this.running = true;
    while (this.batches.length > 0) {
      const waitMs = APART_MS - (performance.now() - this.begunMs);
      if (waitMs > 0 && this.waiting < TOGETHER_MAX) await new Promise((resolve) => setTimeout(resolve, waitMs));
      this.begunMs = performance.now();
      const together = this.take();
      await this.store(together).catch(async (error: unknown) => {
        if (together.length === 1) return together[0]?.reject(error);
        // One batch at fault must not fail the others.
        for (const batch of together) await this.store([batch]).catch(batch.reject);
      });
      this.waiting -= together.reduce((sum, { rows }) => sum + rows.length, 0);
    }
    this.running = false;
  }

  private take(): Batch[] {
    let [count, rows] = [0, 0];
    while (count < this.batches.length && (count === 0 || rows + (this.batches[count]?.rows.length ?? 0) <= TOGETHER_MAX)) {
      rows += this.batches[count]?.rows.length ?? 0;
      count++;
    }
    return this.batches.splice(0, count);
  }

  private async store(together: readonly Batch[]): Promise<void> {
    const rows = together.flatMap((batch) => batch.rows);
    const added = await this.database.transaction((inside: Queries) => inside.insertNew(this.table, this.columns, rows));
    for (const batch of together) {
      let accepted = 0;
      for (const { id } of batch.rows) if (added.delete(String(id))) accepted++;
      batch.resolve({ accepted, duplicate: batch.rows.length - accepted });
    }
  }
}
