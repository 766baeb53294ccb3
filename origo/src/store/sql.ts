/**
 * SQL for queries: conditions and groups become text with places, and values stay apart. The names of fields are looked
 * up in fields.ts. No text of a request becomes SQL.
 */
import { shown } from "@tributary/contract/fault";
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

/** `WHERE ...`, or nothing. `more` are conditions in SQL of our own. Throws a QueryFault if no download can match. */
export function whereOf(conditions: readonly Condition[], places: Places, more: readonly string[] = []): string {
  const all = [...conditions.map((condition, index) => conditionOf(condition, places, `where[${index}]`)), ...more];
  checkTogether(conditions);
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
      checkPart(field, condition.value, `${path}.value`);
      return `position(${places.add(condition.value.toLowerCase())} IN lower(${textOf(field)})) > 0`;
    case "in": {
      const added = condition.value.map((value, index) =>
        places.add(valueFor(field, value, `${path}.value[${index}]`)),
      );
      return `${field.sql} IN (${added.join(", ")})`;
    }
    case "=":
      return `${field.sql} = ${places.add(valueFor(field, condition.value, `${path}.value`))}`;
    case "!=":
      return `${field.sql} IS DISTINCT FROM ${places.add(valueFor(field, condition.value, `${path}.value`))}`;
    default:
      if (field.values || field.pattern)
        throw faultAt(`${path}.op`, `must be =, !=, in or contains for ${field.name}, got ${condition.op}`);
      return `${field.sql} ${condition.op} ${places.add(typedFor(field, condition.value, `${path}.value`))}`;
  }
}

const textOf = (field: StoredField): string => (field.type === "text" ? field.sql : `${field.sql}::VARCHAR`);

/** A choice must have a value that holds the text. */
function checkPart({ name, values }: StoredField, part: string, path: string): void {
  if (!values || values.some((value) => value.toLowerCase().includes(part.toLowerCase()))) return;
  throw faultAt(path, `must be part of one of ${values.join(", ")} for ${name}, got ${shown(part)}`);
}

/** The value, if a download can have it in this field. Throws a QueryFault otherwise. */
export function valueFor(field: StoredField, value: string | number | boolean, path: string): Cell {
  const { name, values, pattern, bounds } = field;
  const typed = typedFor(field, value, path);
  const wanted = (what: string): never => {
    throw faultAt(path, `must be ${what} for ${name}, got ${shown(value)}`);
  };
  if (values && !values.includes(typed as string)) return wanted(`one of ${values.join(", ")}`);
  if (pattern) {
    const lower = String(typed).toLowerCase();
    return pattern.regex.test(lower) ? lower : wanted(pattern.meaning);
  }
  if (bounds && !(bounds.least <= Number(typed) && Number(typed) <= bounds.most))
    return wanted(`${bounds.least} to ${bounds.most}`);
  return typed;
}

function typedFor(field: StoredField, value: string | number | boolean, path: string): Cell {
  const wanted = field.type === "text" ? "string" : field.type === "boolean" ? "boolean" : "number";
  if (typeof value === wanted) return value;
  throw faultAt(path, `must be a ${wanted} to compare with ${field.name}, got ${shown(value)}`);
}

/** The values of a field that all conditions so far leave. `only` lists them, if they can be listed. */
interface Left {
  least: number;
  most: number;
  /** Whether `least` and `most` are left out themselves. */
  isOpen: [least: boolean, most: boolean];
  only?: Set<unknown>;
}

/** Throws a QueryFault for the first condition that leaves no value of its field. */
function checkTogether(conditions: readonly Condition[]): void {
  const left = new Map<string, Left>();
  for (const [index, condition] of conditions.entries()) {
    const { least = -Infinity, most = Infinity } = fieldOf(condition.field)?.bounds ?? {};
    const now = narrowed(left.get(condition.field) ?? { least, most, isOpen: [false, false] }, condition);
    if (isEmpty(now)) {
      const message = "no download can match this condition together with those before it and the field's limits";
      throw faultAt(`where[${index}]`, `${message}: ${condition.field} ${condition.op} ${valueOf(condition)}`);
    }
    left.set(condition.field, now);
  }
}

function isEmpty({ least, most, isOpen, only }: Left): boolean {
  const isInside = (value: unknown): boolean =>
    typeof value !== "number" ||
    ((isOpen[0] ? value > least : value >= least) && (isOpen[1] ? value < most : value <= most));
  if (only) return ![...only].some(isInside);
  return least > most || (least === most && isOpen.includes(true));
}

const valueOf = (condition: Condition): string => ("value" in condition ? shown(condition.value) : "");

function narrowed(left: Left, condition: Condition): Left {
  switch (condition.op) {
    case ">":
    case ">=": {
      const least = Number(condition.value);
      const isOpen = condition.op === ">";
      if (!(least > left.least || (least === left.least && isOpen))) return left;
      return { ...left, least, isOpen: [isOpen, left.isOpen[1]] };
    }
    case "<":
    case "<=": {
      const most = Number(condition.value);
      const isOpen = condition.op === "<";
      if (!(most < left.most || (most === left.most && isOpen))) return left;
      return { ...left, most, isOpen: [left.isOpen[0], isOpen] };
    }
    case "=":
    case "in": {
      const values: readonly unknown[] = condition.op === "in" ? condition.value : [condition.value];
      return { ...left, only: new Set(values.filter((value) => left.only?.has(value) ?? true)) };
    }
    default:
      return left;
  }
}
