/**
 * Difference: compares a metric in two groups, client by client. Shows the difference with its 95 % confidence
 * interval, which Origo computes, and how. Says when there are too few clients to trust it.
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
  const why =
    empty.length > 0
      ? `no matching download in ${empty.join(" or ")} has this metric`
      : "no client is in both groups, and only one group has clients of its own";
  return (
    <div data-testid="difference">
      {answer.difference === null ? (
        <p className="answer">The groups cannot be compared: {why}.</p>
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
      <p className="muted sum">{methodOf(answer)}</p>
    </div>
  );
}

/** How the interval was computed, for the page. docs/use/researcher.md says the same. */
export function methodOf({ design, compared, estimate, ratio }: Difference): string {
  const scale =
    ratio === null
      ? "Values are compared as they are."
      : "Lines differ by factors, so logarithms are compared. The ratio is for a typical client. The difference is " +
        "what the ratio means for a typical client of the first group.";
  const each = "Each client counts once, because the downloads of one client are not independent.";
  if (design === null) return each;
  const [ofA, ofB] = compared.map((clients) => count(clients));
  const isMean = estimate === "mean";
  const how =
    design === "pairs"
      ? `Clients that are in both groups are compared, each with itself: ${ofA} ` +
        (isMean ? "(mean, interval by random signs)." : "(Hodges-Lehmann estimate, signed-rank interval).")
      : `Clients that are in one group only are compared: ${ofA} of the first, ${ofB} of the second ` +
        (isMean
          ? "(difference of means, studentized permutation interval)."
          : "(Hodges-Lehmann estimate, Brunner-Munzel interval).");
  const why = isMean ? " Many clients have equal values, so means are compared." : "";
  return `${each} ${how}${why} ${scale}`;
}

interface FindingProps {
  answer: Difference;
  difference: number;
  metric: string;
  names: readonly [string, string];
  show: (value: number) => string;
}

function Finding({ answer, difference, metric, names, show }: FindingProps) {
  const { ratio, enough } = answer;
  // An interval of too few clients would claim more than they show.
  const [interval, ratioInterval] = enough ? [answer.interval, answer.ratioInterval] : [null, null];
  const apart = interval !== null && (interval[0] > 0 || interval[1] < 0);
  return (
    <>
      <p className="answer">
        {metric}, <b>{names[1]}</b>{" "}
        {ratio === null ? (
          <>
            minus <b>{names[0]}</b>: <b>{signed(difference, show)}</b>
            {interval ? ` (${LEVEL}: ${signed(interval[0], show)} to ${signed(interval[1], show)})` : null}.
          </>
        ) : (
          <>
            over <b>{names[0]}</b>: <b>{ratio.toFixed(2)}</b>
            {ratioInterval ? ` (${LEVEL}: ${ratioInterval[0].toFixed(2)} to ${ratioInterval[1].toFixed(2)})` : null}.
            For a typical client of {names[0]} this is <b>{signed(difference, show)}</b>
            {interval ? ` (${signed(interval[0], show)} to ${signed(interval[1], show)})` : null}.
          </>
        )}
      </p>
      <p>
        <Tag tone={interval && apart ? "good" : "warn"}>
          {interval
            ? apart
              ? `The interval does not contain ${ratio === null ? 0 : 1}: the groups differ`
              : `The interval contains ${ratio === null ? 0 : 1}: no clear difference`
            : notEnough(answer)}
        </Tag>
      </p>
    </>
  );
}

const CLIENTS_ENOUGH = 20;

function notEnough({ design, compared }: Pick<Difference, "design" | "compared">): string {
  const clients = Math.min(...compared);
  if (clients >= CLIENTS_ENOUGH)
    return "Not enough different values for an interval: most clients share one. Compare the means or the boxes";
  const where = design === "pairs" ? "in both groups" : "in the smaller group";
  const needed = `${count(clients)} ${where}, ${CLIENTS_ENOUGH} are needed`;
  return `Not enough clients for an interval: ${needed}. The difference may be chance`;
}

/** No line ends within "95 %". */
const LEVEL = "95\u00a0% confidence interval";
/** With a minus sign in place of a hyphen, at which a line may end. */
const signed = (value: number, show: (value: number) => string): string =>
  `${value > 0 ? "+" : ""}${show(value)}`.replace(/^-/, "\u2212");
