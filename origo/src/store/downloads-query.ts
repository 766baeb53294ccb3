/**
 * Downloads query: pages of the table of downloads, with any fields, any filter and any order. It first finds the rows
 * of the page with only the fields of the filter and the order. Then it reads only those rows.
 */
import type { Cell as Shown, DownloadsPage, DownloadsQuery } from "@tributary/contract/query-schema";
import type { z } from "zod";
import type { Cell, Database } from "./database";
import { faultAt } from "./faults";
import type { StoredField } from "./fields";
import { known, Places, whereOf } from "./sql";

type Query = z.output<typeof DownloadsQuery>;

/**
 * Where a page ended: `seq`, which decides ties, and the value of the sorted field. The cursor on the wire is `seq`.
 */
interface Place {
  seq: number;
  value: Cell;
}

/** Throws a QueryFault. Downloads without a value of the sorted field come last in both directions. */
export async function queryDownloads(database: Database, query: Query): Promise<DownloadsPage> {
  const fields = query.columns.map((name, index) => known(name, `columns[${index}]`));
  const sort = query.sort && { field: known(query.sort.field, "sort.field"), descending: query.sort.descending };
  const cursor = query.cursor === undefined ? undefined : await placeOf(database, query.cursor, sort);
  const [found, matching] = await Promise.all([
    findPage(database, query, sort, cursor),
    cursor ? null : countMatching(database, query),
  ]);
  const page = found.slice(0, query.limit);
  const last = page[page.length - 1];
  const rows = await readRows(
    database,
    fields,
    page.map(({ seq }) => seq),
  );
  return {
    ids: rows.map(({ id }) => id),
    rows: rows.map(({ cells }) => cells),
    matching,
    next: found.length > query.limit && last ? String(last.seq) : null,
  };
}

type Sort = { field: StoredField; descending: boolean } | undefined;

async function findPage(database: Database, query: Query, sort: Sort, cursor: Place | undefined): Promise<Place[]> {
  const places = new Places();
  const where = whereOf(query.where, places, cursor ? [afterCursor(sort, cursor, places)] : []);
  const direction = sort?.descending === false ? "ASC" : "DESC";
  const order = sort ? `${sort.field.sql} ${direction} NULLS LAST, seq DESC` : "seq DESC";
  const sql = `SELECT seq, ${sort ? sort.field.sql : "NULL"} AS value FROM downloads ${where}
    ORDER BY ${order} LIMIT ${query.limit + 1}`;
  const rows = await database.all(sql, places.values);
  return rows.map((row) => ({ seq: Number(row["seq"]), value: row["value"] ?? null }));
}

function afterCursor(sort: Sort, { value, seq }: Place, places: Places): string {
  const earlier = `seq < ${seq}`;
  if (!sort) return earlier;
  const { sql } = sort.field;
  if (value === null) return `(${sql} IS NULL AND ${earlier})`;
  const place = places.add(value);
  return `(${sql} ${sort.descending ? "<" : ">"} ${place} OR ${sql} IS NULL OR (${sql} = ${place} AND ${earlier}))`;
}

async function countMatching(database: Database, query: Query): Promise<number> {
  const places = new Places();
  const [row] = await database.all(
    `SELECT count(*) AS n FROM downloads ${whereOf(query.where, places)}`,
    places.values,
  );
  return Number(row?.["n"]);
}

async function readRows(
  database: Database,
  fields: readonly StoredField[],
  seqs: readonly number[],
): Promise<{ id: string; cells: Shown[] }[]> {
  if (seqs.length === 0) return [];
  const list = fields.map(({ sql }, index) => `${sql} AS c${index}`).join(", ");
  const rows = await database.all(
    `SELECT seq, id::VARCHAR AS id, ${list} FROM downloads WHERE seq IN (${seqs.join(", ")})`,
  );
  const bySeq = new Map(rows.map((row) => [Number(row["seq"]), row]));
  return seqs.flatMap((seq) => {
    const row = bySeq.get(seq);
    return row ? [{ id: String(row["id"]), cells: fields.map((_, index) => (row[`c${index}`] ?? null) as Shown) }] : [];
  });
}

async function placeOf(database: Database, cursor: string, sort: Sort): Promise<Place> {
  if (!/^\d{1,15}$/.test(cursor)) throw faultAt("cursor", "must be the `next` of an earlier page");
  const [row] = await database.all(
    `SELECT ${sort ? sort.field.sql : "NULL"} AS value FROM downloads WHERE seq = ${cursor}`,
  );
  if (!row) throw faultAt("cursor", "the last download of the earlier page is no longer stored");
  return { seq: Number(cursor), value: row["value"] ?? null };
}
