/**
 * Arms: whether the experiments that a query names exist, and their arms. A download of another Origo, which was
 * imported, can have drawn arms of an experiment that this Origo does not have.
 */
import { shown } from "@tributary/contract/fault";
import type { Condition } from "@tributary/contract/query-schema";
import type { Database } from "./database";
import { faultAt } from "./faults";
import { experimentOf } from "./fields";

/** The parts of a query that can name an experiment. */
interface Asked {
  where: readonly Condition[];
  columns?: readonly string[];
  groupBy?: readonly string[];
  sort?: { field: string } | undefined;
  field?: string;
  a?: unknown;
  b?: unknown;
}

interface Named {
  path: string;
  name: string;
  /** Values that it is compared with, by their places in the request. */
  values?: readonly (readonly [path: string, value: unknown])[] | undefined;
}

const ARMS_OF = "SELECT content FROM experiments WHERE id = $1::VARCHAR";
const DRAWN = "SELECT 1 AS one FROM downloads WHERE position(chr(31) || $1::VARCHAR || '=' IN experiments) > 0 LIMIT 1";

/** Throws a QueryFault if the query names an experiment or an arm that does not exist. */
export async function checkArms(database: Database, query: Asked): Promise<void> {
  for (const { path, name, values = [] } of namesIn(query)) {
    const id = experimentOf(name);
    if (id === undefined) continue;
    const [row] = await database.all(ARMS_OF, [id]);
    if (row === undefined) {
      if ((await database.all(DRAWN, [id])).length > 0) continue;
      throw faultAt(path, `there is no experiment ${shown(id)}, and no download drew an arm of it`);
    }
    const arms = (JSON.parse(String(row["content"])) as { arms: { name: string }[] }).arms.map((arm) => arm.name);
    const wrong = values.find(([, value]) => !arms.includes(value as string));
    if (wrong) throw faultAt(wrong[0], `must be one of ${arms.join(", ")} for ${name}, got ${shown(wrong[1])}`);
  }
}

function namesIn({ where, columns = [], groupBy = [], sort, field, a, b }: Asked): Named[] {
  const listed = (path: string, names: readonly string[]): Named[] =>
    names.map((name, index) => ({ path: `${path}[${index}]`, name }));
  return [
    ...listed("columns", columns),
    ...listed("groupBy", groupBy),
    ...(sort ? [{ path: "sort.field", name: sort.field }] : []),
    ...(field === undefined ? [] : [{ path: "field", name: field, values: [["a", a] as const, ["b", b] as const] }]),
    ...where.map((condition, index) => ({
      path: `where[${index}].field`,
      name: condition.field,
      values: valuesOf(condition, `where[${index}].value`),
    })),
  ];
}

function valuesOf(condition: Condition, path: string): Named["values"] {
  if (condition.op === "in") return condition.value.map((value, index) => [`${path}[${index}]`, value] as const);
  return condition.op === "=" || condition.op === "!=" ? [[path, condition.value]] : [];
}
