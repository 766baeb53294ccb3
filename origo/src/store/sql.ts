/**
 * SQL for queries: conditions and groups become text with places, and values stay apart. The names of fields are looked
 * up in fields.ts. No text of a request becomes SQL.
 */
import { faultAt } from "./faults";
import type { Condition } from "@tributary/contract/query-schema";
import type { Cell } from "./database";
import { fieldOf, type StoredField } from "./fields";

/** Collects the values of one statement and gives out their places. */
export class Places {
  readonly values: Cell[] = [];

  /** The place with the type that the value is compared as. */
  add(value: Cell): string {
    return this.addAs(
      value,
      typeof value === "number" ? "DOUBLE PRECISION" : typeof value === "boolean" ? "BOOLEAN" : "VARCHAR",
    );
  }

  /** For a value that may be null, which has no type of its own. */
  addAs(value: Cell, type: "DOUBLE PRECISION" | "BOOLEAN" | "VARCHAR"): string {
    this.values.push(value);
    return `$${this.values.length}::${type}`;
  }
}

/** Throws a QueryFault if there is no field `name`. `path` is its place in the request. */
export function known(name: string, path: string): StoredField {
  const field = fieldOf(name);
  if (!field) throw faultAt(path, `there is no field ${JSON.stringify(name)}`);
  return field;
}

/** The same, and the field must be a number or a time. */
export function knownNumber(name: string, path: string): StoredField {
  const field = known(name, path);
  if (field.type === "number" || field.type === "time") return field;
  throw faultAt(path, `must be a field of numbers, ${name} is ${field.type}`);
}

/** `WHERE ...`, or nothing. `more` are conditions in SQL of our own. */
export function whereOf(conditions: readonly Condition[], places: Places, more: readonly string[] = []): string {
  const all = [...conditions.map((condition, index) => conditionOf(condition, places, `where[${index}]`)), ...more];
  return all.length === 0 ? "" : `WHERE ${all.join(" AND ")}`;
}

function conditionOf(condition: Condition, places: Places, path: string): string {
  const field = known(condition.field, `${path}.field`);
  switch (condition.op) {
    case "isNull":
      return `${field.sql} IS NULL`;
    case "notNull":
      return `${field.sql} IS NOT NULL`;
    case "contains":
      return `position(${places.add(condition.value.toLowerCase())} IN lower(${textOf(field)})) > 0`;
    case "in": {
      const added = condition.value.map((value, index) =>
        places.add(valueFor(field, value, `${path}.value[${index}]`)),
      );
      return `${field.sql} IN (${added.join(", ")})`;
    }
    case "!=":
      return `${field.sql} IS DISTINCT FROM ${places.add(valueFor(field, condition.value, `${path}.value`))}`;
    default:
      return `${field.sql} ${condition.op} ${places.add(valueFor(field, condition.value, `${path}.value`))}`;
  }
}

const textOf = (field: StoredField): string => (field.type === "text" ? field.sql : `${field.sql}::VARCHAR`);

/** The value, if it has the field's type and is one of its values. Throws a QueryFault otherwise. */
export function valueFor(field: StoredField, value: string | number | boolean, path: string): Cell {
  const wanted = field.type === "text" ? "string" : field.type === "boolean" ? "boolean" : "number";
  if (typeof value === wanted) {
    if (field.values && !field.values.includes(value as string))
      throw faultAt(path, `must be one of ${field.values.join(", ")} for ${field.name}, got ${JSON.stringify(value)}`);
    return value;
  }
  throw faultAt(path, `must be a ${wanted} to compare with ${field.name}, got ${typeof value}`);
}
