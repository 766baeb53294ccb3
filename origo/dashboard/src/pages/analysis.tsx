/**
 * Analysis: draws a metric of all downloads that match a filter, by up to two fields, and compares two groups. The
 * question is in the address, so that it has a link. The chart can be saved as an image or as CSV.
 */
import { Button, Menu } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo, useRef, type RefObject } from "react";
import type { Chart, Field } from "@tributary/contract/query-schema";
import { api, saveFile } from "../api";
import type { ChartFields } from "../chart/base";
import { optionOf } from "../chart/charts";
import { EChart, type ChartHandle } from "../chart/echart";
import { chartCsv, figuresOf, type Figures } from "../chart/figures";
import { useLook } from "../chart/look";
import { Conditions } from "../conditions";
import { DifferencePanel } from "../difference";
import { useFields } from "../fields";
import { count, quantity } from "../format";
import { linkTo, useHashState } from "../hash";
import type { PageProps } from "../page-props";
import { DataTable, Empty, Failure, Page, Section } from "../ui";
import { Views } from "../views";
import { Controls } from "./analysis-controls";
import { explanationOf, groupsOf, KINDS, queryOf, State } from "./analysis-state";

/** CSS pixels. */
const HEIGHT = 460;

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
    const fieldOf = (name: string): Field | undefined => fields.find((field) => field.name === name);
    return {
      y: fieldOf(state.metric),
      x: fieldOf(state.x),
      groups: groupsOf(state).map(fieldOf),
      statistic: state.statistic,
      log: state.log,
    };
  }, [fields, state]);
  const option = useMemo(() => optionOf(chart, shown, look), [chart, shown, look]);
  const figures = figuresOf(chart);
  const n = figures.rows.reduce((sum, row) => sum + (row.values[0] ?? 0), 0);
  const open = (series: number, point: number): void => {
    const id = chart.chart === "scatter" ? chart.series[series]?.ids[point] : undefined;
    if (id !== undefined) window.location.hash = linkTo(`downloads/${id}`);
  };
  if (n === 0)
    return (
      <Section title="Chart">
        <Empty>No matching download has this metric.</Empty>
      </Section>
    );
  const title = titleOf(state, shown);
  return (
    <Section
      title={title}
      aside={
        <span className="muted" data-testid="chart-n">
          n = {count(n)}
        </span>
      }
    >
      <p className="muted">{explanationOf(state)}</p>
      <div data-busy={busy} className="drawing">
        <EChart option={option} height={HEIGHT} label={title} handle={handle} onPick={open} />
      </div>
      {chart.groupsLeftOut > 0 ? (
        <p className="muted">{count(chart.groupsLeftOut)} smaller groups are not shown.</p>
      ) : null}
      <FiguresTable figures={figures} unit={shown.y?.unit ?? null} />
    </Section>
  );
}

/** `Boxes: Goodput by Connections and Mode`. */
function titleOf(state: State, { x, y, groups }: ChartFields): string {
  const metric = y?.label ?? state.metric;
  const what = state.chart === "scatter" ? `${metric} against ${x?.label ?? state.x}` : metric;
  const by = groups.map((field) => field?.label ?? "").join(" and ");
  return `${KINDS[state.chart]}: ${what}${by === "" ? "" : ` by ${by}`}`;
}

const COUNTS = new Set(["n", "outliers"]);
const WORDS: Record<string, string> = {
  q1: "1st quartile",
  q3: "3rd quartile",
  whiskerLow: "lower whisker",
  whiskerHigh: "upper whisker",
};

function FiguresTable({ figures: { headings, rows }, unit }: { figures: Figures; unit: string | null }) {
  return (
    <details className="figures">
      <summary>Numbers of each group</summary>
      <DataTable
        label="Numbers of each group"
        heads={["Group", ...headings.map((heading) => ({ text: WORDS[heading] ?? heading, num: true }))]}
      >
        {rows.map((row) => (
          <tr key={row.group}>
            <th scope="row">{row.group}</th>
            {headings.map((heading, index) => (
              <td key={heading} className="num">
                {COUNTS.has(heading) ? count(row.values[index] ?? 0) : quantity(row.values[index] ?? NaN, unit)}
              </td>
            ))}
          </tr>
        ))}
      </DataTable>
    </details>
  );
}

function Export({ chart, handle, name }: { chart: Chart; handle: RefObject<ChartHandle | null>; name: string }) {
  const { surface } = useLook();
  const save = (kind: "png" | "svg"): void => {
    const image = handle.current?.[kind](surface);
    if (image) saveFile(`${name}.${kind}`, image);
  };
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default" size="compact-md">
          Export
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => save("png")}>PNG image</Menu.Item>
        <Menu.Item onClick={() => save("svg")}>SVG image</Menu.Item>
        <Menu.Item onClick={() => saveFile(`${name}.csv`, new Blob([chartCsv(chart)], { type: "text/csv" }))}>
          Numbers as CSV
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
