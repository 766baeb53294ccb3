/** Row: what the table says about one setting, and the types that follow from the rows. */

interface Description {
  /** Heading on the dashboard's configuration page. */
  group: string;
  help: string;
}

export interface IntegerSetting extends Description {
  type: "integer";
  default: number;
  min: number;
  max: number;
  /** What the number counts, such as `ms` or `bytes`. */
  unit: string;
  /** The meaning of 0 if it is special. `unset`: the reader of the setting decides. `unlimited`: no limit. */
  zero?: "unset" | "unlimited";
}

export interface BooleanSetting extends Description {
  type: "boolean";
  default: boolean;
}

export interface ChoiceSetting extends Description {
  type: "choice";
  default: string;
  options: readonly string[];
}

export type SettingRow = IntegerSetting | BooleanSetting | ChoiceSetting;

export type ClientSettingRow = SettingRow & {
  /** Each download can have its own value, so the arms of an experiment may set it. */
  perDownload?: true;
  /** Callers of the client library give it as an option of one download. */
  option?: true;
};

export type ProxySettingRow = SettingRow & {
  /** `narrows`: a proxy takes the value only if it is stricter than its own. `replaces`: it takes every value. */
  effect: "narrows" | "replaces";
  /** The environment variable that gives one proxy a value of its own when it starts, and the default of that. */
  start?: { variable: string; default: number | boolean };
};

/** The type of a row's value: a number, a boolean or one of the options. */
export type ValueOf<Row> = Row extends { options: readonly (infer Option)[] }
  ? Option
  : Row extends { type: "boolean" }
    ? boolean
    : number;

/** `firstByteMs` for `client.firstByteMs`. */
export type NameOf<Key> = Key extends `${string}.${infer Name}` ? Name : never;

/** The values of some rows by name, without the reader's prefix. */
export type ValuesOf<Rows> = { [Key in keyof Rows as NameOf<Key>]: ValueOf<Rows[Key]> };

export const nameOf = (key: string): string => key.slice(key.indexOf(".") + 1);

/** The defaults of some rows by name. */
export const defaultsOf = <Rows extends Record<string, SettingRow>>(rows: Rows): ValuesOf<Rows> =>
  Object.fromEntries(Object.entries(rows).map(([key, row]) => [nameOf(key), row.default])) as ValuesOf<Rows>;

export const MIB = 1024 * 1024;
