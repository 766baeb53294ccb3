/**
 * Analysis: a metric of all downloads that match a filter, by up to two fields, as boxes, histogram, distribution,
 * scatter plot or over time; and the difference between two groups with its interval. What is asked is in the address;
 * what is drawn can be saved.
 */
import { Button, Checkbox, Menu, NumberInput, SegmentedControl, Select } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo, useRef, type RefObject } from "react";
import { z } from "zod";
import { Condition, type Chart, type ChartQuery, type Field } from "@tributary/contract/query-schema";
import { api, saveFile } from "../api";
import { chartCsv, figuresOf, optionOf, type ChartFields } from "../chart/charts";
import { EChart, type ChartHandle } from "../chart/echart";
import { useLook } from "../chart/look";
import { Conditions } from "../conditions";
import { DifferencePanel, DifferenceState } from "../difference";
import { fieldOptions, useFields } from "../fields";
import { count, quantity } from "../format";
import { linkTo, useHashState } from "../hash";
import type { PageProps } from "../page-props";
import { Empty, Failure, Page, Section } from "../ui";
import { Views } from "../views";

const KINDS = {
  box: "Boxes",
  histogram: "Histogram",
  cdf: "Distribution",
  scatter: "Scatter",
  time: "Over time",
} as const;
type Kind = keyof typeof KINDS;
const STATISTICS = ["median", "mean", "count", "sum"] as const;
const BUCKETS = [
  { value: "60000", label: "minute" },
  { value: "600000", label: "10 minutes" },
  { value: "3600000", label: "hour" },
  { value: "86400000", label: "day" },
  { value: "604800000", label: "week" },
];
const HEIGHT = 460;

const State = z.object({
  chart: z.enum(["box", "histogram", "cdf", "scatter", "time"]).default("box"),
  metric: z.string().default("goodputBytesPerSec"),
  x: z.string().default("durationMs"),
  groupBy: z.array(z.string()).max(2).default(["mode"]),
  where: z.array(Condition).default([]),
  bins: z.number().int().min(1).max(200).default(40),
  statistic: z.enum(STATISTICS).default("median"),
  bucketMs: z.number().int().min(1000).default(3_600_000),
  log: z.boolean().default(false),
  difference: DifferenceState.optional(),
});
type State = z.output<typeof State>;

/** The question that a state stands for. Only boxes take two fields. */
function queryOf(state: State): ChartQuery {
  const { chart, metric, where } = state;
  const groupBy = state.groupBy.slice(0, chart === "box" ? 2 : 1);
  switch (chart) {
    case "box":
      return { chart, metric, groupBy, where };
    case "histogram":
      return { chart, metric, bins: state.bins, groupBy, where };
    case "cdf":
      return { chart, metric, groupBy, where };
    case "scatter":
      return { chart, x: state.x, y: metric, groupBy, where };
    case "time":
      return { chart, metric, statistic: state.statistic, bucketMs: state.bucketMs, groupBy, where };
  }
}

export default function AnalysisPage(_props: PageProps) {
  const fields = useFields();
  const [state, change] = useHashState("analysis", State);
  const query = useMemo(() => queryOf(state), [state]);
  const {
    data: chart,
    error,
    isFetching,
  } = useQuery({
    queryKey: ["chart", query],
    queryFn: () => api.post<Chart>("/v1/query/chart", query),
    placeholderData: keepPreviousData,
  });
  const handle = useRef<ChartHandle>(null);
  return (
    <Page
      title="Analysis"
      aside={
        <div className="page-actions">
          <Views page="analysis" state={state} />
          {chart ? <Export chart={chart} handle={handle} name={state.metric} /> : null}
        </div>
      }
    >
      <Conditions fields={fields} where={state.where} change={(where) => change({ where })} />
      <Controls state={state} change={change} fields={fields} />
      <Failure error={error} />
      {chart && chart.chart === state.chart && !error ? (
        <Drawing chart={chart} state={state} fields={fields} handle={handle} busy={isFetching} />
      ) : null}
      <Section title="Difference between two groups">
        <DifferencePanel
          metric={state.metric}
          where={state.where}
          fields={fields}
          state={state.difference}
          change={(difference) => change({ difference })}
        />
      </Section>
    </Page>
  );
}

interface ControlsProps {
  state: State;
  change: (part: Partial<State>) => void;
  fields: readonly Field[];
}

const STILL = { transitionProps: { duration: 0 } };

function Controls({ state, change, fields }: ControlsProps) {
  const numbers = fieldOptions(fields.filter((field) => field.type === "number"));
  const [first, second] = state.groupBy;
  const groupBy = (index: number, name: string | null): void => {
    const next = index === 0 ? [name, second] : [first, name];
    change({ groupBy: next.filter((each) => each !== null && each !== undefined) });
  };
  const groups = fieldOptions(
    fields.filter((field) => field.type !== "time" && field.name !== "id" && field.name !== "proxies"),
  );
  return (
    <div className="controls">
      <SegmentedControl
        className="kinds"
        aria-label="Chart"
        size="sm"
        transitionDuration={0}
        value={state.chart}
        onChange={(kind) => change({ chart: kind as Kind })}
        data={Object.entries(KINDS).map(([value, label]) => ({ value, label }))}
      />
      <Select
        label={state.chart === "scatter" ? "Vertical" : "Metric"}
        searchable
        data={numbers}
        value={state.metric}
        onChange={(metric) => metric && change({ metric })}
        comboboxProps={STILL}
        allowDeselect={false}
      />
      {state.chart === "scatter" ? (
        <Select
          label="Horizontal"
          searchable
          data={numbers}
          value={state.x}
          onChange={(x) => x && change({ x })}
          comboboxProps={STILL}
          allowDeselect={false}
        />
      ) : null}
      <Select
        label="Group by"
        searchable
        clearable
        clearButtonProps={{ "aria-label": "No grouping" }}
        data={groups}
        value={first ?? null}
        onChange={(name) => groupBy(0, name)}
        comboboxProps={STILL}
      />
      {state.chart === "box" && first !== undefined ? (
        <Select
          label="and by"
          searchable
          clearable
          clearButtonProps={{ "aria-label": "No second grouping" }}
          placeholder="nothing"
          data={groups}
          value={second ?? null}
          onChange={(name) => groupBy(1, name)}
          comboboxProps={STILL}
        />
      ) : null}
      {state.chart === "histogram" ? (
        <NumberInput
          label="Bins"
          min={1}
          max={200}
          value={state.bins}
          onChange={(bins) => typeof bins === "number" && bins >= 1 && bins <= 200 && change({ bins })}
        />
      ) : null}
      {state.chart === "time" ? (
        <Select
          label="Show the"
          data={[...STATISTICS]}
          value={state.statistic}
          onChange={(statistic) => statistic && change({ statistic: statistic as State["statistic"] })}
          comboboxProps={STILL}
          allowDeselect={false}
        />
      ) : null}
      {state.chart === "time" ? (
        <Select
          label="of each"
          data={BUCKETS}
          value={String(state.bucketMs)}
          onChange={(bucket) => bucket && change({ bucketMs: Number(bucket) })}
          comboboxProps={STILL}
          allowDeselect={false}
        />
      ) : null}
      {state.chart === "histogram" ? null : (
        <Checkbox
          className="log"
          label="Logarithmic"
          checked={state.log}
          onChange={(event) => change({ log: event.currentTarget.checked })}
        />
      )}
    </div>
  );
}

interface DrawingProps {
  chart: Chart;
  state: State;
  fields: readonly Field[];
  handle: RefObject<ChartHandle | null>;
  busy: boolean;
}

function Drawing({ chart, state, fields, handle, busy }: DrawingProps) {
  const look = useLook();
  const shown = useMemo((): ChartFields => {
    const fieldOf = (name: string | undefined): Field | undefined => fields.find((field) => field.name === name);
    return {
      y: fieldOf(state.metric),
      x: fieldOf(state.x),
      groups: state.groupBy.map(fieldOf),
      statistic: state.statistic,
      log: state.log,
    };
  }, [fields, state]);
  const option = useMemo(() => optionOf(chart, shown, look), [chart, shown, look]);
  const { headings, rows } = figuresOf(chart);
  const n = rows.reduce((sum, row) => sum + (row.values[0] ?? 0), 0);
  const open = (series: number, point: number): void => {
    const id = chart.chart === "scatter" ? chart.series[series]?.ids[point] : undefined;
    if (id !== undefined) window.location.hash = linkTo(`downloads/${id}`);
  };
  if (n === 0)
    return (
      <Section title="Chart">
        <Empty>No download that matches has this metric.</Empty>
      </Section>
    );
  const title = `${KINDS[chart.chart]}: ${shown.y?.label ?? state.metric}${shown.groups.length > 0 ? ` by ${shown.groups.map((field) => field?.label ?? "").join(" and ")}` : ""}`;
  return (
    <Section
      title={title}
      aside={
        <span className="muted" data-testid="chart-n">
          n = {count(n)}
        </span>
      }
    >
      <div data-busy={busy} className="drawing">
        <EChart option={option} height={HEIGHT} label={title} handle={handle} onPick={open} />
      </div>
      {chart.groupsLeftOut > 0 ? (
        <p className="muted">{count(chart.groupsLeftOut)} smaller groups are left out.</p>
      ) : null}
      {chart.chart === "scatter" ? (
        <p className="muted">A sample of the downloads; a click on a point opens it.</p>
      ) : null}
      <details className="figures">
        <summary>Figures of each group</summary>
        <div className="table-wrap" tabIndex={0} role="region" aria-label="Figures of each group">
          <table className="data">
            <thead>
              <tr>
                <th scope="col">Group</th>
                {headings.map((heading) => (
                  <th key={heading} scope="col" className="num">
                    {WORDS[heading] ?? heading}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.group}>
                  <th scope="row">{row.group}</th>
                  {row.values.map((value, index) => (
                    <td key={headings[index]} className="num">
                      {value === undefined
                        ? ""
                        : COUNTS.has(headings[index] ?? "")
                          ? count(value)
                          : quantity(value, shown.y?.unit ?? null)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </Section>
  );
}

const COUNTS = new Set(["n", "beyond"]);
const WORDS: Record<string, string> = {
  q1: "1st quartile",
  q3: "3rd quartile",
  whiskerLow: "lower whisker",
  whiskerHigh: "upper whisker",
  beyond: "beyond whiskers",
};

function Export({ chart, handle, name }: { chart: Chart; handle: RefObject<ChartHandle | null>; name: string }) {
  const { surface } = useLook();
  const save = (kind: "png" | "svg"): void => {
    const image = handle.current?.[kind](surface);
    if (image) saveFile(`${name}.${kind}`, image);
  };
  return (
    <Menu position="bottom-end" transitionProps={{ duration: 0 }}>
      <Menu.Target>
        <Button variant="default" size="compact-md">
          Export
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => save("png")}>PNG image</Menu.Item>
        <Menu.Item onClick={() => save("svg")}>SVG image</Menu.Item>
        <Menu.Item onClick={() => saveFile(`${name}.csv`, new Blob([chartCsv(chart)], { type: "text/csv" }))}>
          CSV figures
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
