/**
 * Difference: compares the mean of a metric in two groups. Shows the difference with its 95 % confidence interval,
 * which Origo computes by a bootstrap over clients. Says when there are too few clients to trust it.
 */
import { Autocomplete, Button, Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { z } from "zod";
import type { Condition, Difference, DifferenceQuery, Field } from "@tributary/contract/query-schema";
import { api } from "./api";
import { scalarOf } from "./conditions";
import { fieldOptions } from "./fields";
import { count, NONE, quantity } from "./format";
import { DataTable, Failure, Tag } from "./ui";

const scalar = z.union([z.string(), z.number(), z.boolean()]);
export const DifferenceState = z.object({ field: z.string(), a: scalar, b: scalar });
type DifferenceState = z.output<typeof DifferenceState>;

interface Props {
  metric: string;
  where: Condition[];
  fields: readonly Field[];
  state: DifferenceState | undefined;
  change: (state: DifferenceState) => void;
}

export function DifferencePanel({ metric, where, fields, state, change }: Props) {
  const [draft, setDraft] = useState({
    field: state?.field ?? "mode",
    a: String(state?.a ?? ""),
    b: String(state?.b ?? ""),
  });
  const field = fields.find((each) => each.name === draft.field);
  const [a, b] = [scalarOf(draft.a, field?.type ?? "text"), scalarOf(draft.b, field?.type ?? "text")];
  const body: DifferenceQuery | undefined = state && { metric, where, ...state };
  const { data, error } = useQuery({
    queryKey: ["difference", body],
    queryFn: () => api.post<Difference>("/v1/query/difference", body),
    enabled: body !== undefined,
    retry: false,
  });
  const values = [...(field?.values ?? [])];
  const unit = fields.find((each) => each.name === metric)?.unit ?? null;
  return (
    <>
      <form
        className="controls"
        onSubmit={(event) => {
          event.preventDefault();
          if (a !== undefined && b !== undefined) change({ field: draft.field, a, b });
        }}
      >
        <Select
          label="Compare by"
          searchable
          data={fieldOptions(fields.filter((each) => each.type !== "time"))}
          value={draft.field}
          onChange={(name) => name && setDraft({ field: name, a: "", b: "" })}
          allowDeselect={false}
        />
        <Autocomplete
          label="First group"
          data={values}
          value={draft.a}
          onChange={(text) => setDraft({ ...draft, a: text })}
        />
        <Autocomplete
          label="Second group"
          data={values}
          value={draft.b}
          onChange={(text) => setDraft({ ...draft, b: text })}
        />
        <Button type="submit" className="log" disabled={a === undefined || b === undefined || a === b}>
          Compare
        </Button>
      </form>
      <Failure error={error} />
      {data && state && !error ? (
        <Answer
          answer={data}
          unit={unit}
          metric={fields.find((each) => each.name === metric)?.label ?? metric}
          names={[String(state.a), String(state.b)]}
        />
      ) : null}
    </>
  );
}

function Answer({
  answer,
  unit,
  metric,
  names,
}: {
  answer: Difference;
  unit: string | null;
  metric: string;
  names: readonly [string, string];
}) {
  const show = (value: number | null): string => (value === null ? NONE : quantity(value, unit));
  const empty = names.filter((_name, index) => answer[index === 0 ? "a" : "b"].n === 0);
  return (
    <div data-testid="difference">
      {answer.difference === null ? (
        <p className="answer">
          The groups cannot be compared: no matching download in <b>{empty.join(" or ")}</b> has this metric.
        </p>
      ) : (
        <Finding answer={answer} difference={answer.difference} metric={metric} names={names} show={show} />
      )}
      <DataTable
        label="The two groups"
        heads={["Group", ...["Downloads", "Clients", "Mean", "Median"].map((text) => ({ text, num: true }))]}
      >
        {(
          [
            ["a", names[0]],
            ["b", names[1]],
          ] as const
        ).map(([arm, name]) => (
          <tr key={arm}>
            <th scope="row">{name}</th>
            <td className="num">{count(answer[arm].n)}</td>
            <td className="num">{count(answer[arm].clients)}</td>
            <td className="num">{show(answer[arm].mean)}</td>
            <td className="num">{show(answer[arm].median)}</td>
          </tr>
        ))}
      </DataTable>
      <p className="muted sum">
        The interval is for the difference of the means. It is a bootstrap over clients, not over downloads, because the
        downloads of one client are not independent.
      </p>
    </div>
  );
}

interface FindingProps {
  answer: Difference;
  difference: number;
  metric: string;
  names: readonly [string, string];
  show: (value: number) => string;
}

function Finding({ answer: { interval, ratio, enough }, difference, metric, names, show }: FindingProps) {
  const apart = interval !== null && (interval[0] > 0 || interval[1] < 0);
  return (
    <>
      <p className="answer">
        Mean {metric}, <b>{names[1]}</b> minus <b>{names[0]}</b>: <b>{signed(difference, show)}</b>
        {interval ? (
          <>
            {" "}
            (95 % confidence interval: {signed(interval[0], show)} to {signed(interval[1], show)})
          </>
        ) : null}
        .{ratio === null ? null : <> The ratio is {ratio.toFixed(2)}.</>}
      </p>
      {interval && enough ? (
        <p>
          <Tag tone={apart ? "good" : "warn"}>
            {apart
              ? "The interval does not contain 0: the groups differ"
              : "The interval contains 0: no clear difference"}
          </Tag>
        </p>
      ) : (
        <p>
          <Tag tone="warn">Too few clients for a reliable interval</Tag>
        </p>
      )}
    </>
  );
}

const signed = (value: number, show: (value: number) => string): string => `${value > 0 ? "+" : ""}${show(value)}`;
