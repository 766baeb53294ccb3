/** Page: the table of settings as Markdown, for docs/spec/settings.md. */
import { markdownTable } from "../markdown";
import { CLIENT_SETTINGS, ORIGO_SETTINGS, PROXY_SETTINGS } from "../settings";
import { textOf } from "./check";
import type { ClientSettingRow, ProxySettingRow, SettingRow } from "./row";

type Row = SettingRow | ClientSettingRow | ProxySettingRow;

const PARTS: readonly [title: string, about: string, rows: Readonly<Record<string, Row>>][] = [
  [
    "Clients",
    "A client asks Origo for its settings together with the list of proxies. A value applies to downloads that begin " +
      "after that. A value that the caller of the library gives always wins. The arms of an experiment may set the " +
      "settings that are marked with *.",
    CLIENT_SETTINGS,
  ],
  [
    "Proxies",
    "A value applies at once. Unless the text says otherwise, a proxy takes it only if it is stricter than the value " +
      "that the proxy started with, so Origo can lower a limit but never raise it.",
    PROXY_SETTINGS,
  ],
  ["Origo", "A value applies at once.", ORIGO_SETTINGS],
];

/** The whole page. */
export function settingsPage(): string {
  const parts = PARTS.map(([title, about, rows]) => {
    const cells = Object.entries(rows).map(([key, row]) => cellsOf(key, row));
    return [`## ${title}`, "", about, "", markdownTable(["setting", "default", "allowed", "meaning"], cells)];
  });
  return [
    "# Settings",
    "",
    "These are all values that an operator can change on the dashboard's page *Configuration* while the system runs. " +
      "`node contract/write-docs.mjs` writes this page from the table in `contract/src/settings`.",
    "",
    ...parts.flatMap((lines) => [...lines, ""]),
  ]
    .join("\n")
    .replace(/\n+$/, "\n");
}

function cellsOf(key: string, row: Row): string[] {
  const mark = "perDownload" in row ? " *" : "";
  const help = [row.help, ...notes(row)].join(" ");
  return [`\`${key}\`${mark}`, shown(row.default, row), allowed(row), help];
}

const shown = (value: number | boolean | string, row: Row): string =>
  row.type === "integer" ? `${textOf(value)} ${row.unit}` : `\`${String(value)}\``;

function allowed(row: Row): string {
  if (row.type === "boolean") return "`true`, `false`";
  if (row.type === "choice") return row.options.map((option) => `\`${option}\``).join(", ");
  return `${textOf(row.min)} to ${textOf(row.max)}`;
}

const startDefault = (value: number | boolean, row: Row): string =>
  typeof value === "boolean" ? `\`${Number(value)}\`` : shown(value, row);

function notes(row: Row): string[] {
  if (!("effect" in row)) return [];
  const { effect, start } = row;
  return [
    ...(effect === "replaces" ? ["It replaces the proxy's own value, in both directions."] : []),
    ...(start ? [`A proxy starts with \`${start.variable}\`, by default ${startDefault(start.default, row)}.`] : []),
  ];
}
