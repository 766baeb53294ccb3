/** The controls of the analysis page: the kind of chart, what it shows, and how the downloads are grouped. */
import { Checkbox, NumberInput, SegmentedControl, Select } from "@mantine/core";
import type { Field } from "@tributary/contract/query-schema";
import { fieldOptions } from "../fields";
import { BINS_MAX, INTERVALS, KINDS, STATISTICS, type Kind, type State } from "./analysis-state";

interface ControlsProps {
  state: State;
  change: (part: Partial<State>) => void;
  fields: readonly Field[];
}

export function Controls(props: ControlsProps) {
  const { state, change } = props;
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
      <Metrics {...props} />
      <Groups {...props} />
      {state.chart === "histogram" ? <Bins {...props} /> : null}
      {state.chart === "time" ? <Time {...props} /> : null}
      {state.chart === "histogram" ? null : (
        <Checkbox
          className="log"
          label="Logarithmic scale"
          checked={state.log}
          onChange={(event) => change({ log: event.currentTarget.checked })}
        />
      )}
    </div>
  );
}

function Metrics({ state, change, fields }: ControlsProps) {
  const numbers = fieldOptions(fields.filter((field) => field.type === "number"));
  return (
    <>
      <Select
        label={state.chart === "scatter" ? "Vertical axis" : "Metric"}
        searchable
        data={numbers}
        value={state.metric}
        onChange={(metric) => metric && change({ metric })}
        allowDeselect={false}
      />
      {state.chart === "scatter" ? (
        <Select
          label="Horizontal axis"
          searchable
          data={numbers}
          value={state.x}
          onChange={(x) => x && change({ x })}
          allowDeselect={false}
        />
      ) : null}
    </>
  );
}

function Groups({ state, change, fields }: ControlsProps) {
  const [first, second] = state.groupBy;
  const groupBy = (...names: (string | null | undefined)[]): void =>
    change({ groupBy: names.filter((each) => each !== null && each !== undefined) });
  const groups = fieldOptions(
    fields.filter((field) => field.type !== "time" && field.name !== "id" && field.name !== "proxies"),
  );
  return (
    <>
      <Select
        label="Group by"
        searchable
        clearable
        clearButtonProps={{ "aria-label": "No grouping" }}
        placeholder="nothing"
        data={groups}
        value={first ?? null}
        onChange={(name) => groupBy(name, second)}
      />
      {state.chart === "box" && first !== undefined ? (
        <Select
          label="Then by"
          searchable
          clearable
          clearButtonProps={{ "aria-label": "No second grouping" }}
          placeholder="nothing"
          data={groups}
          value={second ?? null}
          onChange={(name) => groupBy(first, name)}
        />
      ) : null}
    </>
  );
}

function Bins({ state, change }: ControlsProps) {
  return (
    <NumberInput
      label="Bins"
      min={1}
      max={BINS_MAX}
      value={state.bins}
      onChange={(bins) => typeof bins === "number" && bins >= 1 && bins <= BINS_MAX && change({ bins })}
    />
  );
}

function Time({ state, change }: ControlsProps) {
  return (
    <>
      <Select
        label="Statistic"
        data={[...STATISTICS]}
        value={state.statistic}
        onChange={(statistic) => statistic && change({ statistic: statistic as State["statistic"] })}
        allowDeselect={false}
      />
      <Select
        label="Interval"
        data={INTERVALS}
        value={String(state.bucketMs)}
        onChange={(bucket) => bucket && change({ bucketMs: Number(bucket) })}
        allowDeselect={false}
      />
    </>
  );
}
