/**
 * Conditions: edits a filter. Each condition is a chip; a click on a chip edits it. A download must meet all
 * conditions.
 */
import { Button, CloseButton, Popover, Select, Stack, TagsInput, TextInput } from "@mantine/core";
import { useState } from "react";
import type { Condition, Field } from "@tributary/contract/query-schema";
import { fieldOptions } from "./fields";

type Op = Condition["op"];

const WORDS: Record<Op, string> = {
  "=": "is",
  "!=": "is not",
  "<": "is less than",
  "<=": "is at most",
  ">": "is more than",
  ">=": "is at least",
  contains: "contains",
  in: "is one of",
  isNull: "is empty",
  notNull: "is not empty",
};
const OPS: Record<Field["type"], readonly Op[]> = {
  number: [">=", "<=", ">", "<", "=", "!=", "in", "isNull", "notNull"],
  time: [">=", "<=", "isNull", "notNull"],
  text: ["=", "!=", "contains", "in", "isNull", "notNull"],
  boolean: ["=", "isNull", "notNull"],
};

/** Lists open inside the popover: a click on a list outside would close it. */
const INSIDE = { withinPortal: false, transitionProps: { duration: 0 } };

interface Draft {
  field: string;
  op: Op;
  /** The text as the person typed it. */
  text: string;
  list: string[];
}

/**
 * Reads a value of the field's type. Undefined when the text is not such a value. Times are in the browser's time zone.
 */
export function scalarOf(text: string, type: Field["type"]): string | number | boolean | undefined {
  if (type === "text") return text === "" ? undefined : text;
  if (type === "boolean") return text === "true" ? true : text === "false" ? false : undefined;
  const value = type === "time" ? new Date(text).getTime() : text.trim() === "" ? NaN : Number(text);
  return Number.isFinite(value) ? value : undefined;
}

/** The condition that a draft describes. Undefined while the draft is not complete. */
export function conditionOf(draft: Draft, type: Field["type"]): Condition | undefined {
  const { field, op } = draft;
  if (op === "isNull" || op === "notNull") return { field, op };
  if (op === "in") {
    const value = draft.list.map((text) => scalarOf(text, type)).filter((each) => each !== undefined);
    return value.length > 0 && value.length === draft.list.length ? { field, op, value } : undefined;
  }
  if (op === "contains") return draft.text === "" ? undefined : { field, op, value: draft.text };
  const value = scalarOf(draft.text, type);
  return value === undefined ? undefined : { field, op, value };
}

function localTime(epochMs: number): string {
  const at = new Date(epochMs);
  return new Date(epochMs - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

function draftOf(condition: Condition, type: Field["type"]): Draft {
  const text = (value: string | number | boolean): string =>
    type === "time" && typeof value === "number" ? localTime(value) : String(value);
  const draft = { field: condition.field, op: condition.op, text: "", list: [] };
  if (condition.op === "in") return { ...draft, list: condition.value.map(text) };
  return "value" in condition ? { ...draft, text: text(condition.value) } : draft;
}

/** Describes a condition in words, for its chip. */
export function wordsOf(condition: Condition, field: Field | undefined): string {
  const { op, text, list } = draftOf(condition, field?.type ?? "text");
  const value = op === "in" ? list.join(", ") : text.replace("T", " ");
  const unit = field?.unit && field.type === "number" && value !== "" ? ` ${field.unit}` : "";
  return `${field?.label ?? condition.field} ${WORDS[op]}${value === "" ? "" : ` ${value}${unit}`}`;
}

interface Props {
  fields: readonly Field[];
  where: readonly Condition[];
  change: (where: Condition[]) => void;
}

export function Conditions({ fields, where, change }: Props) {
  const fieldOf = (name: string): Field | undefined => fields.find((field) => field.name === name);
  return (
    <div className="chips" role="group" aria-label="Filter">
      {where.map((condition, index) => (
        <span key={`${index} ${JSON.stringify(condition)}`} className="chip">
          <Editor
            fields={fields}
            label={wordsOf(condition, fieldOf(condition.field))}
            start={draftOf(condition, fieldOf(condition.field)?.type ?? "text")}
            done={(next) => change(where.map((each, at) => (at === index ? next : each)))}
          />
          <CloseButton
            size="sm"
            aria-label={`Remove: ${wordsOf(condition, fieldOf(condition.field))}`}
            onClick={() => change(where.filter((_, at) => at !== index))}
          />
        </span>
      ))}
      <Editor
        key={where.length}
        fields={fields}
        label="Add filter"
        start={{ field: "mode", op: "=", text: "", list: [] }}
        done={(next) => change([...where, next])}
      />
      {where.length > 1 ? (
        <Button variant="subtle" size="compact-sm" onClick={() => change([])}>
          Clear
        </Button>
      ) : null}
    </div>
  );
}

function Editor({
  fields,
  label,
  start,
  done,
}: {
  fields: readonly Field[];
  label: string;
  start: Draft;
  done: (condition: Condition) => void;
}) {
  const [opened, setOpened] = useState(false);
  const [draft, setDraft] = useState(start);
  const field = fields.find((each) => each.name === draft.field);
  const type = field?.type ?? "text";
  const condition = conditionOf(draft, type);
  const add = label === "Add filter";
  const pickField = (name: string | null): void => {
    const next = fields.find((each) => each.name === name);
    if (next) setDraft({ field: next.name, op: OPS[next.type][0] ?? "=", text: "", list: [] });
  };
  return (
    <Popover opened={opened} onChange={setOpened} position="bottom-start" trapFocus shadow="md">
      <Popover.Target>
        <Button
          variant={add ? "default" : "transparent"}
          size={add ? "compact-md" : "compact-sm"}
          className={add ? "" : "chip-label"}
          onClick={() => {
            setDraft(start);
            setOpened(!opened);
          }}
        >
          {add ? "+ Filter" : label}
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label="Condition">
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (condition) {
              done(condition);
              setOpened(false);
            }
          }}
        >
          <Stack gap="xs" className="editor">
            <Select
              label="Field"
              searchable
              openOnFocus={false}
              data={fieldOptions(fields)}
              value={draft.field}
              onChange={pickField}
              comboboxProps={INSIDE}
              description={field?.help}
              allowDeselect={false}
            />
            <Select
              label="Condition"
              data={OPS[type].map((op) => ({ value: op, label: WORDS[op] }))}
              value={draft.op}
              comboboxProps={INSIDE}
              onChange={(op) => op && setDraft({ ...draft, op: op as Op })}
              allowDeselect={false}
            />
            <ValueInput draft={draft} field={field} change={setDraft} />
            <Button type="submit" disabled={condition === undefined}>
              Apply
            </Button>
          </Stack>
        </form>
      </Popover.Dropdown>
    </Popover>
  );
}

function ValueInput({
  draft,
  field,
  change,
}: {
  draft: Draft;
  field: Field | undefined;
  change: (draft: Draft) => void;
}) {
  const { op, text, list } = draft;
  const values = field?.type === "boolean" ? ["true", "false"] : field?.values;
  const label = field?.unit && field.type === "number" ? `Value, ${field.unit}` : "Value";
  if (op === "isNull" || op === "notNull") return null;
  if (op === "in") {
    return (
      <TagsInput
        label={label}
        data={[...(values ?? [])]}
        value={list}
        onChange={(next) => change({ ...draft, list: next })}
        comboboxProps={INSIDE}
      />
    );
  }
  if (values && op !== "contains") {
    return (
      <Select
        label={label}
        data={[...values]}
        value={text === "" ? null : text}
        onChange={(next) => change({ ...draft, text: next ?? "" })}
        comboboxProps={INSIDE}
      />
    );
  }
  return (
    <TextInput
      label={label}
      type={field?.type === "time" ? "datetime-local" : "text"}
      step={1}
      inputMode={field?.type === "number" ? "decimal" : "text"}
      value={text}
      onChange={(event) => change({ ...draft, text: event.currentTarget.value })}
    />
  );
}
