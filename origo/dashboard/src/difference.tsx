/**
 * Difference: the metric in one group less that in another, with the 95 % interval that Origo makes by bootstrap over
 * clients, in words that do not claim more than the number of clients allows.
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
import { Failure, Tag } from "./ui";

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
          label="Groups by"
          searchable
          data={fieldOptions(fields.filter((each) => each.type !== "time"))}
          value={draft.field}
          onChange={(name) => name && setDraft({ field: name, a: "", b: "" })}
          comboboxProps={{ transitionProps: { duration: 0 } }}
          allowDeselect={false}
        />
        <Autocomplete
          label="From (a)"
          data={values}
          value={draft.a}
          onChange={(text) => setDraft({ ...draft, a: text })}
          comboboxProps={{ transitionProps: { duration: 0 } }}
        />
        <Autocomplete
          label="to (b)"
          data={values}
          value={draft.b}
          onChange={(text) => setDraft({ ...draft, b: text })}
          comboboxProps={{ transitionProps: { duration: 0 } }}
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
          No download of <b>{empty.join(" or ")}</b> that matches has this metric, so there is nothing to compare.
        </p>
      ) : (
        <Finding answer={answer} difference={answer.difference} metric={metric} names={names} show={show} />
      )}
      <div className="table-wrap" tabIndex={0} role="region" aria-label="The two groups">
        <table className="data">
          <thead>
            <tr>
              <th scope="col">Group</th>
              <th scope="col" className="num">
                Downloads
              </th>
              <th scope="col" className="num">
                Clients
              </th>
              <th scope="col" className="num">
                Mean
              </th>
              <th scope="col" className="num">
                Median
              </th>
            </tr>
          </thead>
          <tbody>
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
          </tbody>
        </table>
      </div>
      <p className="muted">
        Means are compared; a client's downloads are drawn together, since they are not independent of each other.
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
        {metric} of <b>{names[1]}</b> less <b>{names[0]}</b>: <b>{signed(difference, show)}</b>
        {interval ? (
          <>
            {" "}
            (95 % interval {signed(interval[0], show)} to {signed(interval[1], show)})
          </>
        ) : null}
        {ratio === null ? null : <>, {ratio.toFixed(2)} times as much</>}.
      </p>
      {interval && enough ? (
        <p>
          <Tag tone={apart ? "good" : "warn"}>
            {apart ? "The interval leaves out 0: the two differ" : "The interval holds 0: no difference is shown"}
          </Tag>
        </p>
      ) : (
        <p>
          <Tag tone="warn">Too few clients for the interval to be trusted</Tag>
        </p>
      )}
    </>
  );
}

const signed = (value: number, show: (value: number) => string): string => `${value > 0 ? "+" : ""}${show(value)}`;
