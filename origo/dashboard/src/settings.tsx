/** Settings: inputs for the values of settings. They check each value against its range, as Origo does too. */
import { NumberInput, Select, Switch } from "@mantine/core";
import type { Setting, SettingValues } from "@tributary/contract/admin-schema";
import { settingFault } from "@tributary/contract/settings";
import { count } from "./format";

export type Value = SettingValues[string];

/** Says what is wrong with a value, as Origo words it. Undefined when the value is allowed. NaN is an empty input. */
export const faultOf = (setting: Setting, value: Value): string | undefined =>
  Number.isNaN(value) ? "must be a whole number" : settingFault(setting, value)?.message;

export function showValue(value: Value | undefined): string {
  if (value === undefined) return "default";
  if (typeof value === "boolean") return value ? "on" : "off";
  if (typeof value === "number") return numberText(value);
  return value === "" ? "empty" : value;
}

/** `8,388,608` or `0.25`. */
const numberText = (value: number): string => (Number.isInteger(value) && value >= 0 ? count(value) : String(value));

/** The type, range and unit of a setting in one line. */
export function rangeText({ type, min = -Infinity, max = Infinity, unit = "", options = [] }: Setting): string {
  if (type === "choice") return `one of ${options.join(", ")}`;
  if (type === "boolean") return "on or off";
  return ["whole number", `${numberText(min)} to ${numberText(max)}`, unit].join(" · ");
}

interface InputProps {
  setting: Setting;
  value: Value;
  disabled?: boolean;
  change: (value: Value) => void;
}

export function SettingInput({ setting, value, disabled = false, change }: InputProps) {
  const { key, type, unit, options } = setting;
  const common = { "aria-label": key, disabled, error: faultOf(setting, value) };
  if (type === "boolean")
    return (
      <Switch
        {...common}
        checked={value === true}
        label={value === true ? "on" : "off"}
        onChange={(event) => change(event.currentTarget.checked)}
      />
    );
  if (type === "choice")
    return (
      <Select
        {...common}
        data={[...(options ?? [])]}
        value={String(value)}
        allowDeselect={false}
        onChange={(next) => next !== null && change(next)}
      />
    );
  return (
    <NumberInput
      {...common}
      value={typeof value === "number" ? value : ""}
      suffix={unit ? ` ${unit}` : ""}
      allowDecimal={false}
      thousandSeparator=","
      hideControls
      onChange={(next) => change(typeof next === "number" ? next : NaN)}
    />
  );
}

/** The values without one key. */
export const without = (values: SettingValues, key: string): SettingValues =>
  Object.fromEntries(Object.entries(values).filter(([each]) => each !== key));

export interface Difference {
  key: string;
  before: Value | undefined;
  after: Value | undefined;
}

/** The keys whose values differ. An undefined value means the default. */
export function differencesOf(before: SettingValues, after: SettingValues): Difference[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .sort()
    .filter((key) => before[key] !== after[key])
    .map((key) => ({ key, before: before[key], after: after[key] }));
}

export function Differences({ differences }: { differences: readonly Difference[] }) {
  return (
    <ul className="diff">
      {differences.map(({ key, before, after }) => (
        <li key={key}>
          <code>{key}</code> <del>{showValue(before)}</del> → <ins>{showValue(after)}</ins>
        </li>
      ))}
    </ul>
  );
}
